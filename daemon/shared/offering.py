"""What this machine changed, made ready to be offered, and what the server said to it. SQLite only.

An entry's tag is the version that a change here descends from. The server compares it with what it has; its answer
holds its own row where that stays, which is applied in the same transaction as the answer.
"""

import logging
import secrets
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.credentials import describe_kinds, redact
from memoryd.daemon.shared import applying, bodies
from memoryd.daemon.shared.bodies import Body
from memoryd.daemon.shared.messages import Offer, OfferReply
from memoryd.daemon.shared.session import ExchangeSession
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import SharedEntry, Stuck
from memoryd.daemon.store.rows import Row

log = logging.getLogger(__name__)

MOST_BYTES = 1_000_000  # of what is offered at once; a larger memory is offered alone
_LEAST_BYTES = 500  # of an offer beside its body


# How an entry is of which the server has everything.
_NOTHING_WAITS: dict[str, Any] = {
    "dirty": None, "offered": [], "offered_dirty": None, "lost_life": None, "lost_point": None,
}  # fmt: skip


class Outgoing(NamedTuple):
    """What is offered of an entry, and which change of it that is; 0: a version that the server lost."""

    offer: Offer
    dirty: int


def prepare(session: ExchangeSession, waiting: Sequence[SharedEntry]) -> list[Outgoing]:
    """Make offers of entries, as many as go together; note what may not leave as it is."""
    going: list[Outgoing] = []
    size = 0
    for entry in waiting:
        row = session.read(entry)
        if row is None and not (entry.deleted or entry.purged):
            shared.put_entry(session.connection, msgspec.structs.replace(entry, **_NOTHING_WAITS))  # it is not here
            continue
        body = None if row is None or entry.purged else bodies.read_body(session.connection, session.root.id, row)
        if body is not None and (reason := _find_credential(session, body)):
            stuck = Stuck(entry.id, reason, entry.dirty or 0)
            shared.note_stuck(session.connection, session.root.id, stuck, session.core.clock())
            continue
        size += _LEAST_BYTES + (0 if body is None else len(msgspec.json.encode(body)))
        if going and size > MOST_BYTES:
            break
        going.append(_offer(session, entry, row, body))
    # Who may give up a key comes before who may take it.
    return sorted(going, key=lambda one: one.offer.base is None or one.offer.key is not None)


def _find_credential(session: ExchangeSession, body: Body) -> str:
    """Return why a body may not leave although it was stored: somebody let a credential in."""
    kinds: Counter[str] = Counter()
    redact(bodies.read_text(body), kinds, session.core.privacy.allowed)
    return f"It holds what looks like {describe_kinds(kinds)}; remove it, to share the memory." if kinds else ""


def _offer(session: ExchangeSession, entry: SharedEntry, row: Row | None, body: Body | None) -> Outgoing:
    """Return the offer of an entry; what was written since the last offer gets a tag of its own, which is kept."""
    if entry.dirty is None:
        tag = entry.tag  # it is as the server had it
    elif entry.dirty == entry.offered_dirty:
        tag = entry.offered[-1]
    else:
        tag = uuid.uuid4().hex
        entry = msgspec.structs.replace(entry, offered=[*entry.offered, tag], offered_dirty=entry.dirty)
        shared.put_entry(session.connection, entry)
    said: dict[str, Any] = {}
    if body is not None:
        said = {**msgspec.json.decode(entry.further), **msgspec.to_builtins(body)}
    offer = Offer(
        id=entry.id,
        base=entry.tag or None,
        tag=tag,
        offered=[one for one in entry.offered if one != tag],
        ns=_find_place(session, entry, row),
        key=None if body is None else body.key,
        body=said,
        deleted=body is None,
        purged=bool(entry.purged),
        conflict_of=entry.conflict_of,
        life=entry.lost_life,
        seq=entry.seq,
        point=entry.lost_point or 0,
    )
    return Outgoing(offer, entry.dirty or 0)


def _find_place(session: ExchangeSession, entry: SharedEntry, row: Row | None) -> str:
    """Return the namespace of an offer; of what is not here any more the root, as it says nothing."""
    return session.core.store.namespaces.name(row.namespace) if row is not None else session.root.name


def answer(session: ExchangeSession, going: Sequence[Outgoing], answers: Sequence[OfferReply]) -> None:
    """Take over what the server said to offers."""
    entries = shared.read_entries(session.connection, session.root.id, [one.offer.id for one in going])
    answered = {one.id: one for one in answers}
    for one in going:
        entry, said = entries.get(one.offer.id), answered.get(one.offer.id)
        if entry is None or said is None:
            continue  # it was forgotten meanwhile, or is offered again
        try:
            with session.step():
                _ANSWERED[said.said](session, one, said, entry)
        except applying.UNUSABLE as error:
            _note_stuck(session, one, f"The answer of the server cannot be used here: {error}")


