"""Privacy: no credential is stored.

`privacy` removes credentials from each call before its handler sees it. The job `redacting` applies new rules to texts
that are stored already.
"""
