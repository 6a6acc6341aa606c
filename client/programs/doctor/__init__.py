"""doctor: check the whole installation, report how to fix each problem, and apply the safe fixes.

`checks` has the table of checks; a check examines a `Patient` and returns a `Finding`. Checks that need the daemon are
skipped if none answers, which the check `daemon` reports. Everything here works without a daemon, with a broken
database and with an unreadable configuration.
"""
