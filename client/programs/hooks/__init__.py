"""Hooks for coding agents: installing them into the agents' configuration files, and running them.

`hosts` is the table of agents, with their events and JSON formats. A hook is a separate process for every event, so the
modules that it runs (`hook`, `answering`, `wire`, `spool`) import msgspec but no protocol classes. Installation is
in `commands`, `installing`, `entries`, `jsontext` and `tomltext`; the last two edit other programs' files without
changing anything except our entries.
"""
