"""Convert stored rows to the memories that clients see."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import apsw
import msgspec

from memoryd.client.protocol import LaterStatement, Memory, NewMemory
from memoryd.daemon.store import feedback, later, vectors
from memoryd.daemon.store.filters import ALIVE, alive_values
from memoryd.daemon.store.namespaces import NamespaceTable
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.successors import read_in_force

S = TypeVar("S", bound=msgspec.Struct)

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def convert_to(kind: type[S], source: object, **others: Any) -> S:
    """Return a struct with the fields of `source` of the same names, and with `others`, which take precedence."""
    fields = (name for name in kind.__struct_fields__ if name not in others and hasattr(source, name))
    return kind(**{name: getattr(source, name) for name in fields}, **others)


def fields_of(
    row: Row, names: NamespaceTable, contradicts: Mapping[str, str], statement: LaterStatement | None = None
) -> dict[str, Any]:
    """Return the fields of a `Memory` for a row."""
    return {
        "id": row.id,
        "namespace": names.name(row.namespace),
        "type": row.type,
        "content": row.content,
        "summary": row.summary,
        "metadata": _decode(row.metadata),
        "importance": row.importance,
        "source": row.source,
        "origin": row.origin,
        "confirmed_at": row.confirmed_at,
        "tier": row.tier,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "last_accessed_at": row.last_accessed_at,
        "access_count": row.access_count,
        "expires_at": row.expires_at,
        "pinned": bool(row.pinned),
        "superseded_by": row.superseded_by,
        "path": row.path,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "key": row.key,
        "searchable": bool(row.searchable),
        "ttl_s": row.ttl_s,
        "contradicts": list(contradicts),
        "contradicts_texts": list(contradicts.values()),
        "later": statement,
        "usefulness": feedback.rate_usefulness(row.feedback),
    }


def build_new(row: Row) -> NewMemory:
    """Return a row as a new memory to add in another place, without its source.

    A memory that the person confirmed has the person as its origin there.
    """
    return NewMemory(
        content=row.content,
        type=row.type,
        summary=row.summary,
        metadata=_decode(row.metadata),
        importance=row.importance,
        source=row.source,
        origin="person" if row.is_persons else row.origin,
        created_at=row.created_at,
        expires_at=row.expires_at,
        pinned=bool(row.pinned),
    )


def build_memories(
    connection: apsw.Connection, names: NamespaceTable, records: Iterable[Row], reached: str, now: float
) -> list[Memory]:
    """Return the memories of rows, with the memories in the `reached` namespaces that contradict or change them.

    `superseded_by` is set only if that memory has neither been deleted nor expired at `now`.
    """
    in_order = list(records)
    ids = [row.id for row in in_order]
    links, statements = read_contradictions(connection, ids, reached, now), later.read(connection, ids, reached, now)
    by = read_in_force(connection, in_order, now)
    return [
        Memory(
            **fields_of(row, names, links.get(row.id, {}), statements.get(row.id)) | {"superseded_by": by.get(row.row)}
        )
        for row in in_order
    ]


def give_vectors(
    connection: apsw.Connection, model: int, memories: Sequence[Memory], records: Iterable[Row | None]
) -> None:
    """Set the vectors of the memories that have one."""
    keys = {row.id: row.text_hash or vectors.text_hash(row.content) for row in records if row is not None}
    by_hash = vectors.find(connection, model, list(keys.values()))
    for memory in memories:
        vector = by_hash.get(keys.get(memory.id, b""))
        memory.vector = None if vector is None else vector.tolist()


def read_contradictions(
    connection: apsw.Connection, ids: Sequence[str], reached: str, now: float | None
) -> dict[str, dict[str, str]]:
    """Return for each id the ids and the beginnings of memories that contradict it, in either direction.

    Memories outside the `reached` namespaces (an SQL condition on `m`) are left out, and so are those that are
    superseded or expired at `now` (None: in any state).
    """
    if not ids:
        return {}
    alive, values = ("TRUE", ()) if now is None else (ALIVE, alive_values(now))
    ids_sql = "(SELECT value FROM json_each(?1))"
    # CROSS JOIN makes SQLite read the few links first, then each memory by its id, instead of the whole namespace.
    entries: Any = connection.execute(
        f"SELECT l.here, m.id, substr(m.content, 1, {2 * later.SHOWN_CHARS}) FROM ("
        f"SELECT origin AS here, target AS there FROM links WHERE kind = 'contradicts' AND origin IN {ids_sql}"
        f" UNION SELECT target, origin FROM links WHERE kind = 'contradicts' AND target IN {ids_sql}) l"
        f" CROSS JOIN memories m ON m.id = l.there AND {reached} AND {alive} ORDER BY m.created_at DESC, m.id",
        (msgspec.json.encode(list(ids)).decode(), *values),
    )
    links: dict[str, dict[str, str]] = {}
    for here, there, text in entries:
        links.setdefault(here, {})[there] = later.shorten(text)
    return links
