"""Adds that carried a key: what each became is kept for 90 days, so that the same one made again does nothing.

That holds whatever became of the memory since: a text that was erased does not come back by an old call.
"""

from typing import Any

import apsw

from memoryd.client.protocol import Added
from memoryd.daemon.store.caller import Caller

KEPT_S = 90 * 86400.0


def find(connection: apsw.Connection, key: str, caller: Caller) -> Added | None:
    """Return what an add of this caller with this key became, None if there was none."""
    sql = "SELECT id, outcome, operation, namespace FROM applied WHERE key = ? AND token = ?"
    found: Any = connection.execute(sql, (key, caller.name)).get
    if found is None:
        return None
    id, outcome, operation, namespace = found
    return Added(id=id, outcome=outcome, embedded=True, operation=operation, namespace=namespace)


def note(connection: apsw.Connection, key: str, caller: Caller, added: Added, now: float) -> None:
    """Note what an add became; forget those of more than 90 days ago."""
    connection.execute("DELETE FROM applied WHERE at < ?", (now - KEPT_S,))
    values = (key, caller.name, added.id, added.namespace or "", added.outcome, added.operation, now)
    connection.execute("INSERT INTO applied VALUES (?, ?, ?, ?, ?, ?, ?)", values)
