"""Shared roots: namespaces whose memories are stored in one place, which is usually on another machine.

A root is a section of the configuration, such as `[shared.acme]`, and contains namespaces such as `acme/api`; the git
remotes of a checkout decide whether it has one (`client/projects/roots`). This machine stores only the memories that
wait to be sent, and hashes of those that the person confirmed (`confirming`). The memories that a session's start may
show are kept in RAM (`shelf`).

Threads: one per root serves the connection to its place (`line`); one sends waiting memories and fetches the shelves
(`sending`).
"""
