"""What is refused once the database has reached its limit: calls that add. Reading, deleting and upkeep go on."""

from typing import Any

from memoryd.client.protocol import DECLARED, Call
from memoryd.daemon.store.store import Store


def check(call: Call[Any], store: Store) -> None:
    """Raise `StorageFull` for a call that adds when there is no room; the message says what to do."""
    if DECLARED[type(call)].grows:
        store.check_room()
