"""The daemon: socket in front, memory core behind, one SQLite file below."""
