"""What a turn that comes in is compared with: ids, equal texts, the turn before it, the question that it answers."""

from itertools import takewhile
from typing import Any

import apsw

from memoryd.daemon.store.filters import ALIVE, alive_values
from memoryd.daemon.store.tiers import DOCUMENTS

_LAST = (
    "SELECT iif(length(content) <= ?3, content, NULL) FROM turns WHERE namespace = ?1 AND session = ?2"
    " ORDER BY id DESC LIMIT ?4"
)
_END = (
    "SELECT key, created_at, substr(content, -100) FROM turns WHERE namespace = ? AND session = ?"
    " AND source <> 'recall' ORDER BY id DESC LIMIT 1"
)
# The question that a turn answers: the user's last one, if it is recent and has no answer yet.
_ASKED = (
    "SELECT q.key, q.created_at FROM turns q WHERE q.namespace = ?1 AND q.session = ?2 AND q.role = 'user'"
    " AND q.created_at BETWEEN ?3 - ?4 AND ?3"
    " AND q.id = (SELECT max(id) FROM turns WHERE namespace = ?1 AND session = ?2 AND role = 'user')"
    " AND NOT EXISTS (SELECT 1 FROM turns a WHERE a.namespace = ?1 AND a.answers = q.key)"
)


def find_last(connection: apsw.Connection, namespace: int, session: str) -> tuple[str, float, str] | None:
    """Return id, time and end of the text of a session's last turn in L0, None when there is none."""
    found: Any = connection.execute(_END, (namespace, session)).fetchone()
    return None if found is None else (str(found[0]), float(found[1]), str(found[2]))


def find_id(connection: apsw.Connection, id: str) -> tuple[bytes, int] | None:
    """Return the content hash and the namespace of the turn or memory with an id, None when it is free."""
    found: Any = connection.execute(
        "SELECT content_hash, namespace FROM turns WHERE key = ?1 UNION ALL"
        " SELECT content_hash, namespace FROM memories WHERE id = ?1",
        (id,),
    ).fetchone()
    return None if found is None else tuple(found)


def find_equal_memory(connection: apsw.Connection, namespace: int, key: bytes, now: float) -> str | None:
    """Return the id of a living memory of a namespace with the same text."""
    found: Any = connection.execute(
        f"SELECT m.id FROM memories m WHERE m.content_hash = ? AND m.namespace = ? AND +m.tier <> {DOCUMENTS!r}"
        f" AND {ALIVE} LIMIT 1",
        (key, namespace, *alive_values(now)),
    ).get
    return None if found is None else str(found)


def find_equal_turn(connection: apsw.Connection, namespace: int, key: bytes) -> str | None:
    """Return the id of a turn in L0 of a namespace with the same text."""
    sql = "SELECT key FROM turns WHERE namespace = ? AND content_hash = ?"
    found: Any = connection.execute(sql, (namespace, key)).get
    return None if found is None else str(found)


def find_previous(connection: apsw.Connection, namespace: int, session: str, most_chars: int, count: int) -> list[str]:
    """Return the texts of a session's last turns in L0, up to the first long one, in the order in which they came."""
    last: Any = connection.execute(_LAST, (namespace, session, most_chars, count))
    return list(takewhile(bool, (text for (text,) in last)))[::-1]


def find_question(
    connection: apsw.Connection, namespace: int, session: str, at: float, within_s: float
) -> tuple[str, float] | None:
    """Return id and time of the question that a turn said at `at` answers, None when there is none."""
    found: Any = connection.execute(_ASKED, (namespace, session, at, within_s)).fetchone()
    return None if found is None else (str(found[0]), float(found[1]))
