"""Erase memories and turns for good, with everything derived from them, the free space in the file and, on request,
copies of the database."""
