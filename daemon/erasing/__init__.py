"""Erasing for good: memories and turns, what was made of them, what is left in the file, and copies when asked."""
