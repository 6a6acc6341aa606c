"""What other machines changed, applied here; what this machine changed, made ready to be pushed. SQLite only.

A version from the server replaces the one here when it descends from it; an older one is left; of two that do not
descend from one another, the server's keeps the id and the one from here becomes a sibling, a memory of its own that is
shown beside it. An edit wins against a deletion, a purge against everything. Everything runs in the writer's
transaction, as one operation of the log.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import Record
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import removing, transfer
from memoryd.daemon.shared import changes
from memoryd.daemon.shared.changes import Body
from memoryd.daemon.store import feedback, history, links, rows, shared, vectors
from memoryd.daemon.store.hashes import content_hash
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.shared import Queued, Root, Version
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.writer import Transaction

KIND = f"{history.JOB}shared"

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


class Outgoing(NamedTuple):
    """A version to be pushed: what the server is given, and which change of the outbox it is."""

    queued: Queued
    record: dict[str, Any]


class Applied(Struct):
    """What became of the memories that came from the server."""

    created: int = 0
    changed: int = 0
    deleted: int = 0
    conflicts: list[str] = []
    refused: list[str] = []


class _Here(NamedTuple):
    """A memory as it is here: its row, its version with what was changed since, whether that is to be pushed."""

    row: Row | None
    version: Version
    body: Body | None


class Session:
    """One transaction's work on one root."""

    def __init__(self, core: Core, transaction: Transaction, root: Root, first_copy: bool = False) -> None:
        self._core, self._transaction, self._root = core, transaction, root
        self._connection = transaction.connection
        self._tier = L2 if first_copy else L1
        self._namespaces = shared.shared_namespaces(self._connection, root.id)
        self._operation: int | None = None
        self.done = Applied()

    # Here ------------------------------------------------------------------------------------------------------------

    def _read(self, ids: Sequence[str]) -> dict[str, _Here]:
        """Return memories as they are here; a change that has no name yet gets one."""
        found, known = rows.read_ids(self._connection, ids), shared.read_versions(self._connection, ids)
        return {id: self._name(id, found.get(id), known.get(id)) for id in ids}

    def _name(self, id: str, row: Row | None, version: Version | None) -> _Here:
        version = version or Version(memory=id, root=self._root.id)
        if row is not None and row.namespace not in self._namespaces:
            place = self._core.store.namespaces.name(row.namespace)
            row = row if place == version.namespace else None  # it left what is shared
        body = None if row is None else changes.read_body(row)
        if (body is None and not version.version) or version.purged:
            return _Here(row, version, body)
        place = version.namespace if row is None else self._core.store.namespaces.name(row.namespace)
        said = changes.hash_body(place, body)
        if said == version.body:
            return _Here(row, version, body)
        name, ancestors = changes.descend(version, said)
        own = {"machine": "", "author": "", "pushed": 0, "namespace": place}
        changed = msgspec.structs.replace(version, version=name, ancestors=ancestors, body=said, **own)
        return _Here(row, changed, body)

    def prepare(self, queued: Sequence[Queued]) -> list[Outgoing]:
        """Name the versions of memories in the outbox; return those that are to be pushed."""
        here = self._read([one.memory for one in queued])
        going = []
        for one in queued:
            row, version, body = here[one.memory]
            if version.pushed or not (version.version or version.purged) or not self._may_leave(row, version):
                shared.unqueue(self._connection, one.memory, one.change)
                continue
            shared.put_version(self._connection, version)
            going.append(Outgoing(one, _record(row, version, body)))
        return going

    def _may_leave(self, row: Row | None, version: Version) -> bool:
        """Return whether a version may leave this machine: of a memory that is shared already, or that may be."""
        if row is None or shared.read_versions(self._connection, [row.id]):
            return True
        return changes.may_leave(row, bool(self._root.conversations), shared.is_named(self._connection, row.id))

    def acknowledge(self, going: Sequence[Outgoing], accepted: dict[str, str]) -> None:
        """Note what the server took, by id and version."""
        known = shared.read_versions(self._connection, list(accepted))
        for one in going:
            id = one.queued.memory
            if accepted.get(id) != one.record["vtag"] or id not in known:
                continue
            if known[id].version == one.record["vtag"]:
                shared.put_version(self._connection, msgspec.structs.replace(known[id], pushed=1))
            shared.unqueue(self._connection, id, one.queued.change)

    def requeue(self, ids: Sequence[str]) -> None:
        """Push memories again that the server lost."""
        for here in self._read(ids).values():
            self._settle(msgspec.structs.replace(here.version, pushed=0))

    def follow_deletion(self, ids: Sequence[str]) -> None:
        """Delete what the server forgot; what was changed here since is pushed as it is."""
        for id, here in self._read(ids).items():
            if not here.version.pushed:
                self._settle(here.version)
                continue
            self._delete(here)
            shared.forget_version(self._connection, id)
            shared.unqueue(self._connection, id)

    # From the server -------------------------------------------------------------------------------------------------

    def apply(self, remotes: Sequence[Remote]) -> None:
        """Apply versions of the server."""
        here = self._read([remote.id for remote in remotes])
        for remote in remotes:
            try:
                self._apply(remote, here[remote.id])
            except (MemorydError, msgspec.MsgspecError) as error:
                self.done.refused.append(remote.id)
                log.warning("memory %s from %s cannot be used: %s", remote.id[:8], self._root.name, error)

    def _apply(self, remote: Remote, here: _Here) -> None:
        mine = here.version
        if remote.purged:
            self._purge(remote, here)
        elif mine.purged or (mine.version and remote.vtag == mine.version):
            if not mine.purged:
                self._settle(msgspec.structs.replace(mine, pushed=1))
        elif not mine.version or changes.is_ancestor(mine.version, remote.anc):
            self._take(remote, here)
        elif changes.is_ancestor(remote.vtag, mine.ancestors):
            self._settle(msgspec.structs.replace(mine, pushed=0))
        else:
            self._branch(remote, here)

    def _branch(self, remote: Remote, here: _Here) -> None:
        """Decide between two versions that do not descend from one another."""
        mine = here.version
        if here.body is None:
            self._take(remote, here)
            return
        if remote.deleted:
            name, ancestors = changes.descend(mine, mine.body, [remote.vtag])
            self._settle(msgspec.structs.replace(mine, version=name, ancestors=ancestors, pushed=0))
            return
        theirs = _decode(remote)
        both = changes.merge(theirs, here.body) if remote.ns == mine.namespace else None
        if both is None:
            self._split(here)
        self._take(remote, here)
        if both is not None and both != theirs:  # a change of what the server has
            [row] = rows.read_ids(self._connection, [remote.id]).values()
            made = _row(row.id, row.namespace, both)
            merged = {"metadata": made.metadata, "pinned": made.pinned, "feedback": made.feedback}
            rows.change(self._connection, row.row, merged)

    def _split(self, here: _Here) -> None:
        """Make what is here a memory of its own beside the one that takes its id."""
        row, mine = here.row, here.version
        assert row is not None
        id = changes.name_sibling(row.id, mine.version)
        if id in rows.read_ids(self._connection, [id]):
            return
        other = Version(memory=id, root=self._root.id, conflict_of=mine.conflict_of or row.id, further=mine.further)
        given = {"namespace": mine.namespace, "machine": mine.machine, "author": mine.author}
        shared.put_version(self._connection, msgspec.structs.replace(other, **given))
        sibling = msgspec.structs.replace(row, row=0, id=id, tier=self._tier, access_count=0, last_accessed_at=None)
        self._insert(sibling)
        self.done.conflicts.append(row.id)

    def _take(self, remote: Remote, here: _Here) -> None:
        """Put the server's version in place of what is here."""
        row: Row | None = None
        if remote.deleted:
            self._leave_metadata(remote, here)
            self._delete(here)
        else:
            self._write(remote)
            row = rows.read_ids(self._connection, [remote.id])[remote.id]  # a trigger may have broken a circle
        body = None if row is None else changes.read_body(row)
        further = "{}" if row is None else _read_further(remote.body)
        version = Version(
            memory=remote.id,
            root=self._root.id,
            version=remote.vtag,
            ancestors=remote.anc,
            body=changes.hash_body(remote.ns, body),
            pushed=1,
            namespace=remote.ns,
            conflict_of=remote.conflict_of,
            machine=remote.machine,
            author=remote.author,
            further=further,
        )
        self._settle(version)
        self._add_links(remote.id, remote.conflict_of)

    def _settle(self, version: Version) -> None:
        """Write a version; the outbox has the memory exactly if it is still to be pushed."""
        shared.put_version(self._connection, version)
        if version.pushed:
            shared.unqueue(self._connection, version.memory)
        else:
            shared.queue(self._connection, version.memory, self._root.id)

    def _add_links(self, id: str, conflict_of: str | None) -> None:
        """Link versions of one memory as a contradiction, whichever of them came first."""
        pairs = [(sibling, id) for sibling in shared.read_siblings(self._connection, id)]
        for one, other in [*pairs, *([(id, conflict_of)] if conflict_of else [])]:
            if len(rows.read_ids(self._connection, [one, other])) == 2:
                links.add(self._connection, one, other, links.CONTRADICTS, self._core.clock())

    def _leave_metadata(self, remote: Remote, here: _Here) -> None:
        """Keep the metadata of a memory that the server merged into an equal one."""
        if remote.merged_into is None or here.row is None:
            return
        target = rows.read_ids(self._connection, [remote.merged_into]).get(remote.merged_into)
        if target is None:
            return
        mine, theirs = (msgspec.json.decode(row.metadata) for row in (here.row, target))
        both = {**mine, **theirs}
        if both != theirs:
            self._record(target.id, target)
            rows.change(self._connection, target.row, {"metadata": checks.metadata_text(both)})

    # Rows ------------------------------------------------------------------------------------------------------------

    def _write(self, remote: Remote) -> None:
        body = _decode(remote)
        number = self._core.store.namespaces.ensure(self._transaction, remote.ns)
        made = _row(remote.id, number, body)
        old = rows.read_ids(self._connection, [remote.id]).get(remote.id)
        if old is None:
            made.tier = self._tier
            self._insert(made)
            self.done.created += 1
            return
        kept = {name: getattr(old, name) for name in ("row", "tier", "access_count", "last_accessed_at")}
        made = msgspec.structs.replace(made, **kept)
        different = {name: new for name in rows.COLUMNS if (new := getattr(made, name)) != getattr(old, name)}
        if different:
            self._record(old.id, old)
            rows.change(self._connection, old.row, different)
            if not different.keys().isdisjoint(("namespace", "type", "text_hash")):
                self._transaction.after_commit(lambda: self._core.embedding.refresh([old.row]))
            self.done.changed += 1

    def _insert(self, row: Row) -> None:
        self._record(row.id, None, row.namespace)
        row.row = rows.insert(self._connection, row)
        given = row.row, row.namespace, row.type
        self._transaction.after_commit(lambda: self._core.embedding.index_row(*given, None))

    def _delete(self, here: _Here) -> None:
        if here.row is not None:
            removing.remove(self._core, self._transaction, [here.row], self._begin())
            self.done.deleted += 1

    def _record(self, id: str, before: Row | None, namespace: int | None = None) -> None:
        number = before.namespace if before is not None else namespace
        assert number is not None
        name = self._core.store.namespaces.name(number)
        history.record(self._connection, self._begin(), id, name, before)

    def _begin(self) -> int:
        if self._operation is None:
            self._operation = history.begin(self._connection, KIND, self._root.name, self._core.clock())
        return self._operation

    # Purging ---------------------------------------------------------------------------------------------------------

    def purge(self, ids: Sequence[str]) -> list[str]:
        """Erase memories here and, with the next push, everywhere; return those that are, their siblings included."""
        done: list[str] = []
        waiting = list(ids)
        while waiting:
            id = waiting.pop()
            [here] = self._read([id]).values()
            if here.version.purged:
                continue
            said = changes.hash_body(here.version.namespace, None)
            name, ancestors = changes.descend(here.version, said)
            given = {"version": name, "ancestors": ancestors, "body": said, "pushed": 0}
            self._erase(msgspec.structs.replace(here.version, **given))
            done.append(id)
            waiting += shared.read_siblings(self._connection, id)
        return done

    def _purge(self, remote: Remote, here: _Here) -> None:
        given = {"version": remote.vtag, "ancestors": remote.anc, "namespace": remote.ns, "pushed": 1}
        self._erase(msgspec.structs.replace(here.version, **given))
        self.done.deleted += here.row is not None
        self.purge(shared.read_siblings(self._connection, remote.id))

    def _erase(self, version: Version) -> None:
        """Erase a memory with its history; its version stays, so that it never comes back."""
        found = rows.read_ids(self._connection, [version.memory]).get(version.memory)
        number = shared.erase(self._connection, version.memory, found)
        if number is not None:
            self._transaction.after_commit(lambda: self._core.embedding.remove_row(number))
        emptied = msgspec.structs.replace(version, purged=1, further="{}", machine="", author="")
        self._settle(emptied)


