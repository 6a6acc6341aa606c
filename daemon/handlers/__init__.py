"""Handlers: each takes a call apart and hands it to the core. Importing this package fills the dispatch table."""

from memoryd.daemon.handlers import (
    access,
    administration,
    graph,
    jobs,
    memories,
    retrieval,
    tiers,
    transfer,
    workspaces,
)

__all__ = ["access", "administration", "graph", "jobs", "memories", "retrieval", "tiers", "transfer", "workspaces"]