def _is_changed_since(one: Outgoing, entry: SharedEntry) -> bool:
    return (entry.dirty or 0) != one.dirty


def _note_stuck(session: ExchangeSession, one: Outgoing, reason: str) -> None:
    """Set an offer aside until the memory changes."""
    log.warning("memory %s is refused by the server of %s: %s", one.offer.id[:8], session.root.name, reason)
    stuck = Stuck(one.offer.id, reason, one.dirty)
    shared.note_stuck(session.connection, session.root.id, stuck, session.core.clock())


def _take_refused(session: ExchangeSession, one: Outgoing, said: OfferReply, entry: SharedEntry) -> None:
    _note_stuck(session, one, said.reason)


def _take_taken(session: ExchangeSession, one: Outgoing, said: OfferReply, entry: SharedEntry) -> None:
    """The server has what was offered; what was written since descends from it."""
    taken = _continue(entry, one.offer.tag, said.seq, _is_changed_since(one, entry))
    shared.forget_stuck(session.connection, entry)
    if said.row is not None:  # its key is that of another memory
        taken.conflict_of = said.row.id
        row = session.read(entry)
        if row is not None and (_find_place(session, entry, row), row.key) == (one.offer.ns, one.offer.key):
            session.change(row, key=None)
        session.done.conflicts.append(entry.id)
    shared.put_entry(session.connection, taken)
    if said.row is not None:
        applying.apply(session, [said.row])


def _continue(entry: SharedEntry, tag: str, seq: int, is_changed: bool) -> SharedEntry:
    """Return an entry after the server took a version of it."""
    return msgspec.structs.replace(
        entry,
        tag=tag,
        seq=seq,
        **{**_NOTHING_WAITS, "dirty": entry.dirty if is_changed else None},
        device=entry.device if entry.dirty is None else "",
        author=entry.author if entry.dirty is None else "",
    )


def _take_kept(session: ExchangeSession, one: Outgoing, said: OfferReply, entry: SharedEntry) -> None:
    """The server keeps its row, which is newer than what was offered, or says the same."""
    assert said.row is not None
    if not _is_changed_since(one, entry):
        applying.put(session, said.row, entry)
    elif said.base is not None:
        shared.put_entry(session.connection, _continue(entry, said.base, said.seq, True))


def _take_conflict(session: ExchangeSession, one: Outgoing, said: OfferReply, entry: SharedEntry) -> None:
    """The server keeps its row: what is here becomes a memory of its own beside it."""
    assert said.row is not None
    assert said.sibling is not None
    connection, root, row = session.connection, session.root.id, session.read(entry)
    is_changed = _is_changed_since(one, entry)
    there = said.sibling
    sibling = shared.read_entries(connection, root, [there.id]).get(there.id)
    if there.tag == one.offer.tag and not (sibling and (sibling.dirty or sibling.lost_life)):
        memory = sibling.memory if sibling and sibling.memory else applying.choose_id(session, there.id)
        sibling = SharedEntry(root=root, id=there.id, memory=memory, tag=there.tag, seq=there.seq)
        sibling.conflict_of = there.conflict_of
        if row is None:  # it was deleted, erased or moved since: so is its other version
            sibling.deleted, sibling.purged = 1, entry.purged
            if (former := session.read(sibling)) is not None:
                session.delete(former)
        shared.put_entry(connection, sibling)
    elif is_changed and row is not None:  # the other version was changed by others since: this is one more
        sibling = SharedEntry(root=root, id=secrets.token_hex(8) + there.id[16:], memory=None)
        sibling.conflict_of = there.conflict_of
        sibling.memory = sibling.id
        shared.put_entry(connection, sibling)
    else:
        sibling = row = None  # it is there, and comes as it is now
    if sibling is not None and row is not None:
        fields = {"row": 0, "id": sibling.memory, "key": None, "access_count": 0, "last_accessed_at": None}
        session.write(msgspec.structs.replace(row, **fields))
    if sibling is not None and is_changed:
        shared.touch(connection, sibling)
    session.done.conflicts.append(entry.id)
    if not entry.purged:
        applying.put(session, said.row, entry)


def _take_purged(session: ExchangeSession, one: Outgoing, said: OfferReply, entry: SharedEntry) -> None:
    """It is erased everywhere, for good."""
    assert said.row is not None
    applying.put(session, said.row, entry)


_ANSWERED = {
    "taken": _take_taken,
    "kept": _take_kept,
    "conflict": _take_conflict,
    "purged": _take_purged,
    "refused": _take_refused,
}
