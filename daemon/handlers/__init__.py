"""Handlers: each takes a call apart and hands it to the core. Importing this package fills the dispatch table."""

from memoryd.daemon.handlers import (
    access,
    administration,
    context,
    dreams,
    graph,
    jobs,
    memories,
    notes,
    retrieval,
    sessions,
    statistics,
    summaries,
    tiers,
    transfer,
    upkeep,
    workspaces,
)

__all__ = [
    "access",
    "administration",
    "context",
    "dreams",
    "graph",
    "jobs",
    "memories",
    "notes",
    "retrieval",
    "sessions",
    "statistics",
    "summaries",
    "tiers",
    "transfer",
    "upkeep",
    "workspaces",
]
