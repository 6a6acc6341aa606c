"""Markdown files: which files there are, and their content in chunks.

This package does not use the store. Parsing is slow in Python, so `reader.FileReader` runs it in a child process.
"""
