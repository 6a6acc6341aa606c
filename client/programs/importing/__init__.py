"""Importers: memories as other systems keep them, one module for each of them.

A module has `read(path, account)`: it yields an `Item` for each memory that it finds and reports to the account what it
left out. It reads only, whatever else runs. To add a system: its module and a row in `systems`; a test finds the half
that is missing.
"""
