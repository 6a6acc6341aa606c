"""The protocol of the shared tier as values and functions: what a server answers, what a machine makes of it.

No data base, no network, no threads, no clocks: tests drive it step by step, with every fault at every place, and the
real server's `offer` is compared with `judge` (see `cases`). Each check can be switched off by its name (`off`), so
that tests can show that it is needed.
"""

import copy
import hashlib
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple

Body = dict[str, Any]
Timeline = list[tuple[str, int]]  # lives, each with its first number
Said = Literal["taken", "kept", "conflict", "purged", "refused"]


class Forbidden(Exception):
    """The role has no such right on the root."""


class Row(NamedTuple):
    """A memory as the server has it. `was_*`: the newest version of a lost life that it descends from."""

    id: str
    seq: int
    tag: str
    ns: str
    key: str | None
    body: Body
    deleted: bool = False
    purged: bool = False
    conflict_of: str | None = None
    was_life: str | None = None
    was_seq: int = 0
    was_changed: bool = False  # it is not that version itself
    device: str = ""

    @property
    def text(self) -> str | None:
        return self.body.get("content")

    @property
    def is_alive(self) -> bool:
        return not (self.deleted or self.purged)


class Offer(NamedTuple):
    id: str
    base: str | None
    tag: str
    offered: tuple[str, ...]
    ns: str
    key: str | None
    body: Body
    deleted: bool = False
    purged: bool = False
    conflict_of: str | None = None
    life: str | None = None
    seq: int = 0
    point: int = 0


class Sibling(NamedTuple):
    id: str
    seq: int
    tag: str
    conflict_of: str | None


class Answer(NamedTuple):
    id: str
    said: Said
    seq: int = 0
    base: str | None = None
    row: Row | None = None
    sibling: Sibling | None = None
    reason: str = ""
    rule: int = 0  # by which it was judged; not part of the protocol


class Head(NamedTuple):
    seq: int
    life: str
    can_write: bool
    lives: Timeline | None


class Offered(NamedTuple):
    seq: int
    life: str
    parted: bool
    answers: list[Answer]


# The server ----------------------------------------------------------------------------------------------------------


def name_sibling(id: str, tag: str) -> str:
    """Return the id under which a version is set aside."""
    text = f"sibling {uuid.UUID(id)} {uuid.UUID(tag)}"
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16] + id[16:]


def is_version(id: str, of: str) -> bool:
    """Return whether a memory is a version of another one that was set aside, not one that only wanted its key."""
    return id[16:] == of[16:]


def merge(offered: Body, there: Body) -> Body:
    """Return what two bodies of equal text say together."""
    body = {**offered, **there}
    body["metadata"] = {**offered.get("metadata", {}), **there.get("metadata", {})}
    tags, more = (one.get("metadata", {}).get("tags") for one in (there, offered))
    if isinstance(tags, list) and isinstance(more, list):
        body["metadata"]["tags"] = tags + [tag for tag in more if tag not in tags]
    body["pinned"] = bool(offered.get("pinned")) or bool(there.get("pinned"))
    votes = list(there.get("votes", []))
    voters = {vote["by"] for vote in votes}
    body["votes"] = votes + [vote for vote in offered.get("votes", []) if vote["by"] not in voters]
    return body


class Verdict(NamedTuple):
    """What becomes of an offer: by which rule, and what is stored."""

    rule: int
    said: Said
    stores: Literal["", "offer", "purge", "merged", "sibling", "line"] = ""
    base: str | None = None  # of `kept`: the version that the machine may go on from
    sibling: Row | None = None  # what is there of this version, or of an earlier one that it replaces


