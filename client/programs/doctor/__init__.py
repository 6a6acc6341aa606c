"""doctor: look at everything that can be wrong, say how to fix it, and fix what is safe.

`checks` holds the table of checks; a check looks at a `Patient` and returns a `Finding`. Checks of the daemon's inside
are left out while none answers: the check `daemon` says so. Everything here works without a daemon, with a broken
database and with a configuration that cannot be read.
"""
