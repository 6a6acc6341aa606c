"""Versions: what a memory says to other machines, how one version descends from another, what may leave this machine.

A version is named by a hash of its parents and of what it says, so a push that is repeated names the same version, and
equal changes to the same version on two machines are one. No clock takes part.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from memoryd.client.protocol import Vote
from memoryd.daemon.store import feedback
from memoryd.daemon.store.present import convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.shared import Version
from memoryd.daemon.store.tiers import DOCUMENTS

MAX_ANCESTORS = 24
_DELETED = hashlib.sha256(b"deleted").digest()
_encode = msgspec.json.Encoder(order="deterministic").encode
# What the daemon draws from conversations by itself: how it names where a memory came from.
DERIVED = frozenset({"extraction", "session_summary"})


class Body(Struct, kw_only=True):
    """What a memory says to other machines. Tier, access counts, neighbours and the graph are each machine's own."""

    key: str | None = None
    type: str
    source: str
    importance: float
    created_at: float
    updated_at: float
    expires_at: float | None = None
    pinned: bool = False
    superseded_by: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    turns: int = 0
    votes: list[Vote] = []
    summary: str = ""
    metadata: dict[str, Any] = {}
    content: str


def read_body(row: Row) -> Body:
    """Return what a memory says."""
    return convert_to(
        Body,
        row,
        pinned=bool(row.pinned),
        votes=feedback.decode_votes(row.feedback),
        metadata=msgspec.json.decode(row.metadata),
    )


# What `merge` takes of both: each key of the metadata, a pin, the vote of each caller.
MERGED = ("metadata", "pinned", "votes")


def read_text(body: Body) -> str:
    """Return all that a person or a program may have written into a memory."""
    return "\n".join([body.content, body.summary, msgspec.json.encode(body.metadata).decode()])


def hash_body(namespace: str, body: Body | None, conflict_of: str | None) -> bytes:
    """Return the hash of what a version says, where, and beside what; when it was changed is no part of it."""
    if body is None:
        return _DELETED
    said = {**msgspec.structs.asdict(body), "updated_at": 0.0}
    return hashlib.sha256(_encode([namespace, conflict_of, said])).digest()


def name_version(memory: str, parents: Iterable[str], body: bytes) -> str:
    """Return the name of the version of a memory that descends from its parents and says what has this hash."""
    parts = [memory.encode(), *(parent.encode() for parent in sorted(parents)), body]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def name_sibling(memory: str, version: str) -> str:
    """Return the id of the memory that holds a version of a memory which another one has the place of."""
    return hashlib.sha256(f"sibling {memory} {version}".encode()).hexdigest()[:32]


def name_merged(version: str) -> str:
    """Return the name of the version that a memory gets which the server merged into an equal one."""
    return hashlib.sha256(f"merged {version}".encode()).hexdigest()[:32]


def descend(present: Version, body: bytes, further: Iterable[str] = ()) -> tuple[str, list[str]]:
    """Return name and ancestors of what comes after a version, and after `further` ones that are merged into it."""
    parents = [parent for parent in (*further, present.version) if parent]
    ancestors = list(dict.fromkeys([*parents, *present.ancestors]))[:MAX_ANCESTORS]
    return name_version(present.memory, parents, body), ancestors


def is_ancestor(version: str, ancestors: Iterable[str]) -> bool:
    """Return whether a version is among the ancestors of another one."""
    return version in ancestors


def merge(theirs: Body, mine: Body) -> Body | None:
    """Return what two versions say together if their texts are equal and nothing else disagrees, else None."""
    agreed = {name: getattr(theirs, name) for name in (*MERGED, "updated_at", "importance", "summary")}
    if msgspec.structs.replace(mine, **agreed) != theirs:
        return None
    if any(mine.metadata[key] != theirs.metadata[key] for key in mine.metadata.keys() & theirs.metadata.keys()):
        return None
    votes = feedback.merge(feedback.text(theirs.votes), feedback.text(mine.votes))
    return msgspec.structs.replace(
        theirs,
        metadata={**mine.metadata, **theirs.metadata},
        pinned=theirs.pinned or mine.pinned,
        votes=feedback.decode_votes(votes),
    )


def is_derived(row: Row) -> bool:
    """Return whether a memory is, or was drawn from, something that was observed rather than added."""
    return row.turns > 0 or row.source in DERIVED or "turns" in msgspec.json.decode(row.metadata)


def may_leave(row: Row, conversations: bool, named: bool) -> bool:
    """Return whether a memory of a shared namespace may be pushed for the first time."""
    return row.tier != DOCUMENTS and (conversations or named or not is_derived(row))
