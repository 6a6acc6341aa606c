"""What other machines changed, applied here. SQLite only.

A version from the server replaces the one here when it descends from it; an older one is left; of two that do not
descend from one another, the server's keeps the id and the one from here becomes a sibling, a memory of its own that is
shown beside it. An edit wins against a deletion, a purge against everything.
"""

import logging
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from memoryd.client.errors import Conflict, Invalid, MemorydError
from memoryd.client.protocol import Record
from memoryd.daemon.core import checks
from memoryd.daemon.memories import transfer
from memoryd.daemon.shared import changes
from memoryd.daemon.shared.changes import Body
from memoryd.daemon.shared.session import Here, Session
from memoryd.daemon.store import feedback, links, rows, shared, vectors
from memoryd.daemon.store.hashes import content_hash
from memoryd.daemon.store.namespaces import list_enclosing
from memoryd.daemon.store.present import convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.shared import Version
from memoryd.daemon.store.tiers import L1

log = logging.getLogger(__name__)


class Remote(Struct, kw_only=True):
    """A memory as the server has it."""

    id: str
    seq: int
    vtag: str
    anc: list[str]
    ns: str
    body: msgspec.Raw = msgspec.Raw(b"{}")
    deleted: bool = False
    purged: bool = False
    conflict_of: str | None = None
    merged_into: str | None = None
    machine: str = ""
    author: str = ""


def apply(session: Session, remotes: Sequence[Remote]) -> None:
    """Apply versions of the server."""
    batch = {remote.id for remote in remotes}
    here = session.read([remote.id for remote in remotes])
    for remote in remotes:
        try:
            session.origin = f"{remote.machine} ({remote.author})"
            _free_key(session, remote, batch)
            _apply(session, remote, here[remote.id])
        except (MemorydError, msgspec.MsgspecError, RecursionError) as error:
            session.done.refused.append(remote.id)
            log.warning("memory %s from %s cannot be used: %s", remote.id[:8], session.root.name, error)


def _apply(session: Session, remote: Remote, here: Here) -> None:
    mine = here.version
    if remote.purged:
        _purge(session, remote, here)
    elif mine.purged or (mine.version and remote.vtag == mine.version):
        if not mine.purged:
            session.settle(msgspec.structs.replace(mine, pushed=1))
    elif not mine.version or changes.is_ancestor(mine.version, remote.anc):
        _take(session, remote, here)
    elif changes.is_ancestor(remote.vtag, mine.ancestors):
        session.settle(msgspec.structs.replace(mine, pushed=0))
    else:
        _branch(session, remote, here)


def _free_key(session: Session, remote: Remote, batch: set[str]) -> None:
    """Take a key from the memory here that has it: another machine gave it to another memory first.

    What had it becomes the other version of that memory, unless the server's version of it comes with the same batch.
    """
    body = None if remote.deleted or remote.purged else _decode(remote, session.root.name)
    number = session.core.store.namespaces.find_number(remote.ns)
    if body is None or body.key is None or number is None:
        return
    holder = rows.read_key(session.connection, number, body.key)
    if holder is None or holder.id == remote.id:
        return
    [held] = session.read([holder.id]).values()
    session.record(holder.id, holder)
    rows.change(session.connection, holder.row, {"key": None})
    if holder.id in batch:
        return
    beside = msgspec.structs.replace(held.version, conflict_of=remote.id, root=session.root.id, pushed=0)
    session.settle(msgspec.structs.replace(beside, namespace=remote.ns))
    session.done.conflicts.append(remote.id)


def _branch(session: Session, remote: Remote, here: Here) -> None:
    """Decide between two versions that do not descend from one another."""
    mine = here.version
    if here.body is None:
        _take(session, remote, here)
        return
    if remote.deleted:
        name, ancestors = changes.descend(mine, mine.body, [remote.vtag])
        session.settle(msgspec.structs.replace(mine, version=name, ancestors=ancestors, pushed=0))
        return
    theirs = _decode(remote, session.root.name)
    both = changes.merge(theirs, here.body) if remote.ns == mine.namespace else None
    if both is None:
        _split(session, here)
    _take(session, remote, here)
    if both is not None and both != theirs:  # a change of what the server has
        [row] = rows.read_ids(session.connection, [remote.id]).values()
        made = _row(row.id, row.namespace, both)
        merged = {"metadata": made.metadata, "pinned": made.pinned, "feedback": made.feedback}
        rows.change(session.connection, row.row, merged)


def _split(session: Session, here: Here) -> None:
    """Make what is here a memory of its own beside the one that takes its id."""
    row, mine = here.row, here.version
    assert row is not None
    id = changes.name_sibling(row.id, mine.version)
    if id in rows.read_ids(session.connection, [id]):
        return
    other = Version(memory=id, root=session.root.id, conflict_of=mine.conflict_of or row.id, further=mine.further)
    given = {"namespace": mine.namespace, "machine": mine.machine, "author": mine.author}
    shared.put_version(session.connection, msgspec.structs.replace(other, **given))
    sibling = msgspec.structs.replace(row, row=0, id=id, tier=session.tier, access_count=0, last_accessed_at=None)
    session.insert(sibling)
    session.done.conflicts.append(row.id)


