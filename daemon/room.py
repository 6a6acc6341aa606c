"""What is refused once the database has reached its limit: calls that add. Reading, deleting and upkeep go on."""

from typing import Any

from memoryd.client.protocol import (
    Add,
    AddMany,
    AddWorkspace,
    Call,
    CompleteTask,
    ImportMemories,
    IndexWorkspace,
    Observe,
    Remember,
    Seed,
    Share,
    Update,
)
from memoryd.daemon.store.store import Store

GROWING: frozenset[type[Call[Any]]] = frozenset(
    {
        Add,
        AddMany,
        AddWorkspace,
        CompleteTask,
        ImportMemories,
        IndexWorkspace,
        Observe,
        Remember,
        Seed,
        Share,
        Update,
    }
)


def check(call: Call[Any], store: Store) -> None:
    """Raise `StorageFull` for a call that adds when there is no room; the message says what to do."""
    if type(call) in GROWING:
        store.check_room()
