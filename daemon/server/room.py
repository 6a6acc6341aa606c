"""What is refused once the database has reached its limit: calls that add, be it only to the history.

Turns are refused a little before it, so that they leave room for what is added on purpose. Reading, deleting and upkeep
go on. An undo looks itself at whether it removes.
"""

from typing import Any

from memoryd.client.protocol import DECLARED, Call, Observe
from memoryd.daemon.store.store import Store


def check(call: Call[Any], store: Store) -> None:
    """Raise `StorageFull` for a call that takes room when there is none; the message says what to do."""
    if DECLARED[type(call)].grows and not getattr(call, "dry_run", False):
        store.check_room()
        if isinstance(call, Observe):
            store.check_room_for_turns()
