"""L0 in RAM: the last turns of each namespace, as the journal holds them.

Every transaction that changes the journal hands the new rings over after its commit, so RAM and disk agree; a start
reads them back. Threads: the writer replaces whole tuples, readers take them as they are; what was read of texts has a
lock, a leaf.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from memoryd.daemon.store import turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.turns import StoredTurn
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction

_MOST_WRITERS = 10_000
MOST_STEMS = 200_000  # of all texts that are kept read, some 20 MB


@dataclass(slots=True)
class Text:
    """What searches need of a turn: the hash of its text, how often it has which of its stems, its vector."""

    hash: bytes
    stems: Counter[str]
    length: int
    model: int = 0
    vector: Vector | None = None


class Active:
    """The rings of a database, by namespace number."""

    def __init__(self, connection: Connection) -> None:
        rings: dict[int, list[StoredTurn]] = {}
        for turn in turns.read_all(connection):
            rings.setdefault(turn.namespace, []).append(turn)
        self.writers: dict[str, str] = {}  # the token that a turn came with, while it is in L0; of this daemon's turns
        self._rings = {namespace: tuple(ring) for namespace, ring in rings.items()}
        self._texts: OrderedDict[str, Text] = OrderedDict()  # of turns, the one used longest ago first
        self._lock = threading.Lock()

    def follow(self, transaction: Transaction, namespaces: Iterable[int]) -> None:
        """Take over what the transaction has left of some rings, once it is on disk."""
        for namespace in set(namespaces):
            ring = tuple(turns.read_ring(transaction.connection, namespace))
            transaction.after_commit(lambda place=namespace, ring=ring: self._put(place, ring))  # type: ignore[misc]

    def note_writer(self, keys: Iterable[str | None], token: str) -> None:
        """Keep which token turns came with; on the writer's thread."""
        if token:
            self.writers |= {key: token for key in keys if key}
        if len(self.writers) > _MOST_WRITERS:
            there = {turn.key for turn in self.list_turns(None)}
            self.writers = {key: name for key, name in self.writers.items() if key in there}

    def list_turns(self, reached: frozenset[int] | None) -> list[StoredTurn]:
        """Return all turns of the reached namespaces (None: all), newest first."""
        return sorted(self._iterate(reached), key=lambda turn: -turn.id)

    def find_linked(
        self, questions: Container[str], asked: Container[str], reached: frozenset[int] | None
    ) -> list[StoredTurn]:
        """Return the turns of the reached namespaces that answer some `questions`, and those that are `asked`."""
        return [turn for turn in self._iterate(reached) if turn.answers in questions or turn.key in asked]

    def _iterate(self, reached: frozenset[int] | None) -> Iterator[StoredTurn]:
        rings = (ring for namespace, ring in list(self._rings.items()) if reached is None or namespace in reached)
        return chain.from_iterable(rings)

    def read_texts(self, turns: Sequence[StoredTurn], read: Callable[[StoredTurn], Text]) -> list[Text]:
        """Return what searches need of the texts of turns; each is read once while it is used."""
        with self._lock:
            known = {turn.key: self._texts[turn.key] for turn in turns if turn.key in self._texts}
            for key in known:
                self._texts.move_to_end(key)
        made = {turn.key: read(turn) for turn in turns if turn.key not in known}
        if made:
            self._keep(made)
        return [known.get(turn.key) or made[turn.key] for turn in turns]

    def _keep(self, made: dict[str, Text]) -> None:
        with self._lock:
            self._texts.update(made)
            stems = sum(map(_weight, self._texts.values()))
            while stems > MOST_STEMS and len(self._texts) > 1:
                stems -= _weight(self._texts.popitem(last=False)[1])

    def fill(self) -> dict[int, int]:
        """Return how many turns each namespace has in L0."""
        return {namespace: len(ring) for namespace, ring in list(self._rings.items())}

    def _put(self, namespace: int, ring: tuple[StoredTurn, ...]) -> None:
        gone = {turn.key for turn in self._rings.get(namespace, ())} - {turn.key for turn in ring}
        with self._lock:
            for key in gone:
                self._texts.pop(key, None)
        if ring:
            self._rings[namespace] = ring
        else:
            self._rings.pop(namespace, None)


def _weight(text: Text) -> int:
    """Return how many stems of RAM a text takes, with its vector and what holds them."""
    return len(text.stems) + 20
