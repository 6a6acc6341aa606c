"""Results of adds with an idempotency key, kept for 90 days, so that a repeated add does nothing.

The result is kept even if the memory is changed or deleted, so a repeated call does not restore an erased text.
"""

from typing import Any

import apsw

from memoryd.client.protocol import Added
from memoryd.daemon.store.caller import Caller

KEPT_S = 90 * 86400.0


def find(connection: apsw.Connection, key: str, caller: Caller) -> Added | None:
    """Return the result of this caller's add with this key, None if there was none."""
    sql = "SELECT id, outcome, operation, namespace FROM applied WHERE key = ? AND token = ?"
    found: Any = connection.execute(sql, (key, caller.name)).get
    if found is None:
        return None
    id, outcome, operation, namespace = found
    return Added(id=id, outcome=outcome, embedded=True, operation=operation, namespace=namespace)


def note(connection: apsw.Connection, key: str, caller: Caller, added: Added, now: float) -> None:
    """Store the result of an add; delete results older than 90 days."""
    connection.execute("DELETE FROM applied WHERE at < ?", (now - KEPT_S,))
    values = (key, caller.name, added.id, added.namespace or "", added.outcome, added.operation, now)
    connection.execute("INSERT INTO applied VALUES (?, ?, ?, ?, ?, ?, ?)", values)
