"""Markdown files: which there are, and what stands in them as chunks. Knows files and Markdown, nothing of the store."""