def judge(
    row: Row | None, offer: Offer, rows: Mapping[str, Row], log: Collection[str], off: Collection[str] = ()
) -> Verdict:
    """Judge an offer for a row: the rules by their numbers, the first that applies."""
    if row is not None and row.purged:
        return Verdict(1, "purged")
    if offer.purged:
        return Verdict(2, "taken", "purge")
    if row is None:
        of = rows.get(offer.conflict_of or "")
        if of is not None and of.purged and is_version(offer.id, of.id) and "purged siblings" not in off:
            return Verdict(6, "purged", "purge")
    if row is None:
        return Verdict(6, "taken", "offer")
    if row.tag == offer.tag:
        return Verdict(3, "taken" if "replay" in off else "kept", base=offer.tag)
    if aside := _find_aside(offer, rows, off):
        is_replay = aside.tag == offer.tag or aside.id == name_sibling(offer.id, offer.tag) or aside.purged
        return Verdict(4, "conflict", "" if is_replay else "line", sibling=aside)
    if offer.tag in log and "log" not in off:
        return Verdict(5, "kept", base=offer.tag)
    if row.tag == offer.base or row.tag in offer.offered or "base" in off:
        return Verdict(7, "taken", "offer")
    if offer.life is not None:
        if row.seq <= offer.point:
            return Verdict(8, "taken", "offer")
        if row.was_life == offer.life:
            if _is_later(row, offer, off):
                return Verdict(8, "taken", "offer")
            if offer.tag == offer.base and offer.seq <= row.was_seq:
                return Verdict(8, "kept")
    if row.deleted and offer.deleted:
        return Verdict(9, "kept", base=row.tag)
    if row.deleted:
        return Verdict(10, "taken", "offer")
    if offer.deleted:
        return Verdict(11, "kept")
    if (offer.body["content"], offer.ns, offer.key) == (row.text, row.ns, row.key):
        is_news = merge(offer.body, row.body) != row.body
        return Verdict(12, "kept", "merged" if is_news else "", base=offer.tag if is_news else row.tag)
    return Verdict(13, "conflict", "sibling")


def _is_later(row: Row, offer: Offer, off: Collection[str]) -> bool:
    """Return whether an offer from a lost life descends from a row that was brought back from that life."""
    if "changed" in off:  # as if the row were the version that its author had changed
        return offer.seq >= row.was_seq
    return offer.seq > row.was_seq and not row.was_changed


def _find_aside(offer: Offer, rows: Mapping[str, Row], off: Collection[str]) -> Row | None:
    """Return the row under which this offer, or an earlier one that it replaces, was set aside."""
    if found := rows.get(name_sibling(offer.id, offer.tag)):
        return found
    for tag in reversed(offer.offered) if "earlier offers" not in off else ():
        found = rows.get(name_sibling(offer.id, tag))
        if found is not None and found.tag in (offer.tag, *offer.offered):
            return found
    return None


class Root:
    """A root on a server."""

    def __init__(self, life: str, started: int) -> None:
        self.seq, self.life, self.lives, self.started = 0, life, [(life, 1)], started
        self.log: dict[str, int] = {}
        self.rows: dict[str, Row] = {}
        self.grants: dict[str, bool] = {}

    def save(self) -> "Root":
        """Return a copy of it."""
        saved = copy.copy(self)
        saved.lives, saved.log = list(self.lives), dict(self.log)
        saved.rows, saved.grants = dict(self.rows), dict(self.grants)
        return saved

    def has(self, life: str, seq: int) -> bool:
        """Return whether a number of a life is on the timeline of this root."""
        return seq <= dict(list_ends(self.lives, self.seq)).get(life, -1)


