"""L0 in the database: the stored turns, the list of skipped ones, and the counts of what became of every turn.

The table `flows` counts turns per namespace: those `observed`, those refused (`skipped: …`), those that left L0 without
becoming a memory (`dropped: …`), and those whose memory was deleted (`gone: …`). All others must be in `turns` or be
counted in `memories.turns`; `check_conservation` verifies that in one statement, and so in one snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import NotFound
from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.contexts import NEIGHBOURS, SHORT_CHARS
from memoryd.daemon.store.filters import ALIVE, alive_values
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, L0

KEPT_CHARS = 240  # stored of a skipped turn
KEEP_SKIPPED = 1000  # skipped turns listed per namespace
TYPE = "turn"  # type of the memory that a turn becomes


class StoredTurn(msgspec.Struct, kw_only=True):
    """One turn of L0 as stored; `id` is 0 until it is inserted. `files` are paths, one a line."""

    id: int = 0
    key: str
    namespace: int
    session: str
    role: str
    importance: float = 0.5
    source: str = "conversation"
    created_at: float
    answers: str | None = None
    content_hash: bytes
    previous: str = ""
    content: str
    speaker: str = ""
    files: str = ""

    def size_bytes(self) -> int:
        """Return about how many bytes the turn takes in RAM."""
        return len(self.content) + len(self.previous) + 400


class Skip(NamedTuple):
    """A turn that was refused."""

    namespace: int
    session: str
    role: str
    content: str
    reason: str
    at: float


COLUMNS: tuple[str, ...] = StoredTurn.__struct_fields__
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM turns"
_TRIM = (
    "DELETE FROM skipped WHERE namespace = ?1 AND id <= (SELECT id FROM skipped WHERE namespace = ?1"
    " ORDER BY id DESC LIMIT 1 OFFSET ?2)"
)
_LATEST = (
    "SELECT iif(length(content) <= ?3, content, NULL) FROM turns WHERE namespace = ?1 AND session = ?2"
    " ORDER BY id DESC LIMIT ?4"
)
_LATEST_SAID = (
    "SELECT key, created_at, role, speaker, substr(content, 1, 60), substr(content, -100) FROM turns"
    " WHERE namespace = ? AND session = ? AND source <> 'recall' ORDER BY id DESC LIMIT ?"
)
# The question that a turn answers: the user's last turn, if it is recent and has no answer yet.
_ASKED = (
    "SELECT q.key, q.created_at FROM turns q WHERE q.namespace = ?1 AND q.session = ?2 AND q.role = 'user'"
    " AND q.created_at BETWEEN ?3 - ?4 AND ?3"
    " AND q.id = (SELECT max(id) FROM turns WHERE namespace = ?1 AND session = ?2 AND role = 'user')"
    " AND NOT EXISTS (SELECT 1 FROM turns a WHERE a.namespace = ?1 AND a.answers = q.key)"
)
_ACCOUNT = """(
  SELECT id, name,
    (SELECT total(count) FROM flows WHERE namespace = id AND kind = 'observed') AS came,
    (SELECT count(*) FROM turns WHERE namespace = n.id) AS here,
    (SELECT total(turns) FROM memories WHERE namespace = n.id AND turns > 0) AS kept,
    (SELECT total(count) FROM flows WHERE namespace = id
       AND (kind LIKE 'skipped: %' OR kind LIKE 'dropped: %' OR kind LIKE 'gone: %')) AS went
  FROM namespaces n
) WHERE came <> here + kept + went"""


def _turns(entries: Iterable[Any]) -> list[StoredTurn]:
    return [StoredTurn(**dict(zip(COLUMNS, values, strict=True))) for values in entries]


def read_ring(connection: apsw.Connection, namespace: int) -> list[StoredTurn]:
    """Return the turns of a namespace, oldest first."""
    return _turns(connection.execute(f"{_SELECT} WHERE namespace = ? ORDER BY id", (namespace,)))


def read_all(connection: apsw.Connection) -> list[StoredTurn]:
    """Return the turns of all namespaces, oldest first."""
    return _turns(connection.execute(f"{_SELECT} ORDER BY id"))


def find_quiet(connection: apsw.Connection, at: float) -> list[int]:
    """Return the namespaces whose last turn in L0 is older than `at`."""
    sql = "SELECT namespace FROM turns GROUP BY namespace HAVING max(created_at) < ? ORDER BY namespace"
    return [int(number) for (number,) in connection.execute(sql, (at,))]


def count_within(connection: apsw.Connection, condition: str) -> int:
    """Return how many turns L0 has in the namespaces of `condition` (on the alias `m`)."""
    return int(connection.execute(f"SELECT count(*) FROM turns m WHERE {condition}").get)


def read_keys(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, StoredTurn]:
    """Return the turns in L0 with these keys, by key."""
    sql = f"{_SELECT} WHERE key IN (SELECT value FROM json_each(?))"
    return {turn.key: turn for turn in _turns(connection.execute(sql, (msgspec.json.encode(keys).decode(),)))}


def resolve(connection: apsw.Connection, prefix: str, condition: str) -> StoredTurn | None:
    """Return the only turn whose key begins with a prefix in the namespaces of `condition` (on the alias `m`)."""
    sql = f"{_SELECT} m WHERE key >= ? AND key < ? AND {condition} LIMIT 2"
    matches = _turns(connection.execute(sql, rows.id_range(prefix)))
    return matches[0] if len(matches) == 1 else None


def resolve_row(connection: apsw.Connection, prefix: str, condition: str) -> Row:
    """Return the memory whose id begins with `prefix`, or the turn in L0, converted to a memory."""
    try:
        return rows.resolve(connection, prefix, condition)
    except NotFound:
        turn = resolve(connection, prefix, condition)
        if turn is None:
            raise
        return to_row(turn)


def to_row(turn: StoredTurn) -> Row:
    """Convert a turn of L0 to a memory, with a negative row number."""
    return Row(
        row=-turn.id,
        id=turn.key,
        namespace=turn.namespace,
        type=TYPE,
        source=turn.source,
        origin="heard",
        tier=L0,
        importance=turn.importance,
        created_at=turn.created_at,
        updated_at=turn.created_at,
        turns=1,
        content_hash=turn.content_hash,
        text_hash=b"",
        metadata=msgspec.json.encode(describe(turn), order="sorted").decode(),
        content=turn.content,
    )


def to_memory(turn: StoredTurn, tier: str, neighbours: str, days: Mapping[str, float]) -> Row:
    """Return the memory, not inserted yet, that replaces a turn when it leaves L0; `days` are lifetimes by source."""
    row = to_row(turn)
    row.row, row.tier, row.neighbours = 0, tier, neighbours
    row.text_hash = vectors.text_hash(turn.content)
    row.expires_at = rows.compute_expiry(days, turn.source, turn.created_at)
    return row


def describe(turn: StoredTurn) -> dict[str, Any]:
    """Return the metadata of the memory that a turn becomes."""
    files = turn.files.splitlines()
    values = {"role": turn.role, "session": turn.session, "answers": turn.answers, "speaker": turn.speaker}
    return {name: value for name, value in {**values, "files": files}.items() if value}


def insert(connection: apsw.Connection, turn: StoredTurn) -> int:
    """Insert a turn and return its number; a turn with a number (from an undo) gets its place in the ring back."""
    return rows.insert_struct(connection, "turns", turn)


def remove(connection: apsw.Connection, leaving: Iterable[StoredTurn]) -> None:
    """Delete turns; the caller counts them in `flows`."""
    connection.executemany("DELETE FROM turns WHERE id = ?", ((turn.id,) for turn in leaving))


def move(connection: apsw.Connection, namespace: int, to: int) -> int:
    """Move the turns of L0, and those that are listed as skipped, to another namespace; return how many are in L0."""
    sql = "UPDATE turns SET namespace = ? WHERE namespace = ? RETURNING 1"
    moved = len(connection.execute(sql, (to, namespace)).fetchall())
    connection.execute("UPDATE skipped SET namespace = ? WHERE namespace = ?", (to, namespace))
    count(connection, namespace, "gone: share", moved)
    count(connection, to, "gone: share", -moved)
    return moved


def exchange(connection: apsw.Connection, removed: Iterable[StoredTurn], back: Iterable[StoredTurn]) -> None:
    """Remove turns from L0 and put others back, for an undo."""
    leaving, coming = list(removed), list(back)
    remove(connection, leaving)
    for turn in coming:
        insert(connection, turn)
        count(connection, turn.namespace, "gone: undo", -1)
    for turn in leaving:
        count(connection, turn.namespace, "gone: undo")


def rate(connection: apsw.Connection, key: str, importance: float) -> bool:
    """Set the importance of a turn; return whether it is in L0."""
    return bool(connection.execute("UPDATE turns SET importance = ? WHERE key = ? RETURNING 1", (importance, key)).get)


# What a new turn is compared with -------------------------------------------------------------------------------------


class RecentTurn(NamedTuple):
    """One of a session's last turns: how its text begins and ends."""

    key: str
    at: float
    role: str
    speaker: str
    beginning: str
    end: str