def _record(row: Row | None, version: Version, body: Body | None) -> dict[str, Any]:
    """Return what the server is given of a version."""
    said = {} if body is None else {**msgspec.json.decode(version.further), **msgspec.to_builtins(body)}
    return {
        "id": version.memory,
        "vtag": version.version,
        "mtag": changes.name_merged(version.version),
        "anc": version.ancestors,
        "ns": version.namespace,
        "content_hash": None if row is None or body is None else changes.content_hash(row),
        "body": said,
        "deleted": body is None,
        "purged": bool(version.purged),
        "conflict_of": version.conflict_of,
    }


def _decode(remote: Remote) -> Body:
    """Return what a version says; raise `Invalid` or `MsgspecError` where it cannot be a memory here."""
    body = msgspec.json.decode(remote.body, type=Body)
    given = {name: getattr(body, name) for name in Record.__struct_fields__ if hasattr(body, name)}
    transfer.check_record(Record(id=remote.id, namespace=remote.ns, tier=L1, **given))
    return body


def _read_further(body: msgspec.Raw) -> str:
    """Return the fields of a body that this memoryd does not know."""
    found = msgspec.json.decode(body)
    known = {name: value for name, value in found.items() if name not in Body.__struct_fields__}
    return msgspec.json.encode(known).decode()


def _row(id: str, namespace: int, body: Body) -> Row:
    return Row(
        id=id,
        namespace=namespace,
        tier=L1,
        content_hash=content_hash(body.content),
        text_hash=vectors.text_hash(rows.text_to_embed(body.content, turns=body.turns)),
        feedback=feedback.text(body.votes),
        metadata=checks.metadata_text(body.metadata),
        **{name: getattr(body, name) for name in changes.SAME},
        pinned=int(body.pinned),
    )
