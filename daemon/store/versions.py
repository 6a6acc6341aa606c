"""Versions: digests of memories, and the ids of deleted ones, by which two databases are compared."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from memoryd.client.protocol import Version
from memoryd.daemon.store import history, rows
from memoryd.daemon.store.namespaces import NamespaceTable
from memoryd.daemon.store.queries import DRAWN
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, L2

_PAGE = 1000
_IMPORT = "import"
# The fields that an import compares, without `neighbours`: each machine cuts erased texts out of them by itself.
_COMPARED = (
    *("type", "source", "content", "summary", "metadata", "importance", "created_at", "pinned", "superseded_by"),
    *("path", "start_line", "end_line", "searchable", "ttl_s", "origin", "confirmed_at"),
)
_TOUCHING = ("confirm", "redo", "undo", "update")  # kinds of operations that may change a memory, not its `updated_at`


def _is_saved(name: str) -> str:
    """Return the condition that a memory was saved and is a local one; `name` formats the names of its columns."""
    drawn = ", ".join(map(repr, DRAWN))
    return (
        f"{name.format('turns')} = 0 AND {name.format('source')} NOT IN ({drawn})"
        f" AND {name.format('tier')} IN ('{L1}', '{L2}')"
    )


_IS_SAVED, _WAS_SAVED = _is_saved("m.{}"), _is_saved("h.before ->> '$.row.{}'")
_CHANGED = (
    "SELECT m.id, max(m.updated_at, coalesce((SELECT max(o.at) FROM history h"
    " JOIN operations o ON o.number = h.operation"
    f" WHERE h.memory = m.id AND o.kind IN ({', '.join(map(repr, _TOUCHING))})), 0.0)),"
    " EXISTS (SELECT 1 FROM history h JOIN operations o ON o.number = h.operation"
    f" WHERE h.memory = m.id AND o.kind = '{history.ERASE}')"
    " FROM json_each(?) i CROSS JOIN memories m ON m.id = i.value"
)
_GONE = (
    "SELECT h.memory, h.namespace, o.kind, o.at, (SELECT u.kind FROM operations u WHERE u.undone_by = o.number)"
    " FROM history h JOIN operations o ON o.number = h.operation WHERE h.memory > ?1 AND h.memory <= ?2"
    " AND h.id = (SELECT max(l.id) FROM history l WHERE l.memory = h.memory)"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory)"
    " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.key = h.memory)"
    f" AND (o.kind = '{history.ERASE}' OR ({_WAS_SAVED} AND {{reached}}))"
)


def list_versions(
    connection: apsw.Connection, names: NamespaceTable, condition: str, after: str
) -> tuple[list[Version], str | None]:
    """Return the versions of a page of ids, and the id after which the next page begins, None after the last page.

    `condition` is one on namespaces, as SQL on `m`.
    """
    here = f"m.id > ?1 AND m.id <= ?2 AND {rows.near_id(condition)} AND {_IS_SAVED}"
    ids: Any = connection.execute(
        f"SELECT m.id FROM memories m WHERE m.id > ?1 AND {rows.near_id(condition)} AND {_IS_SAVED}"
        " UNION SELECT memory FROM history WHERE memory > ?1 ORDER BY 1 LIMIT ?2",
        (after, _PAGE),
    ).fetchall()
    if not ids:
        return [], None
    last = str(ids[-1][0])
    present = {row.id: row for row in rows.iterate(connection, here, (after, last))}
    found = [
        Version(
            id=row.id,
            namespace=names.name(row.namespace),
            key=row.key,
            at=at,
            digest=_digest(row, names),
            gone="erased" if was_erased else "",
        )
        for row, (at, was_erased) in ((present[id], found) for id, found in _read_changed(connection, present).items())
    ]
    reached = history.condition_for(condition, "h.namespace")
    for id, namespace, kind, at, undone in connection.execute(_GONE.format(reached=reached), (after, last)):
        is_dropped = kind.startswith(history.JOB) or (kind == "undo" and undone == _IMPORT)
        gone = "erased" if kind == history.ERASE else "dropped" if is_dropped else "deleted"
        found.append(Version(id=id, namespace=namespace, at=at, gone=gone))  # type: ignore[arg-type]
    return sorted(found, key=lambda version: version.id), last if len(ids) == _PAGE else None


def find_changed_at(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, float]:
    """Return by id when somebody last changed memories; missing ones are left out."""
    return {id: at for id, (at, _) in _read_changed(connection, ids).items()}


def _read_changed(connection: apsw.Connection, ids: Sequence[str] | Mapping[str, Any]) -> dict[str, tuple[float, bool]]:
    found: Any = connection.execute(_CHANGED, (msgspec.json.encode(list(ids)).decode(),))
    return {id: (at, bool(was_erased)) for id, at, was_erased in found}


def _digest(row: Row, names: NamespaceTable) -> str:
    expires_at = None if row.ttl_s is not None else row.expires_at  # each read may renew a `ttl_s`
    compared = [names.name(row.namespace), expires_at, *(getattr(row, name) for name in _COMPARED)]
    # Of two that were changed at one time, such as one import with and without `mine`, the person's is the greater.
    return f"{int(row.is_persons)}{hashlib.blake2b(msgspec.msgpack.encode(compared), digest_size=12).hexdigest()}"