def _take(session: Session, remote: Remote, here: Here) -> None:
    """Put the server's version in place of what is here."""
    row: Row | None = None
    if remote.deleted:
        _leave_metadata(session, remote, here)
        session.delete(here)
    else:
        _write(session, remote)
        row = rows.read_ids(session.connection, [remote.id])[remote.id]  # a trigger may have broken a circle
    body = None if row is None else changes.read_body(row)
    version = Version(
        memory=remote.id,
        root=session.root.id,
        version=remote.vtag,
        ancestors=remote.anc,
        body=changes.hash_body(remote.ns, body, remote.conflict_of),
        pushed=1,
        namespace=remote.ns,
        conflict_of=remote.conflict_of,
        machine=remote.machine,
        author=remote.author,
        further="{}" if row is None else _read_further(remote.body),
    )
    session.settle(version)
    _add_links(session, remote.id, remote.conflict_of)


def _add_links(session: Session, id: str, conflict_of: str | None) -> None:
    """Link versions of one memory as a contradiction, whichever of them came first."""
    pairs = [(sibling, id) for sibling in shared.read_siblings(session.connection, id)]
    for one, other in [*pairs, *([(id, conflict_of)] if conflict_of else [])]:
        if len(rows.read_ids(session.connection, [one, other])) == 2:
            links.add(session.connection, one, other, links.CONTRADICTS, session.core.clock())


def _leave_metadata(session: Session, remote: Remote, here: Here) -> None:
    """Keep the metadata of a memory that the server merged into an equal one."""
    if remote.merged_into is None or here.row is None:
        return
    target = rows.read_ids(session.connection, [remote.merged_into]).get(remote.merged_into)
    if target is None:
        return
    mine, theirs = (msgspec.json.decode(row.metadata) for row in (here.row, target))
    both = {**mine, **theirs}
    if both != theirs:
        session.record(target.id, target)
        rows.change(session.connection, target.row, {"metadata": checks.metadata_text(both)})


def _write(session: Session, remote: Remote) -> None:
    body = _decode(remote, session.root.name)
    made = _row(remote.id, session.core.store.namespaces.ensure(session.transaction, remote.ns), body)
    old = rows.read_ids(session.connection, [remote.id]).get(remote.id)
    if old is None:
        made.tier = session.tier
        session.insert(made)
        session.done.created += 1
        return
    is_strange = not shared.read_versions(session.connection, [old.id]) and old.namespace not in session.namespaces
    if is_strange and (old.content, old.namespace) != (made.content, made.namespace):
        raise Conflict(f"Its id is that of a memory that is not shared here, {old.id[:8]}.")
    kept = {name: getattr(old, name) for name in ("row", "tier", "access_count", "last_accessed_at", "neighbours")}
    made = msgspec.structs.replace(made, **kept)
    different = {name: new for name in rows.COLUMNS if (new := getattr(made, name)) != getattr(old, name)}
    if different:
        session.record(old.id, old)
        rows.change(session.connection, old.row, different)
        if not different.keys().isdisjoint(("namespace", "type", "text_hash")):
            session.transaction.after_commit(lambda: session.core.embedding.refresh([old.row]))
        session.done.changed += 1


def _purge(session: Session, remote: Remote, here: Here) -> None:
    if here.version.purged and here.version.pushed:
        return
    given = {"version": remote.vtag, "ancestors": remote.anc, "namespace": remote.ns, "pushed": 1}
    session.erase(msgspec.structs.replace(here.version, **given))


def read_row(remote: Remote, root: str, namespace: int) -> Row:
    """Return a version as the memory that it would be here; raise `Invalid` or `MsgspecError` where it cannot be."""
    return _row(remote.id, namespace, _decode(remote, root))


def _decode(remote: Remote, root: str) -> Body:
    """Return what a version says; raise `Invalid` or `MsgspecError` where it cannot be a memory here."""
    if root not in list_enclosing(remote.ns):
        raise Invalid(f"It is in {remote.ns or 'no namespace'}, not in {root}.")
    body = msgspec.json.decode(remote.body, type=Body)
    transfer.check_record(convert_to(Record, body, id=remote.id, namespace=remote.ns, tier=L1))
    return body


def _read_further(body: msgspec.Raw) -> str:
    """Return the fields of a body that this memoryd does not know."""
    known = {name: value for name, value in msgspec.json.decode(body).items() if name not in Body.__struct_fields__}
    return msgspec.json.encode(known).decode()


def _row(id: str, namespace: int, body: Body) -> Row:
    return convert_to(
        Row,
        body,
        id=id,
        namespace=namespace,
        tier=L1,
        content_hash=content_hash(body.content),
        text_hash=vectors.text_hash(rows.build_embedded_text(body.content, turns=body.turns)),
        feedback=feedback.text(body.votes),
        metadata=checks.metadata_text(body.metadata),
        pinned=int(body.pinned),
    )
