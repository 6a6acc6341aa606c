"""Readers for the session files of coding agents: messages with their author, time and folder.

`agents` is the table of agents. Each has a reader module with `read(path, home)`, which yields a `Session` for each
session in a file and changes nothing. `building` defines utterances and builds sessions from them. Each rule of a
reader names the agent's source or documentation that it follows.
"""
