"""Remove memoryd from a machine: find all its parts, and remove each."""
