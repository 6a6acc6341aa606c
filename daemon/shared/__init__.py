"""What is shared lies in one place, on another machine: here are the ways to it, and the saves that wait for it.

A root is a section of the configuration, `[shared.acme]`. Its namespaces are those inside it, such as `acme/api`; the
name of a folder has no `/`, so no checkout is in a root because of its name. Nothing that lies in the place is stored
here but what waits to be sent there.

Threads: one per root speaks to its place (`line`), one sends what waits (`sending`).
"""