def read_latest(connection: apsw.Connection, namespace: int, session: str, count: int) -> list[RecentTurn]:
    """Return a session's last turns in L0, the latest first."""
    return [RecentTurn(*values) for values in connection.execute(_LATEST_SAID, (namespace, session, count))]


def find_id(connection: apsw.Connection, id: str) -> tuple[bytes, int] | None:
    """Return the content hash and the namespace of the turn or memory with an id, None if the id is unused."""
    sql = (
        "SELECT content_hash, namespace FROM turns WHERE key = ?1 UNION ALL"
        " SELECT content_hash, namespace FROM memories WHERE id = ?1"
    )
    return connection.execute(sql, (id,)).fetchone()


def find_equal_memory(connection: apsw.Connection, namespace: int, key: bytes, now: float) -> str | None:
    """Return the id of a living memory of a namespace with the same text."""
    id: Any = connection.execute(
        f"SELECT m.id FROM memories m WHERE m.content_hash = ? AND m.namespace = ? AND +m.tier <> {DOCUMENTS!r}"
        f" AND {ALIVE} LIMIT 1",
        (key, namespace, *alive_values(now)),
    ).get
    return None if id is None else str(id)


def find_equal_turn(connection: apsw.Connection, namespace: int, key: bytes) -> str | None:
    """Return the id of a turn in L0 of a namespace with the same text."""
    sql = "SELECT key FROM turns WHERE namespace = ? AND content_hash = ?"
    id: Any = connection.execute(sql, (namespace, key)).get
    return None if id is None else str(id)


