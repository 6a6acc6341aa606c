"""Texts of neighbouring turns that are stored with a memory or turn so that searches find it by them.

They are in `memories`, `turns`, `contexts`, and in former states in the history.
"""

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


class NeighbourTexts(NamedTuple):
    """The neighbour texts of a memory or turn, and the table that has them; `session` may be empty."""

    table: str
    number: int
    id: str
    namespace: int
    session: str
    created_at: float
    text: str


class ChangedNeighbours(NamedTuple):
    """The memories whose neighbour texts were changed, the namespaces of changed turns in L0, and the sessions."""

    rows: list[int]
    rings: set[int]
    sessions: set[str]


def find(connection: apsw.Connection) -> Iterator[NeighbourTexts]:
    """Yield the neighbour texts of all memories and turns, present and former."""
    for table, sql in _SOURCES.items():
        found: list[Any] = connection.execute(sql).fetchall()
        for number, id, namespace, session, at, text, *own in found:
            beside = text.removeprefix(f"{own[0]}\n") if own else text  # a context begins with the memory's own text
            yield NeighbourTexts(table, number, id, namespace, str(session), at, beside)
    past: list[Any] = connection.execute(_PAST).fetchall()
    for number, id, before in past:
        held = history.decode_image(before)
        if one := held.row or held.turn:
            text = one.neighbours if isinstance(one, Row) else one.previous
            yield NeighbourTexts("history", number, id, one.namespace, turns.read_session(one), one.created_at, text)


def cut(connection: apsw.Connection, keep: Callable[[NeighbourTexts], str]) -> ChangedNeighbours:
    """Replace the neighbour texts of each memory and turn by the result of `keep`; delete contexts that change."""
    changed = ChangedNeighbours([], set(), set())
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


def build_remover(texts: Sequence[str]) -> Callable[[NeighbourTexts], str]:
    """Return a function that returns neighbour texts without the given texts."""
    firsts = {text.split("\n", 1)[0] for text in texts}

    def keep(around: NeighbourTexts) -> str:
        joined = around.text
        if not any(line in firsts for line in joined.split("\n")):
            return joined
        for text in texts:
            if f"\n{text}\n" in f"\n{joined}\n":
                joined = f"\n{joined}\n".replace(f"\n{text}\n", "\n").strip("\n")
        return joined

    return keep
