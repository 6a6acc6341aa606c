"""What this machine changed, made ready to be pushed, and what the server said to it. SQLite only."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.credentials import describe_kinds, redact
from memoryd.daemon.shared import changes
from memoryd.daemon.shared.changes import Body
from memoryd.daemon.shared.session import Session
from memoryd.daemon.store import shared
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.shared import Queued, Version


class Outgoing(NamedTuple):
    """A version to be pushed: what the server is given, and which change of the outbox it is."""

    queued: Queued
    record: dict[str, Any]


def prepare(session: Session, queued: Sequence[Queued]) -> list[Outgoing]:
    """Name the versions of memories in the outbox; return those that are to be pushed."""
    here = session.read([one.memory for one in queued])
    going = []
    for one in queued:
        row, version, body = here[one.memory]
        if version.pushed or not (version.version or version.purged) or not _may_leave(session, row):
            shared.unqueue(session.connection, one.memory, one.change)
            continue
        if body is not None and (reason := _find_credential(session, body)):
            shared.note_stuck(session.connection, one, reason, session.core.clock())
            continue
        shared.put_version(session.connection, version)
        going.append(Outgoing(one, _record(row, version, body)))
    return going


def _find_credential(session: Session, body: Body) -> str:
    """Return why a body may not leave although it was stored: somebody let a credential in."""
    kinds: Counter[str] = Counter()
    redact(changes.read_text(body), kinds, session.core.privacy.allowed)
    return f"It holds what looks like {describe_kinds(kinds)}; remove it, to share the memory." if kinds else ""


def _may_leave(session: Session, row: Row | None) -> bool:
    """Return whether a version may leave this machine: of a memory that is shared already, or that may be."""
    if row is None or shared.read_versions(session.connection, [row.id]):
        return True
    return changes.may_leave(row, bool(session.root.conversations), shared.is_named(session.connection, row.id))


def acknowledge(session: Session, going: Sequence[Outgoing], accepted: dict[str, str]) -> None:
    """Note what the server took, by id and version."""
    known = shared.read_versions(session.connection, list(accepted))
    for one in going:
        id = one.queued.memory
        if accepted.get(id) != one.record["vtag"] or id not in known:
            continue
        if (known[id].version, bool(known[id].purged)) == (one.record["vtag"], one.record["purged"]):
            shared.put_version(session.connection, msgspec.structs.replace(known[id], pushed=1))
        shared.unqueue(session.connection, id, one.queued.change)


def requeue(session: Session, ids: Sequence[str]) -> None:
    """Push memories again that the server lost."""
    for here in session.read(ids).values():
        session.settle(msgspec.structs.replace(here.version, pushed=0))


def follow_deletion(session: Session, ids: Sequence[str]) -> None:
    """Delete what the server forgot; what was changed here since is pushed as it is."""
    for id, here in session.read(ids).items():
        if not here.version.pushed:
            session.settle(here.version)
            continue
        session.delete(here)
        shared.forget_version(session.connection, id)
        shared.unqueue(session.connection, id)


def _record(row: Row | None, version: Version, body: Body | None) -> dict[str, Any]:
    """Return what the server is given of a version."""
    said = {} if body is None else {**msgspec.json.decode(version.further), **msgspec.to_builtins(body)}
    return {
        "id": version.memory,
        "vtag": version.version,
        "mtag": changes.name_merged(version.version),
        "anc": version.ancestors,
        "ns": version.namespace,
        "key": None if body is None else body.key,
        "content_hash": None if row is None or body is None else row.content_hash.hex(),  # equal texts are merged
        "body": said,
        "deleted": body is None,
        "purged": bool(version.purged),
        "conflict_of": version.conflict_of,
    }
