"""A machine that holds a part of a shared root: how the first copy begins, what leaves when there is too much.

What was written here, what is pinned and what was used stays, of the rest the newest. What leaves is on the server, is
found there by searches, and comes back when it changes or is of use.
"""

from typing import Any

from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import exchange
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.store import rows
from memoryd.daemon.store.writer import Transaction, wait_patiently

_BATCH = 500  # rows of one transaction


def choose_start(server: ServerConnection, root: Root, max_rows: int) -> dict[str, Any]:
    """Return what is to change of how far the feed was read: so that no more comes than is to be here, or all again."""
    if root.partial and not max_rows:
        return {"cursor": 0, "partial": 0}
    if root.cursor or not max_rows:
        return {}
    start = exchange.find_start(server, root.name, max_rows)
    return {} if start is None else {"cursor": start, "partial": 1}


def list_pinned(server: ServerConnection, root: Root, limit: int) -> list[str]:
    """Return the pinned memories among those that the first copy leaves on the server."""
    return exchange.list_pinned(server, root.name, root.cursor, limit)


def fit(core: Core, root: Root, max_rows: int) -> bool:
    """Let what is too much be on the server alone; return whether anything left."""
    with core.store.reading() as connection:
        surplus = shared.count_memories(connection, root.id) - max_rows if max_rows else 0
    left = 0
    while left < surplus:
        count = min(_BATCH, surplus - left)
        done = wait_patiently(
            lambda count=count: core.store.write(lambda transaction: _evict(core, transaction, root, count)),  # type: ignore[misc]
            core.check_going_on,
        )
        left += done
        if not done:
            break
    return left > 0


def _evict(core: Core, transaction: Transaction, root: Root, count: int) -> int:
    connection = transaction.connection
    going = shared.list_surplus(connection, root.id, count)
    for row, _ in going:
        with shared.change_locally(connection):  # it is no deletion
            rows.delete(connection, [row])
    if going:
        transaction.after_commit(lambda: core.embedding.remove_rows([row for row, _ in going]))
        shared.change_root(connection, root.id, partial=1)
    return len(going)