class Server:
    """Roots, and who may do what with them. `started` changes with every start of the server."""

    def __init__(self, make_id: Callable[[], str], off: Collection[str] = ()) -> None:
        self.make_id, self.off = make_id, off
        self.roots: dict[str, Root] = {}
        self.started = 1
        self.refused: set[str] = set()  # texts
        self.most = 200  # answers to one offer: the offers that follow are not looked at
        self.rules: dict[int, int] = {}  # how often each judged

    def make_root(self, name: str) -> Root:
        """Make a root, or make it again: empty."""
        self.roots[name] = Root(self.make_id(), self.started)
        return self.roots[name]

    def restore(self, name: str, saved: Root) -> None:
        """Let a root go on from a saved state; this is another server, or one that was started again."""
        self.started += 1
        self.roots[name] = saved.save()

    def check(self, role: str, name: str, writes: bool = False) -> Root:
        root = self.roots[name]
        if role not in root.grants or (writes and not root.grants[role]):
            raise Forbidden(f"{role} on {name}")
        return root

    def look(self, role: str, name: str, known_life: str) -> Head:
        root = self.check(role, name)
        return Head(root.seq, root.life, root.grants[role], None if known_life == root.life else list(root.lives))

    def feed(self, role: str, name: str, after: int, most: int) -> list[Row]:
        root = self.check(role, name)
        found = sorted((row for row in root.rows.values() if row.seq > after), key=lambda row: row.seq)
        return found[:most]

    def offer(
        self, role: str, name: str, device: str, known_life: str, known_seq: int, offers: Sequence[Offer]
    ) -> Offered:
        root = self.check(role, name, writes=True)
        if root.started != self.started and "life" not in self.off:
            root.life, root.started = self.make_id(), self.started
            root.lives.append((root.life, root.seq + 1))
        if known_life and not root.has(known_life, known_seq):
            return Offered(root.seq, root.life, True, [])
        return Offered(
            root.seq, root.life, False, [self._answer(root, offer, device) for offer in offers[: self.most]]
        )._replace(seq=root.seq)

    def _answer(self, root: Root, offer: Offer, device: str) -> Answer:
        if not offer.deleted and not offer.purged and offer.body.get("content") in self.refused:
            return Answer(offer.id, "refused", reason="It is too large.")
        for tag in offer.offered if "offered log" not in self.off else ():
            root.log.setdefault(tag, 0)  # its author replaced it
        row = root.rows.get(offer.id)
        verdict = judge(row, offer, root.rows, root.log, self.off)
        self.rules[verdict.rule] = self.rules.get(verdict.rule, 0) + 1
        return _STORE[verdict.stores](self, root, row, offer, verdict, device)._replace(rule=verdict.rule)

    def _keep(
        self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str, sibling: Row | None = None
    ) -> Answer:
        """Answer with the row as it stays."""
        assert row is not None
        seq, base, shown = row.seq, verdict.base, row if verdict.said != "taken" else None
        if base == offer.tag and base in root.log and "seq of base" not in self.off:
            seq = root.log[base]
        made = sibling or verdict.sibling
        named = None if made is None else Sibling(made.id, made.seq, made.tag, made.conflict_of)
        return Answer(offer.id, verdict.said, seq, base, shown, named)

    def _take(self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str) -> Answer:
        other = _find_holder(root, offer)
        is_edit = offer.tag != offer.base
        was = (offer.life, offer.seq, is_edit) if offer.life else (None, 0, False)
        if offer.life is None and row is not None and verdict.rule == 7 and "was" not in self.off:
            was = (row.was_life, row.was_seq, True) if row.was_life else was
        made = Row(
            offer.id, 0, offer.tag, offer.ns, offer.key, offer.body, offer.deleted, False, offer.conflict_of, *was
        )
        if other is not None:
            made = made._replace(key=None, conflict_of=other.id)
        stored = _store(root, made._replace(device=device))
        return Answer(offer.id, "taken", stored.seq, row=other)

    def _purge(self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str) -> Answer:
        of = {offer.id}
        if row is not None and row.conflict_of and not is_version(row.conflict_of, row.id):
            of.add(row.conflict_of)  # what wants the key of another memory says so in the versions of it, too
        family = {one.id for one in root.rows.values() if one.conflict_of in of and is_version(one.id, offer.id)}
        family -= {offer.id}
        if "purged siblings" not in self.off:
            family |= {name_sibling(offer.id, tag) for tag in (offer.tag, *offer.offered)} & root.rows.keys()
        empty = Row(offer.id, 0, offer.tag, offer.ns, None, {}, True, True, device=device)
        stored = _store(root, empty)
        for id in sorted(family):
            if not root.rows[id].purged:
                _store(root, empty._replace(id=id, tag=self.make_id(), ns=root.rows[id].ns))
        return Answer(offer.id, verdict.said, stored.seq, row=stored if verdict.said == "purged" else None)

    def _merge(self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str) -> Answer:
        assert row is not None
        made = row._replace(tag=offer.tag, body=merge(offer.body, row.body), was_changed=row.was_life is not None)
        stored = _store(root, made._replace(device=device))
        return self._keep(root, stored, offer, verdict, device)

    def _set_aside(self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str) -> Answer:
        assert row is not None
        of = row.conflict_of or row.id
        id = name_sibling(offer.id, offer.tag)
        made = Row(id, 0, offer.tag, offer.ns, None, offer.body, conflict_of=of, device=device)
        return self._keep(root, row, offer, verdict, device, _store(root, made))

    def _set_on(self, root: Root, row: Row | None, offer: Offer, verdict: Verdict, device: str) -> Answer:
        """An earlier offer of this machine was set aside, so this one goes on from there."""
        aside = verdict.sibling
        assert aside is not None
        body = {} if offer.deleted else offer.body
        made = aside._replace(tag=offer.tag, ns=offer.ns, body=body, deleted=offer.deleted, device=device)
        return self._keep(root, row, offer, verdict, device, _store(root, made))


_STORE: dict[str, Callable[..., Answer]] = {
    "": Server._keep,
    "offer": Server._take,
    "purge": Server._purge,
    "merged": Server._merge,
    "sibling": Server._set_aside,
    "line": Server._set_on,
}


