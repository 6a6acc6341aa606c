"""Coding agents: what memoryd writes into their configuration, and what a hook of theirs does when it runs.

`hosts` is the one table of agents, events and JSON shapes. A hook is a process of its own at every prompt, so what it
runs (`hook`, `answering`, `wire`, `spool`) imports msgspec and no class of the protocol. Installing is
`commands`, `installing`, `entries`, and `jsontext` and `tomltext`, which change nothing in other programs' files but
our entries.
"""
