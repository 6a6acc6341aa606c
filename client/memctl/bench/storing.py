"""Storing the material of an evaluation in a namespace, and knowing which turns each memory there represents.

Turns are observed one by one, and the daemon is given the time to think in between, as it has in real use: what becomes
of a turn must not depend on how fast turns come. Ids follow from namespace and order, so that two runs are alike.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple

from msgspec.structs import replace

from memoryd.client.errors import TimedOut
from memoryd.client.memctl.bench.material import Item, Material
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.protocol import Delete, Memory, NewTurn, Turn
from memoryd.client.transport.sync import Client

PAGE = 200  # memories of a list: sessions are long
POLL_S = 0.01
STANDSTILL_S = 120.0
VECTORS_S = 3600.0
MIN_TEXT = 20  # characters: a shorter text is in another one by chance

Connect = Callable[[str], Client]
OnStored = Callable[[int], None]  # with how many items


class Place(NamedTuple):
    """The daemon that is evaluated: how to connect at a namespace, and how to set its time."""

    connect: Connect
    set_time: Callable[[float], None] = lambda seconds: None  # the user's daemon has the time of the machine


class Store:
    """A namespace and what was stored in it. `held`: memory or turn of L0 by id → keys; `kept`: all of these keys."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.held: dict[str, frozenset[Hashable]] = {}
        self.kept: frozenset[Hashable] = frozenset()
        self._keys: dict[str, set[Hashable]] = {}
        self._texts: dict[str, set[Hashable]] = {}
        self._items = 0

    def next_id(self) -> str:
        """Return the id for one more item."""
        self._items += 1
        return sha256(f"{self.namespace}\n{self._items}".encode()).hexdigest()[:32]

    def note(self, item: Item, id: str | None) -> None:
        """Note what an item says, and which memory or turn represents it (None: none); one may represent several."""
        if id is not None:
            self._keys.setdefault(id, set()).add(item.key)
        if len(text := _normalise(item.what.content)) >= MIN_TEXT:
            self._texts.setdefault(text, set()).add(item.key)

    def survey(self, client: Client) -> None:
        """Look at what is there now."""
        self.held = {one.id: self._keys_of(one) for one in list_present(client)}
        self.kept = frozenset().union(*self.held.values())

    def _keys_of(self, one: Memory | Turn) -> frozenset[Hashable]:
        """Return what a memory represents: by its id, by the turns that it names, by its text as a last resort."""
        named = one.metadata.get("turns") if isinstance(one, Memory) else None
        ids = [one.id, *(named if isinstance(named, list) else [])]  # a summary has the number of its turns there
        keys = frozenset(key for id in ids for key in self._keys.get(id, ()))
        if keys:
            return keys
        said = _normalise(one.content)
        return frozenset(key for text, found in self._texts.items() if text in said for key in found)


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


def list_present(client: Client) -> Iterator[Memory | Turn]:
    """Yield the memories of a client's namespace that a search may find, and the turns of L0."""
    offset = 0
    while page := client.list(limit=PAGE, offset=offset, sort="created", reach="exact").memories:
        yield from page
        offset += len(page)
    yield from client.turns(limit=1000, reach="exact")


# Storing -------------------------------------------------------------------------------------------------------------


def fill(place: Place, store: Store, material: Material, on_stored: OnStored) -> None:
    """Store all items in their order; where turns are observed, end their sessions and consolidate."""
    turns = {item.session: item.key for item in material.items if isinstance(item.what, NewTurn)}  # its last one
    with place.connect(store.namespace) as client:
        for observed, part in groupby(material.items, lambda item: isinstance(item.what, NewTurn)):
            if not observed:
                on_stored(_add(place, store, client, list(part), material.dedup))
                continue
            for item in part:
                _observe(place, store, client, item)
                if turns[item.session] == item.key:
                    client.end_session(item.session)
                    settle(client)
                on_stored(1)
        if turns:
            client.consolidate(reach="exact")
            settle(client)


def _add(place: Place, store: Store, client: Client, items: Sequence[Item], dedup: bool) -> int:
    made: list[Any] = [replace(item.what, id=store.next_id()) for item in items]
    if dates := [memory.created_at for memory in made if memory.created_at is not None]:
        place.set_time(max(dates))
    for result, item in zip(client.add_many(made, dedup=dedup), items, strict=True):
        store.note(item, result.id)
    return len(made)


def _observe(place: Place, store: Store, client: Client, item: Item) -> None:
    turn: Any = replace(item.what, id=store.next_id())
    if turn.created_at is not None:
        place.set_time(turn.created_at)
    outcome = client.observe([turn], session=item.session).turns[0]
    store.note(item, outcome.same_as or (turn.id if outcome.outcome == "accepted" else None))
    settle(client, conversations=False)


def settle(client: Client, conversations: bool = True) -> None:
    """Wait until nothing waits for a judgement, and no conversation for its facts and its summary either."""
    least, give_up_at = None, time.monotonic() + STANDSTILL_S
    while left := _count_waiting(client, conversations):
        if least is None or left < least:
            least, give_up_at = left, time.monotonic() + STANDSTILL_S
        if time.monotonic() > give_up_at:
            raise TimedOut(f"{left} turns still wait to be thought about; none was for {STANDSTILL_S:g} s.")
        time.sleep(POLL_S)
    if conversations:
        wait_until_ready(client, VECTORS_S)


def _count_waiting(client: Client, conversations: bool) -> int:
    report = client.tiers(reach="exact")
    return sum(report.waiting.values()) + (sum(report.heard.values()) if conversations else 0)


def clear(place: Place, namespace: str) -> None:
    """Delete all that is in a namespace."""
    with place.connect(namespace) as client:
        turns = [turn.id for turn in client.turns(limit=1000, reach="exact")]
        if turns:
            client.call(Delete(ids=turns))
        while page := client.list(limit=PAGE, all_states=True, reach="exact").memories:
            client.call(Delete(ids=[memory.id for memory in page]))
