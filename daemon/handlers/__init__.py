"""Handlers: each takes a call apart and hands it to the core. Importing this package fills the dispatch table."""

from memoryd.daemon.handlers import (
    access,
    administration,
    context,
    graph,
    jobs,
    memories,
    notes,
    retrieval,
    tiers,
    transfer,
    workspaces,
)

__all__ = [
    "access",
    "administration",
    "context",
    "graph",
    "jobs",
    "memories",
    "notes",
    "retrieval",
    "tiers",
    "transfer",
    "workspaces",
]
