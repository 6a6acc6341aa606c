"""What was said around a memory or turn: texts of others that it holds to be found by them, here, in contexts and in
the history."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.daemon.store import history, turns
from memoryd.daemon.store.rows import Row

_SESSION = "iif(m.turns > 0, coalesce(m.metadata ->> '$.session', ''), '')"
_SOURCES = {
    "memories": (
        f"SELECT m.row, m.id, m.namespace, {_SESSION}, m.created_at, m.neighbours FROM memories m"
        " WHERE m.neighbours <> ''"
    ),
    "contexts": (
        f"SELECT c.memory, m.id, m.namespace, {_SESSION}, m.created_at, c.content, m.content FROM contexts c"
        " JOIN memories m ON m.row = c.memory"
    ),
    "turns": "SELECT id, key, namespace, session, created_at, previous FROM turns WHERE previous <> ''",
}
_PAST = (
    "SELECT id, memory, before FROM history WHERE coalesce(before ->> '$.row.neighbours', '') <> ''"
    " OR coalesce(before ->> '$.turn.previous', '') <> ''"
)
_CHANGES = {
    "memories": "UPDATE memories SET neighbours = ? WHERE row = ?",
    "turns": "UPDATE turns SET previous = ? WHERE id = ?",
}


class Around(NamedTuple):
    """What was said around a memory or turn, which is of a session or (empty) of none; `table` is where that is."""

    table: str
    number: int
    id: str
    namespace: int
    session: str
    created_at: float
    text: str


class ChangedAround(NamedTuple):
    """The rows that lost a text, the namespaces of turns of L0 that did, and the sessions of all these."""

    rows: list[int]
    rings: set[int]
    sessions: set[str]


def find(connection: apsw.Connection) -> Iterator[Around]:
    """Yield what was said around each memory and turn, as it is and as it was."""
    for table, sql in _SOURCES.items():
        found: list[Any] = connection.execute(sql).fetchall()
        for number, id, namespace, session, at, text, *own in found:
            beside = text.removeprefix(f"{own[0]}\n") if own else text  # a context begins with the memory's own text
            yield Around(table, number, id, namespace, str(session), at, beside)
    past: list[Any] = connection.execute(_PAST).fetchall()
    for number, id, before in past:
        held = history.decode_image(before)
        if one := held.row or held.turn:
            text = one.neighbours if isinstance(one, Row) else one.previous
            yield Around("history", number, id, one.namespace, turns.read_session(one), one.created_at, text)


def cut(connection: apsw.Connection, keep: Callable[[Around], str]) -> ChangedAround:
    """Keep of what was said around each memory and turn what a function returns; a context that holds more goes."""
    changed = ChangedAround([], set(), set())
    for one in find(connection):
        if (rest := keep(one)) == one.text:
            continue
        changed.sessions.add(one.session)
        if one.table == "contexts":
            connection.execute("DELETE FROM contexts WHERE memory = ?", (one.number,))
        elif one.table == "history":
            _cut_past(connection, one.number, rest)
        else:
            connection.execute(_CHANGES[one.table], (rest, one.number))
        if one.table in ("memories", "contexts"):
            changed.rows.append(one.number)
        elif one.table == "turns":
            changed.rings.add(one.namespace)
    return changed


def _cut_past(connection: apsw.Connection, number: int, rest: str) -> None:
    before: Any = connection.execute("SELECT before FROM history WHERE id = ?", (number,)).get
    image = history.decode_image(before)
    if image.row:
        image.row.neighbours = rest
    elif image.turn:
        image.turn.previous = rest
    connection.execute("UPDATE history SET before = ? WHERE id = ?", (msgspec.json.encode(image).decode(), number))


def leave_out(texts: Sequence[str]) -> Callable[[Around], str]:
    """Return a function that says what is left of what was said around a memory without some texts."""
    firsts = {text.split("\n", 1)[0] for text in texts}

    def keep(around: Around) -> str:
        joined = around.text
        if not any(line in firsts for line in joined.split("\n")):
            return joined
        for text in texts:
            if f"\n{text}\n" in f"\n{joined}\n":
                joined = f"\n{joined}\n".replace(f"\n{text}\n", "\n").strip("\n")
        return joined

    return keep
