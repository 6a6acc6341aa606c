"""Importers of memories from other systems: one module per system.

A module has `read(path, account)`, which yields an `Item` for each memory and counts skipped entries in the account. It
never writes to the source. To add a system, add its module and a row in `systems`; a test fails if one is missing.
"""