def _find_holder(root: Root, offer: Offer) -> Row | None:
    """Return another living row that has the key of an offer."""
    if offer.key is None or offer.deleted:
        return None
    held = (row for row in root.rows.values() if (row.ns, row.key) == (offer.ns, offer.key) and row.id != offer.id)
    return next((row for row in held if row.is_alive), None)


def _store(root: Root, row: Row) -> Row:
    """Store a row as the next one."""
    root.seq += 1
    if row.deleted:
        row = row._replace(key=None, body={})
    elif row.key is None:
        row = row._replace(body={name: value for name, value in row.body.items() if name != "key"})
    root.rows[row.id] = row._replace(seq=root.seq)
    root.log[row.tag] = root.seq
    return root.rows[row.id]


def list_ends(timeline: Timeline, end: int) -> Timeline:
    """Return the lives of a timeline, each with its last number."""
    ends = [start - 1 for _, start in timeline[1:]] + [end]
    return [(life, last) for (life, _), last in zip(timeline, ends, strict=False)]


# A machine -----------------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    id: str
    ns: str
    key: str | None
    text: str
    votes: tuple[str, ...] = ()

    @property
    def body(self) -> Body:
        body: Body = {"content": self.text, "metadata": {}, "pinned": False}
        body["votes"] = [{"by": voter, "at": 0.0} for voter in self.votes]
        return body if self.key is None else {**body, "key": self.key}


class Entry(NamedTuple):
    """What a machine knows of a shared memory; `memory` is its id here, None once it left what is shared."""

    id: str
    memory: str | None
    tag: str = ""
    seq: int = 0
    dirty: int | None = None
    offered: tuple[str, ...] = ()
    offered_dirty: int | None = None
    conflict_of: str | None = None
    deleted: bool = False
    purged: bool = False
    lost_life: str | None = None
    lost_point: int = 0
    ns: str = ""  # of a memory that is not here
    key: str | None = None

    @property
    def waits(self) -> bool:
        return self.dirty is not None or self.lost_life is not None


_DONE: dict[str, Any] = {"dirty": None, "offered": (), "offered_dirty": None, "lost_life": None, "lost_point": 0}


@dataclass
class Place:
    """A root as a machine knows it."""

    name: str
    chosen: set[str]
    entries: dict[str, Entry] = field(default_factory=dict)
    lives: Timeline = field(default_factory=list)
    mark: int = 0
    cursor: int = 0
    can_write: bool = True
    stuck: dict[str, int | None] = field(default_factory=dict)

    @property
    def life(self) -> str:
        return self.lives[-1][0] if self.lives else ""

    @property
    def waiting(self) -> list[Entry]:
        """What the server does not have, what it lost first."""
        found = [e for e in self.entries.values() if e.waits and self.stuck.get(e.id, -1) != e.dirty]
        return sorted(found, key=lambda e: (e.lost_life is None, e.dirty or 0, e.seq, e.id))


class ReadOnly(Exception):
    """This machine may only read the root."""


class Going(NamedTuple):
    """An offer and which change of the memory here it holds."""

    offer: Offer
    dirty: int | None


