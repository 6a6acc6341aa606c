"""Sessions of coding agents, read from the files that their hosts keep: what was said, by whom, when and where.

`agents` is the table of hosts. Each has a module, its reader, with `read(path, home)`, which yields a `Session` for
each session that a file holds and only reads. `building` says what an utterance is and makes a session of them. Each
rule of a reader names the host's source or documentation that it follows.
"""