def find_previous(connection: apsw.Connection, namespace: int, session: str) -> list[str]:
    """Return the texts of a session's last turns in L0, back to the first long one, oldest first."""
    last: Any = connection.execute(_LATEST, (namespace, session, SHORT_CHARS, NEIGHBOURS))
    return list(takewhile(bool, (text for (text,) in last)))[::-1]


def find_neighbours(connection: apsw.Connection, leaving: Sequence[StoredTurn]) -> dict[str, str]:
    """Return for each turn the short turns around it in its session, as one text, empty for a long turn."""
    following: dict[str, Iterable[StoredTurn]] = {}
    for namespace in {turn.namespace for turn in leaving}:
        sessions: dict[str, list[StoredTurn]] = {}
        for turn in read_ring(connection, namespace):
            sessions.setdefault(turn.session, []).append(turn)
        for said in sessions.values():
            for at, turn in enumerate(said, start=1):
                following[turn.key] = takewhile(_is_short, said[at : at + NEIGHBOURS])
    near = {turn.key: [turn.previous, *(one.content for one in following.get(turn.key, ()))] for turn in leaving}
    return {turn.key: "\n".join(filter(None, near[turn.key])) if _is_short(turn) else "" for turn in leaving}


def _is_short(turn: StoredTurn) -> bool:
    return len(turn.content) <= SHORT_CHARS