class Machine:
    """A machine: its memories, what it shares of them, and its part of the exchange."""

    def __init__(self, name: str, role: str, make_id: Callable[[], str], off: Collection[str] = ()) -> None:
        self.name, self.role, self.make_id, self.off = name, role, make_id, off
        self.memories: dict[str, Memory] = {}
        self.places: dict[str, Place] = {}

    def copy(self, name: str) -> "Machine":
        """Return a machine that goes on from a copy of this one's data directory."""
        made = copy.copy(self)
        made.name, made.memories = name, dict(self.memories)
        made.places = {root: copy.deepcopy(place) for root, place in self.places.items()}
        return made

    # What clients do here --------------------------------------------------------------------------------------------

    def find_place(self, ns: str) -> Place | None:
        """Return the root through which a namespace is shared here."""
        return next((place for place in self.places.values() if ns in place.chosen), None)

    def find_entry(self, memory: str) -> tuple[Place, Entry] | None:
        for place in self.places.values():
            for entry in place.entries.values():
                if entry.memory == memory:
                    return place, entry
        return None

    def find_key(self, ns: str, key: str | None) -> Memory | None:
        held = (m for m in self.memories.values() if m.ns == ns and m.key == key)
        return next(held, None) if key else None

    def write(self, memory: Memory) -> None:
        """Insert or change a memory, and note what of it is to be shared, at once."""
        found, place = self.find_entry(memory.id), self.find_place(memory.ns)
        self._check_writable(found[0] if found else None, place)
        is_new = memory.id not in self.memories
        self.memories[memory.id] = memory
        if found is not None:
            source, entry = found
            if source is place:
                return self._touch(source, entry._replace(deleted=False))
            self._leave(source, entry)
        if place is None:
            return None
        for entry in place.entries.values() if is_new or "moved key" in self.off else ():
            is_free = entry.memory not in self.memories and not entry.purged
            if is_free and memory.key and (entry.ns, entry.key) == (memory.ns, memory.key):
                return self._touch(place, entry._replace(memory=memory.id, deleted=False))
        id = self.make_id() if memory.id in place.entries else memory.id
        return self._touch(place, Entry(id, memory.id))

    def delete(self, memory: str) -> None:
        found = self.find_entry(memory)
        self._check_writable(found[0] if found else None)
        gone = self.memories.pop(memory)
        if found is not None:
            self._leave(found[0], found[1]._replace(ns=gone.ns, key=gone.key), memory)

    def purge(self, memory: str) -> None:
        """Erase a shared memory everywhere."""
        found = self.find_entry(memory)
        assert found is not None
        place, entry = found
        self._check_writable(place)
        del self.memories[memory]
        if not (entry.tag or entry.offered or entry.seq):
            del place.entries[entry.id]
        else:
            self._touch(place, entry._replace(memory=None, purged=True, deleted=True, ns="", key=None))

    def evict(self, memory: str) -> None:
        """Keep a shared memory on the server alone."""
        found = self.find_entry(memory)
        assert found is not None
        gone = self.memories.pop(memory)
        found[0].entries[found[1].id] = found[1]._replace(ns=gone.ns, key=gone.key)

    def separate(self, memory: str) -> None:
        """Let another version of a memory be a memory of its own."""
        found = self.find_entry(memory)
        assert found is not None
        self._check_writable(found[0])
        self._touch(found[0], found[1]._replace(conflict_of=None))

    def choose(self, root: str, ns: str) -> None:
        """Share a namespace of a root from now on; the feed is read from its start."""
        place = self.places.setdefault(root, Place(root, set()))
        place.chosen.add(ns)
        place.cursor = 0
        for memory in list(self.memories.values()):
            if memory.ns == ns and self.find_entry(memory.id) is None:
                id = self.make_id() if memory.id in place.entries else memory.id
                self._touch(place, Entry(id, memory.id))

    def _check_writable(self, *places: Place | None) -> None:
        if any(place is not None and not place.can_write for place in places):
            raise ReadOnly

    def _touch(self, place: Place, entry: Entry) -> None:
        """Note an entry as changed here."""
        changes = (e.dirty or 0 for p in self.places.values() for e in p.entries.values())
        place.entries[entry.id] = entry._replace(dirty=max(changes, default=0) + 1)

    def _leave(self, place: Place, entry: Entry, memory: str | None = None) -> None:
        """Note that a memory is not among those of a root any more."""
        if entry.tag or entry.offered or entry.seq:
            self._touch(place, entry._replace(memory=memory, deleted=True))
        else:
            del place.entries[entry.id]

    # The server's timeline -------------------------------------------------------------------------------------------

    def follow(self, place: Place, head: Head) -> None:
        """Take over where the server is; note what it lost."""
        there = place.lives if head.lives is None else head.lives
        point, mine = find_parting(place.lives, place.mark, there, head.seq), place.lives
        place.can_write, place.lives = head.can_write, there
        if point != place.mark:
            for entry in list(place.entries.values()):
                if entry.lost_life is not None:
                    place.entries[entry.id] = entry._replace(lost_point=min(entry.lost_point, point))
                elif entry.seq > point and (entry.deleted or entry.memory in self.memories):
                    life = [name for name, start in mine if start <= entry.seq][-1]
                    place.entries[entry.id] = entry._replace(lost_life=life, lost_point=point)
            # Rows that left the chosen namespaces may be back where they were, with numbers before the point.
            place.cursor = min(place.cursor, point) if "from the point" in self.off else 0
        place.mark = head.seq

    # Pull ------------------------------------------------------------------------------------------------------------

    def apply(self, place: Place, rows: Sequence[Row]) -> None:
        """Apply rows of the server that may be older than what is here."""
        coming = {row.id for row in rows}
        for row in rows:
            entry = place.entries.get(row.id)
            if entry is None and "entry" in self.off and row.id in self.memories:
                entry = Entry(row.id, row.id)
            if entry is not None and entry.waits and not (row.purged and "purge waits" not in self.off):
                if not entry.tag and "known" not in self.off:
                    place.entries[row.id] = entry._replace(seq=-1)  # the server has one, whatever it is
                continue  # the server judges it when it is pushed
            if entry is None or entry.tag != row.tag:
                self.put(place, row, coming)

    def put(self, place: Place, row: Row, coming: Collection[str] = ()) -> None:
        """Put a row of the server in place of what is here of it, whatever that is."""
        entry = place.entries.get(row.id)
        if entry is None and "entry" in self.off and row.id in self.memories:
            entry = Entry(row.id, row.id)
        here = self.memories.get(entry.memory or "") if entry else None
        if not row.is_alive or row.ns not in place.chosen:
            if here is not None:
                del self.memories[here.id]
            if row.is_alive and "forget" not in self.off:
                place.entries.pop(row.id, None)  # it is nothing of this machine
            elif entry is not None:
                key = (here.ns, here.key) if here and not row.purged else (entry.ns, entry.key)
                ns, name = ("", None) if row.purged or row.is_alive else key
                entry = entry._replace(memory=None) if row.purged else entry
                state = {"deleted": row.deleted, "purged": row.purged, "conflict_of": row.conflict_of}
                place.entries[row.id] = entry._replace(tag=row.tag, seq=row.seq, ns=ns, key=name, **state, **_DONE)
            return
        memory = (entry.memory if entry else None) or self._choose_id(row.id)
        self._free_key(place, row, memory, coming)
        votes = tuple(vote["by"] for vote in row.body["votes"])
        self.memories[memory] = Memory(memory, row.ns, row.key, row.body["content"], votes)
        place.entries[row.id] = Entry(row.id, memory, row.tag, row.seq, conflict_of=row.conflict_of)

    def bring(self, place: Place, rows: Sequence[Row], head: int, life: str) -> None:
        """Bring rows here that were on the server alone, as they were when its last number was `head` in a life."""
        if (place.cursor > head or place.life != life) and "old rows" not in self.off:
            return  # the feed was read on since, and may have told that they are gone; or the server lost them
        for row in rows:
            entry = place.entries.get(row.id)
            is_here = entry is not None and (entry.waits or entry.deleted or entry.memory in self.memories)
            is_seen = row.seq <= place.mark or "unseen rows" in self.off  # so that its loss would be noticed
            if row.is_alive and is_seen and not is_here:
                self.put(place, row, [row.id])

    def _choose_id(self, id: str) -> str:
        is_taken = id in self.memories or self.find_entry(id) is not None
        return self.make_id() if is_taken else id

    def _free_key(self, place: Place, row: Row, memory: str, coming: Collection[str]) -> None:
        """Take a key from the memory here that has it: the server has it under another one."""
        holder = self.find_key(row.ns, row.key)
        if holder is None or holder.id == memory:
            return
        self.memories[holder.id] = holder._replace(key=None)
        found = self.find_entry(holder.id)
        if found and found[0] is place and found[1].dirty is not None and found[1].id not in coming:
            place.entries[found[1].id] = found[1]._replace(conflict_of=row.id)

    # Push ------------------------------------------------------------------------------------------------------------

    def prepare(self, place: Place, most: int, lost: bool = False) -> list[Going]:
        """Make offers of what waits, or only of what the server lost."""
        if not place.can_write:
            return []
        waiting = [entry for entry in place.waiting if entry.lost_life or not lost][:most]
        going = [made for entry in waiting if (made := self._offer(place, entry))]
        going.sort(key=lambda one: one.offer.key is not None)  # a key is given up before another one takes it
        if "entry" in self.off and not lost:
            known = {entry.memory for entry in place.entries.values()}
            unknown = [m for m in self.memories.values() if m.ns.startswith(f"{place.name}/") and m.id not in known]
            going += [Going(Offer(m.id, None, self.make_id(), (), m.ns, m.key, m.body), None) for m in unknown]
        return going

    def _offer(self, place: Place, entry: Entry) -> Going | None:
        here = self.memories.get(entry.memory or "")
        if here is None and not entry.deleted:
            place.entries[entry.id] = entry._replace(**_DONE)  # it is on the server alone
            return None
        if entry.dirty is None:
            tag = entry.tag  # it is as the server had it
        elif entry.dirty == entry.offered_dirty:
            tag = entry.offered[-1]
        else:
            tag = self.make_id()
            entry = entry._replace(offered=(*entry.offered, tag), offered_dirty=entry.dirty)
            place.entries[entry.id] = entry
        offered = tuple(one for one in entry.offered if one != tag)
        said = (here.ns, here.key, here.body) if here and not entry.deleted else (place.name, None, {})
        state = (entry.deleted, entry.purged, entry.conflict_of, entry.lost_life, entry.seq, entry.lost_point)
        return Going(Offer(entry.id, entry.tag or None, tag, offered, *said, *state), entry.dirty)

    def answer(self, place: Place, going: Sequence[Going], offered: Offered) -> bool:
        """Take over what the server said, in one transaction; return whether it was said in the life that is known.

        What a server says in a life that is not known here is not used: the same is offered again, once it is known.
        """
        is_known = not offered.parted and (offered.life == place.life or "other life" in self.off)
        if not is_known:
            return False
        for one, said in zip(going, offered.answers, strict=False):  # what has no answer is offered again
            entry = place.entries.get(one.offer.id)
            if entry is None and "entry" in self.off:
                entry = Entry(one.offer.id, one.offer.id)
            if entry is not None:
                _ANSWERED[said.said](self, place, entry, one, said, entry.dirty != one.dirty)
        if offered.life == place.life:
            known = {said.seq for said in offered.answers}
            known |= {s.sibling.seq for one, s in zip(going, offered.answers, strict=False) if _is_fresh(one, s)}
            if known.issuperset(range(place.cursor + 1, offered.seq + 1)):
                place.cursor = max(place.cursor, offered.seq)  # all that is new there is of this offer
            place.mark = offered.seq
        return True

    def _take_taken(self, place: Place, entry: Entry, one: Going, said: Answer, since: bool) -> None:
        entry = entry._replace(**{**_DONE, "dirty": entry.dirty if since else None}, tag=one.offer.tag, seq=said.seq)
        here = self.memories.get(entry.memory or "")
        if said.row is not None:  # another one has its key
            entry = entry._replace(conflict_of=said.row.id)
            if here is not None and (here.ns, here.key) == (one.offer.ns, one.offer.key):
                self.memories[here.id] = here._replace(key=None)
        place.entries[entry.id] = entry
        if said.row is not None:
            self.apply(place, [said.row])

    def _take_kept(self, place: Place, entry: Entry, one: Going, said: Answer, since: bool) -> None:
        assert said.row is not None
        if not since:
            self.put(place, said.row)
        elif said.base is not None:
            place.entries[entry.id] = entry._replace(**{**_DONE, "dirty": entry.dirty}, tag=said.base, seq=said.seq)

    def _take_conflict(self, place: Place, entry: Entry, one: Going, said: Answer, since: bool) -> None:
        assert said.row is not None
        assert said.sibling is not None
        here = None if entry.deleted else self.memories.pop(entry.memory or "", None)
        aside = place.entries.get(said.sibling.id)
        of = said.sibling.conflict_of
        is_fresh = _is_fresh(one, said)
        if is_fresh and (aside is None or not aside.waits):
            memory = (aside.memory if aside else None) or self._choose_id(said.sibling.id)
            made = Entry(said.sibling.id, memory, said.sibling.tag, said.sibling.seq, conflict_of=of)
            if here is not None:
                self.memories[memory] = here._replace(id=memory, key=None)
            else:
                self.memories.pop(memory, None)
                made = made._replace(deleted=True)
            if entry.purged:
                made = made._replace(memory=None, purged=True)
            place.entries[made.id] = made
            if since:
                self._touch(place, made)
        elif since and here is not None:  # what was written since the offer is one more
            id = self.make_id()[:16] + said.sibling.id[16:]
            self.memories[id] = here._replace(id=id, key=None)
            self._touch(place, Entry(id, id, conflict_of=of))
        if not entry.purged:
            self.put(place, said.row)

    def _take_purged(self, place: Place, entry: Entry, one: Going, said: Answer, since: bool) -> None:
        assert said.row is not None
        self.put(place, said.row)

    def _take_refused(self, place: Place, entry: Entry, one: Going, said: Answer, since: bool) -> None:
        place.stuck[entry.id] = one.dirty


