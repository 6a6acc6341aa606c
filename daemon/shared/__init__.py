"""What is shared lies in one place, on another machine: here are the ways to it, and the saves that wait for it.

A root is a section of the configuration, `[shared.acme]`. Its namespaces are those inside it, such as `acme/api`; which
checkouts have one is told by their remotes (`client/projects/roots`). Nothing that lies in the place is stored here but
what waits to be sent there; what a start may tell of it is in RAM (`shelf`), and what the person confirmed of it is a
note of hashes (`confirming`).

Threads: one per root speaks to its place (`line`), one sends what waits and fetches the shelves (`sending`).
"""
