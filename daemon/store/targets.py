"""What the steps of a job's plan are about: the state of memories and turns by id, and how their texts begin."""

from collections.abc import Iterable, Iterator
from typing import Any

import apsw

from memoryd.client.transport.batches import split_evenly

_IN_LIMIT = 500
_PREVIEW_CHARS = 100

# What decides where a memory belongs; a mere access changes nothing of it.
_STATES = (
    "SELECT m.id, m.row, m.updated_at, m.type, m.tier, m.importance, m.expires_at, m.pinned, m.superseded_by,"
    " m.text_hash FROM memories m WHERE m.id IN ({marks})",
    "SELECT t.key, t.id, t.importance, t.source FROM turns t WHERE t.key IN ({marks})",
)
_TEXTS = (
    f"SELECT m.id, substr(m.content, 1, {_PREVIEW_CHARS}) FROM memories m WHERE m.id IN ({{marks}})",
    f"SELECT t.key, substr(t.content, 1, {_PREVIEW_CHARS}) FROM turns t WHERE t.key IN ({{marks}})",
)


def read_states(connection: apsw.Connection, targets: Iterable[str]) -> dict[str, Any]:
    """Return the state of those targets that are memories or turns: it differs once one of them changed."""
    return {found[0]: found[1:] for found in _select(connection, _STATES, targets)}


def read_previews(connection: apsw.Connection, targets: Iterable[str]) -> dict[str, str]:
    """Return the beginnings of the texts of those targets that are memories or turns."""
    return {found[0]: " ".join(found[1].split()) for found in _select(connection, _TEXTS, targets)}


def _select(connection: apsw.Connection, queries: tuple[str, ...], targets: Iterable[str]) -> Iterator[Any]:
    ids = [target for target in dict.fromkeys(targets) if " " not in target]
    for part in split_evenly(ids, _IN_LIMIT):
        for query in queries:
            yield from connection.execute(query.format(marks=", ".join("?" * len(part))), part)