_ANSWERED: dict[Said, Callable[..., None]] = {
    "taken": Machine._take_taken,
    "kept": Machine._take_kept,
    "conflict": Machine._take_conflict,
    "purged": Machine._take_purged,
    "refused": Machine._take_refused,
}


def _is_fresh(one: Going, said: Answer) -> bool:
    """Return whether the version that was set aside is the one that was offered, so that nobody changed it since."""
    return said.sibling is not None and said.sibling.tag == one.offer.tag


def find_parting(mine: Timeline, mark: int, there: Timeline, head: int) -> int:
    """Return up to which number a machine's timeline and the server's are the same one."""
    ends_there = dict(list_ends(there, head))
    for life, end in reversed(list_ends(mine, mark)):
        if life in ends_there:
            return min(end, ends_there[life])
    return 0


# The exchange, in the steps of which each can be the last one before a crash ------------------------------------------


def pull(machine: Machine, server: Server, root: str, most: int = 500) -> bool:
    """Read a part of the feed; return whether that was all. What the server lost is offered before."""
    place = machine.places[root]
    machine.follow(place, server.look(machine.role, root, place.life))
    if any(entry.lost_life for entry in place.waiting) and place.can_write:
        return False
    rows = server.feed(machine.role, root, place.cursor, most)
    machine.apply(place, rows)
    place.cursor = rows[-1].seq if rows else place.mark
    return place.cursor >= place.mark


