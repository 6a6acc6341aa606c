"""Privacy: no credential is stored.

`privacy` takes credentials out of each call before its handler sees it. The job `redacting` applies new rules to what
is stored already.
"""
