"""The chunks of one file as rows of `memories`, and the replacement of its former rows by them.

A row with the same text as a chunk keeps its id and vector and gets new line numbers, so an edit embeds only what it
changed. Everything in a row is derived from the file, so rebuilding the index gives the same rows and ids, except that
chunks of a moved file keep the ids of its former path.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_word, content_hash, metadata_text
from memoryd.daemon.store import namespaces, rows, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.workspaces import hosts
from memoryd.daemon.workspaces.documents.document import Chunk, Document
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

SOURCE = "file"
_HEADING, _TAGS = "heading", "tags"
_MEMORY = "memory"  # the folder whose sub-folders are namespaces
_UPDATED = ("start_line", "end_line", "expires_at", "pinned", "created_at", "updated_at")  # in rows that are kept
_DATED = re.compile(r"(\d{4}-\d\d-\d\d(?!\d)|\d{8}(?=(?:\d{4}|\d{6})?(?!\d)))")  # 2026-03-15, 20260315, 202603151230
_Key = tuple[Any, ...]


class WantedChunk(NamedTuple):
    """The row of a chunk, and the names that it links to."""

    row: Row
    links: frozenset[str]


class File(NamedTuple):
    """The chunks that the index should have for one file."""

    path: str  # absolute
    namespace: str
    wanted: list[WantedChunk]


class Difference(NamedTuple):
    """The rows that were added and deleted for a file, and how many were kept."""

    new: list[int]
    gone: list[int]
    kept: int


def namespace_of(workspace: StoredWorkspace, relative: str) -> str:
    """Return the namespace of a file: the workspace's, or one inside it for a sub-folder of `memory`.

    An agent's own notes are in the one above.
    """
    if hosts.find_host(workspace):
        return workspace.namespace.rpartition("/")[0]
    parts = relative.split("/")
    inner = len(parts) > 2 and parts[0] == _MEMORY
    return f"{workspace.namespace}/{parts[1]}" if inner else workspace.namespace


def find_date(relative: str) -> float | None:
    """Return the date at the beginning of a file's name in UTC seconds, None if there is none."""
    begins = _DATED.match(relative.rpartition("/")[2])
    try:
        return datetime.fromisoformat(begins[1]).replace(tzinfo=UTC).timestamp() if begins else None
    except ValueError:  # the 31st of February
        return None


def absolute_path(workspace: StoredWorkspace, relative: str) -> str:
    """Return the absolute path of a file, as in the rows of its chunks."""
    return f"{str(workspace.root).rstrip('/')}/{relative}"


def build_file(workspace: StoredWorkspace, relative: str, document: Document) -> File:
    """Return the chunks of a file that was read; raise `Invalid` if they cannot be indexed."""
    path = absolute_path(workspace, relative)
    namespace = namespaces.check(namespace_of(workspace, relative))
    front, host = document.front, hosts.find_host(workspace)
    kind = hosts.find_type(front) if host else front.type
    check_word("type", kind)
    changed_at = document.mtime_ns / 1e9
    date = document.front.created_at or find_date(relative) or document.front.changed_at
    taken: dict[bytes, int] = {}
    wanted = []
    for chunk in document.chunks:
        text_hash = vectors.text_hash(rows.build_embedded_text(chunk.content, chunk.heading))
        taken[text_hash] = taken.get(text_hash, 0) + 1
        row = Row(
            row=0,
            id=_id(path, text_hash, taken[text_hash]),
            namespace=0,  # set by `put`, in the transaction
            type=kind,
            source=host or SOURCE,
            origin="file",
            tier=DOCUMENTS,
            importance=0.5,
            created_at=changed_at if date is None else date,
            updated_at=changed_at,
            expires_at=front.expires_at,
            pinned=int(front.pinned),
            path=path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            content_hash=content_hash(chunk.content),
            text_hash=text_hash,
            metadata=_metadata(document, chunk),
            content=chunk.content,
        )
        wanted.append(WantedChunk(row, frozenset(chunk.links)))
    return File(path, namespace, wanted)


def _id(path: str, text_hash: bytes, number: int) -> str:
    """Return an id that depends only on the path, the text and its count in the file."""
    return hashlib.sha256(b"%s\0%s\0%d" % (path.encode("utf-8", "surrogateescape"), text_hash, number)).hexdigest()[:32]


def _metadata(document: Document, chunk: Chunk) -> str:
    front = document.front
    tags = list(dict.fromkeys([*front.tags, *chunk.tags]))
    metadata = {key: value for key, value in front.metadata.items() if key not in (_HEADING, _TAGS)}
    if tags:
        metadata[_TAGS] = tags
    if chunk.heading:
        metadata[_HEADING] = chunk.heading
    return metadata_text(metadata)


def _key(row: Row) -> _Key:
    return row.namespace, row.type, row.text_hash, row.content_hash, row.metadata


def put(core: Core, transaction: Transaction, file: File) -> Difference:
    """Replace the rows of a file by its present chunks, within the writer's transaction."""
    connection = transaction.connection
    number = core.store.namespaces.ensure(transaction, file.namespace) if file.wanted else 0
    there: dict[_Key, list[Row]] = {}
    present = rows.read_rows(connection, workspaces.find_rows(connection, file.path))
    for row in sorted(present.values(), key=lambda row: (-(row.start_line or 0), -row.row)):
        there.setdefault(_key(row), []).append(row)
    new: list[WantedChunk] = []
    kept: list[tuple[Row, WantedChunk]] = []
    for wanted in file.wanted:
        wanted.row.namespace = number
        same = there.get(_key(wanted.row))
        if same:
            kept.append((same.pop(), wanted))
        else:
            new.append(wanted)
    gone = [row.row for rest in there.values() for row in rest]
    rows.delete(connection, gone)
    _update(connection, kept)
    added = _add(connection, new, {row.id for row, _ in kept})
    return Difference(added, gone, len(kept))


def _update(connection: Connection, kept: Sequence[tuple[Row, WantedChunk]]) -> None:
    changed = [
        (*(getattr(wanted.row, name) for name in _UPDATED), row.row)
        for row, wanted in kept
        if any(getattr(row, name) != getattr(wanted.row, name) for name in _UPDATED)
    ]
    rows.change_many(connection, _UPDATED, changed)
    known = workspaces.read_mentioned(connection, (row.row for row, _ in kept))
    for row, wanted in kept:
        if known.get(row.row, set()) != wanted.links:
            workspaces.unmention(connection, row.row)
            workspaces.mention(connection, row.row, wanted.links)


def _add(connection: Connection, new: Iterable[WantedChunk], taken: set[str]) -> list[int]:
    added = []
    for wanted in new:
        row, again = wanted.row, 0
        while row.id in taken or rows.read_ids(connection, [row.id]):
            again += 1  # the id is in use by a former equal chunk, or by an import
            row.id = _id(row.id, row.text_hash, again)
        taken.add(row.id)
        number = rows.insert(connection, row)
        workspaces.mention(connection, number, wanted.links)
        added.append(number)
    return added