def prepare(machine: Machine, server: Server, root: str, most: int = 200, lost: bool = False) -> list[Going]:
    """Write offers down here; a server that was never looked at is looked at first."""
    place = machine.places[root]
    if not place.lives:
        machine.follow(place, server.look(machine.role, root, place.life))
    return machine.prepare(place, most, lost)


def deliver(machine: Machine, server: Server, root: str, going: Sequence[Going]) -> Offered:
    """Let the server judge offers."""
    place = machine.places[root]
    return server.offer(machine.role, root, machine.name, place.life, place.mark, [one.offer for one in going])


def push(machine: Machine, server: Server, root: str, most: int = 200, lost: bool = False) -> bool:
    """Push a part of what waits, or only of what the server lost; return whether something was offered."""
    going = prepare(machine, server, root, most, lost)
    if not going:
        return False
    place = machine.places[root]
    if not machine.answer(place, going, deliver(machine, server, root, going)):
        machine.follow(place, server.look(machine.role, root, place.life))
    return True


def exchange(machine: Machine, server: Server, root: str, most: int = 200) -> None:
    """Exchange everything that there is."""
    for _ in range(200):
        if pull(machine, server, root, most):
            break
        while push(machine, server, root, most, lost=True):
            pass
    else:
        raise AssertionError("a pull does not end")
    for _ in range(200):
        if not push(machine, server, root, most):
            return
    raise AssertionError("a push does not end")


