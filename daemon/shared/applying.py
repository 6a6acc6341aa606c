"""What the server has, applied here. SQLite only.

The server's row is the truth: it replaces the memory here, unless that was changed here since; then the server judges
when it is pushed. Only a tombstone deletes. Rows of namespaces that were not chosen here are not stored.
"""

import logging
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.daemon.shared import bodies
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.session import ExchangeSession
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import SharedEntry, Stuck
from memoryd.daemon.store import rows

log = logging.getLogger(__name__)

UNUSABLE = (MemorydError, msgspec.MsgspecError, RecursionError, shared.Misfit)


def apply(session: ExchangeSession, remotes: Sequence[RemoteMemory]) -> None:
    """Apply rows of the feed, each by itself: one that cannot be used here is set aside, and said."""
    entries = shared.read_entries(session.connection, session.root.id, [remote.id for remote in remotes])
    coming = {remote.id for remote in remotes}
    for remote in remotes:
        entry = entries.get(remote.id)
        if entry is not None and (entry.dirty is not None or entry.lost_life is not None) and not remote.purged:
            if not (entry.tag or entry.offered):  # the server has one: a deletion here is one there
                shared.put_entry(session.connection, msgspec.structs.replace(entry, seq=-1))
            continue  # it waits for its push, which the server judges
        if entry is not None and entry.tag == remote.tag and _is_here(session, entry):
            continue
        try:
            with session.step():
                put(session, remote, entry, coming)
        except UNUSABLE as error:
            reason = f"It cannot be used here: {error}"
            shared.note_stuck(session.connection, session.root.id, Stuck(remote.id, reason), session.core.clock())
            log.warning("memory %s of %s cannot be used: %s", remote.id[:8], session.root.name, error)


def _is_here(session: ExchangeSession, entry: SharedEntry) -> bool:
    """Return whether the state of an entry is here: its memory, or that there is none."""
    return bool(entry.deleted or entry.purged) or session.read(entry) is not None


def bring(session: ExchangeSession, remotes: Sequence[RemoteMemory]) -> None:
    """Bring memories here that were on the server alone."""
    entries = shared.read_entries(session.connection, session.root.id, [remote.id for remote in remotes])
    new = [remote for remote in remotes if remote.id not in entries]
    apply(session, new)
    for remote in remotes:
        entry = entries.get(remote.id)
        if entry is not None and entry.dirty is None and not _is_here(session, entry):
            with suppress(*UNUSABLE), session.step():
                put(session, remote, entry)


def put(
    session: ExchangeSession, remote: RemoteMemory, entry: SharedEntry | None, coming: Collection[str] = ()
) -> None:
    """Put a row of the server in place of what is here of it, whatever that is; `coming` are the ids of its part."""
    _free_key(session, remote, coming)
    connection, root = session.connection, session.root
    session.origin = f"{remote.device} ({remote.author})"
    number = session.core.store.namespaces.find_number(remote.ns)
    row = session.read(entry)
    memory = entry.memory if entry else None
    is_chosen = number in session.namespaces
    if remote.purged:
        if entry is not None and not entry.purged and memory is not None:
            session.erase(memory)
    elif remote.deleted or not is_chosen:
        if row is not None:
            session.delete(row)
    else:
        assert number is not None
        body = session.core.privacy.strip(bodies.decode(remote, root.name))
        if body.superseded_by:
            body.superseded_by = shared.find_id_here(connection, root.id, body.superseded_by)
        memory = memory or choose_id(session, remote.id)
        session.write(bodies.make_row(memory, number, body))
    if entry is None and not (is_chosen and memory):
        return  # it is nothing of this machine
    if entry is not None and not (is_chosen or remote.deleted or remote.purged):
        shared.forget_entry(connection, entry)  # it is none any more
        return
    made = SharedEntry(
        root=root.id,
        id=remote.id,
        memory=None if remote.purged else memory,
        tag=remote.tag,
        seq=remote.seq,
        conflict_of=remote.conflict_of,
        purged=int(remote.purged),
        deleted=int(remote.deleted),
        namespace=row.namespace if row and remote.deleted else None,
        key=row.key if row and remote.deleted else None,
        device=remote.device,
        author=remote.author,
        further="{}" if remote.deleted or remote.purged else _read_further(session, remote),
    )
    shared.put_entry(connection, made)
    shared.forget_stuck(connection, made)
    _add_links(session, made)


def _read_further(session: ExchangeSession, remote: RemoteMemory) -> str:
    """Return what a newer memoryd says of a memory, without credentials; it goes back with a change made here."""
    return msgspec.json.encode(session.core.privacy.strip(bodies.read_further(remote.body))).decode()


def choose_id(session: ExchangeSession, id: str) -> str:
    """Return the id here of a memory that is new here: its own, unless another memory has it."""
    is_taken = rows.read_ids(session.connection, [id]) or shared.read_of_memory(session.connection, id)
    return secrets.token_hex(16) if is_taken else id


def _free_key(session: ExchangeSession, remote: RemoteMemory, coming: Collection[str]) -> None:
    """Take a key from the memory here that has it: the server has it under another one.

    What was put under it here meanwhile is judged as the other version of that one when it is pushed.
    """
    number = session.core.store.namespaces.find_number(remote.ns)
    key = None if remote.deleted or remote.purged else msgspec.json.decode(remote.body, type=_Keyed).key
    if key is None or number not in session.namespaces:
        return
    holder = rows.read_key(session.connection, number, key)
    held = shared.read_of_memory(session.connection, holder.id) if holder else None
    if holder is None or (held is not None and (held.root, held.id) == (session.root.id, remote.id)):
        return
    session.change(holder, key=None)
    if held is not None and held.root == session.root.id and held.dirty is not None and held.id not in coming:
        shared.put_entry(session.connection, msgspec.structs.replace(held, conflict_of=remote.id))
        session.done.conflicts.append(holder.id)


class _Keyed(msgspec.Struct):
    key: str | None = None


def _add_links(session: ExchangeSession, entry: SharedEntry) -> None:
    """Link versions of one memory as a contradiction, whichever of them came first."""
    connection, root = session.connection, session.root.id
    if entry.memory is None:
        return
    for sibling in shared.read_siblings(connection, root, entry.id):
        if sibling.memory:
            session.link(sibling.memory, entry.memory)
    if entry.conflict_of:
        session.link(entry.memory, shared.find_id_here(connection, root, entry.conflict_of))