def find_question(
    connection: apsw.Connection, namespace: int, session: str, at: float, within_s: float
) -> tuple[str, float] | None:
    """Return id and time of the question that a turn at `at` answers, None if there is none."""
    return connection.execute(_ASKED, (namespace, session, at, within_s)).fetchone()


# Skipped -------------------------------------------------------------------------------------------------------------


def skip(connection: apsw.Connection, skips: Sequence[Skip]) -> None:
    """List turns as skipped; of each namespace the latest `KEEP_SKIPPED` are kept."""
    sql = "INSERT INTO skipped (namespace, session, role, content, reason, at) VALUES (?, ?, ?, ?, ?, ?)"
    connection.executemany(sql, (skip._replace(content=skip.content[:KEPT_CHARS]) for skip in skips))
    connection.executemany(_TRIM, ((namespace, KEEP_SKIPPED) for namespace in {skip.namespace for skip in skips}))


def read_skipped(connection: apsw.Connection, condition: str, limit: int) -> list[Skip]:
    """Return skipped turns in the namespaces of `condition` (on the alias `m`), newest first."""
    sql = (
        "SELECT m.namespace, m.session, m.role, m.content, m.reason, m.at FROM skipped m"
        f" WHERE {condition} ORDER BY m.id DESC LIMIT ?"
    )
    return [Skip(*values) for values in connection.execute(sql, (limit,))]


def was_skipped_after(connection: apsw.Connection, namespace: int, session: str, role: str, at: float) -> bool:
    """Return whether a turn of a role was skipped in a session at a time or later."""
    sql = "SELECT 1 FROM skipped WHERE namespace = ? AND session = ? AND role = ? AND at >= ? LIMIT 1"
    return connection.execute(sql, (namespace, session, role, at)).get is not None


# Counts --------------------------------------------------------------------------------------------------------------


def count(connection: apsw.Connection, namespace: int, kind: str, number: int = 1) -> None:
    """Add to one count of `flows`."""
    if number:
        sql = "INSERT INTO flows VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
        connection.execute(sql, (namespace, kind, number))


def read_flows(connection: apsw.Connection, condition: str) -> dict[int, dict[str, int]]:
    """Return the counts of each namespace of `condition` (on the alias `m`), without those that are 0."""
    account: dict[int, dict[str, int]] = {}
    sql = f"SELECT m.namespace, m.kind, m.count FROM flows m WHERE m.count <> 0 AND {condition} ORDER BY 1, 2"
    for namespace, kind, number in connection.execute(sql):
        account.setdefault(namespace, {})[kind] = number
    return account


def check_conservation(connection: apsw.Connection) -> list[str]:
    """Return a sentence for each namespace whose turns do not add up."""
    return [
        f"turns of {name or 'the root'}: {came:.0f} came, but {here} in L0, {kept:.0f} kept and {went:.0f} gone"
        for name, came, here, kept, went in connection.execute(f"SELECT name, came, here, kept, went FROM {_ACCOUNT}")
    ]


def settle(connection: apsw.Connection) -> None:
    """Count turns that no longer exist as lost with a recovery, so that the account is right."""
    connection.execute(
        f"INSERT INTO flows SELECT id, 'gone: recovery', came - here - kept - went FROM {_ACCOUNT}"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count"
    )


def sort_key(row: Row) -> tuple[float, bool, int]:
    """Return the sort key of a turn in its conversation; turns in L0 come after those that have left it."""
    return row.created_at, row.row < 0, abs(row.row)


def read_session(record: Row | StoredTurn) -> str:
    """Return the session of a turn, empty for a memory that is no turn."""
    if isinstance(record, StoredTurn):
        return record.session
    session = msgspec.json.decode(record.metadata).get("session") if record.turns else None
    return session if isinstance(session, str) else ""