# States of a root, and offers to it ----------------------------------------------------------------------------------


def cases(random: Random, steps: int = 80) -> Iterator[tuple[Root, list[Offer]]]:
    """Yield states of a root, each with offers that machines make in it: edits, keys, replays, what was lost.

    A root without rows and lives of its own is the first; what the server answers is what `Server.offer` does with it.
    """
    make_id = lambda: uuid.UUID(int=random.getrandbits(128)).hex  # noqa: E731
    server, texts, sent = Server(make_id), iter(range(steps)), list[list[Offer]]()
    server.make_root("a")
    machines = [Machine(name, "role", make_id) for name in ("one", "two", "three")]
    for machine in machines:
        machine.choose("a", "a/x")
        machine.choose("a", "a/y")
    saved = server.roots["a"].save()
    for _ in range(steps):
        machine, root = random.choice(machines), server.roots["a"]
        root.grants["role"] = True
        place = machine.places["a"]
        place.can_write = True
        chosen = random.choice([None, *machine.memories.values()])
        what = random.choices(
            ["write", "vote", "delete", "purge", "pull", "offer", "again", "save", "lose", "forget"],
            [16, 4, 3, 1, 10, 30, 4, 2, 1, 1],
        )[0]
        if what == "write":
            ns, key = random.choice(["a/x", "a/y"]), random.choice([None, None, "k", "l"])
            made = Memory(chosen.id if chosen else make_id(), ns, key, random.choice(["same", f"text {next(texts)}"]))
            if machine.find_key(ns, key) in (None, chosen):
                machine.write(made)
        elif what == "vote" and chosen:
            machine.write(chosen._replace(votes=tuple(sorted({*chosen.votes, machine.name}))))
        elif what == "delete" and chosen:
            machine.delete(chosen.id)
        elif what == "purge" and chosen:
            machine.purge(chosen.id)
        elif what == "pull":
            pull(machine, server, "a")
        elif what == "again" and sent:
            yield root.save(), random.choice(sent)
        elif what == "save":
            saved = root.save()
        elif what == "lose":
            server.restore("a", saved)
        elif what == "forget":
            root.log.clear()
        elif what == "offer" and (going := prepare(machine, server, "a", random.randint(1, 4))):
            sent.append([one.offer for one in going])
            yield root.save(), sent[-1]
            offered = deliver(machine, server, "a", going)
            if random.random() < 0.7 and not machine.answer(place, going, offered):
                machine.follow(place, server.look("role", "a", place.life))
