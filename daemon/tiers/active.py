"""L0 in RAM: a copy of the last turns of each namespace, which the table `turns` holds.

A transaction that changes the table replaces the rings here after its commit; at a start they are read from the table.
Threads: the writer replaces whole tuples, so readers need no lock; the cache of texts has one, within which no other
lock is taken.
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
MOST_STEMS = 200_000  # cached of all texts, some 20 MB


@dataclass(slots=True)
class Text:
    """The indexed text of a turn: hash, frequency of each stem, vector."""

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
        self.writers: dict[str, str] = {}  # token of the client that added the turn, since the start of the daemon
        self._rings = {namespace: tuple(ring) for namespace, ring in rings.items()}
        self._texts: OrderedDict[str, Text] = OrderedDict()  # by turn, least recently used first
        self._lock = threading.Lock()

    def follow(self, transaction: Transaction, namespaces: Iterable[int]) -> None:
        """Replace some rings with their new content after the transaction's commit."""
        for namespace in set(namespaces):
            ring = tuple(turns.read_ring(transaction.connection, namespace))
            transaction.after_commit(lambda place=namespace, ring=ring: self._put(place, ring))  # type: ignore[misc]

    def note_writer(self, keys: Iterable[str | None], token: str) -> None:
        """Record the token with which turns were added. Threads: the writer."""
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
        """Return the turns of the reached namespaces that answer one of `questions` or whose id is in `asked`."""
        return [turn for turn in self._iterate(reached) if turn.answers in questions or turn.key in asked]

    def _iterate(self, reached: frozenset[int] | None) -> Iterator[StoredTurn]:
        rings = (ring for namespace, ring in list(self._rings.items()) if reached is None or namespace in reached)
        return chain.from_iterable(rings)

    def read_texts(self, turns: Sequence[StoredTurn], read: Callable[[StoredTurn], Text]) -> list[Text]:
        """Return the indexed texts of turns, from the cache if possible."""
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
    """Return the memory that a text takes with its vector, in units of a stem."""
    return len(text.stems) + 20
