"""Markdown files: which there are, and what is in them as chunks.

Knows files and Markdown, nothing of the store. Parsing is heavy work in Python, so `reader.Reader` does it in a child.
"""
