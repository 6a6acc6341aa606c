"""L0 in RAM: the last turns of each namespace, as the journal holds them.

Every transaction that changes the journal hands the new rings over after its commit, so RAM and disk agree; a start
reads them back. Threads: the writer replaces whole tuples, readers take them as they are; what was read of texts has a
lock, a leaf.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from memoryd.daemon.store import turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.turns import Turn
from memoryd.daemon.store.writer import Transaction

READ_TEXTS = 64


class Text(NamedTuple):
    """What searches need of the text of a turn: the hash of what is embedded, and how often it has which stem."""

    hash: bytes
    stems: Counter[str]


class Active:
    """The rings of a database, by namespace number."""

    def __init__(self, connection: Connection) -> None:
        rings: dict[int, list[Turn]] = {}
        for turn in turns.everything(connection):
            rings.setdefault(turn.namespace, []).append(turn)
        self._rings = {namespace: tuple(ring) for namespace, ring in rings.items()}
        self._texts: OrderedDict[str, Text] = OrderedDict()  # of turns, the one used longest ago first
        self._lock = threading.Lock()

    def follow(self, transaction: Transaction, namespaces: Iterable[int]) -> None:
        """Take over what the transaction has left of some rings, once it is on disk."""
        for namespace in set(namespaces):
            ring = tuple(turns.ring(transaction.connection, namespace))
            transaction.after_commit(lambda place=namespace, ring=ring: self._put(place, ring))  # type: ignore[misc]

    def of(self, reached: frozenset[int] | None) -> list[Turn]:
        """Return all turns of the reached namespaces (None: all), newest first."""
        found = [
            turn
            for namespace, ring in list(self._rings.items())
            if reached is None or namespace in reached
            for turn in ring
        ]
        return sorted(found, key=lambda turn: -turn.id)

    def tail(self, reached: frozenset[int] | None, count: int = 5) -> list[Turn]:
        """Return the newest turns of the reached namespaces, newest first."""
        found = [
            turn
            for namespace, ring in list(self._rings.items())
            if reached is None or namespace in reached
            for turn in ring[-count:]
        ]
        return sorted(found, key=lambda turn: -turn.id)[:count]

    def find_linked(
        self, questions: Container[str], asked: Container[str], reached: frozenset[int] | None
    ) -> list[Turn]:
        """Return the turns of the reached namespaces that answer some `questions`, and those that are `asked`."""
        rings = (ring for namespace, ring in list(self._rings.items()) if reached is None or namespace in reached)
        return [turn for ring in rings for turn in ring if turn.answers in questions or turn.key in asked]

    def text(self, turn: Turn, read: Callable[[Turn], Text]) -> Text:
        """Return what searches need of a turn's text; it is read once while it is used."""
        with self._lock:
            if found := self._texts.get(turn.key):
                self._texts.move_to_end(turn.key)
                return found
        made = read(turn)
        with self._lock:
            self._texts[turn.key] = made
            while len(self._texts) > READ_TEXTS:
                self._texts.popitem(last=False)
        return made

    def fill(self) -> dict[int, int]:
        """Return how many turns each namespace has in L0."""
        return {namespace: len(ring) for namespace, ring in list(self._rings.items())}

    def _put(self, namespace: int, ring: tuple[Turn, ...]) -> None:
        if ring:
            self._rings[namespace] = ring
        else:
            self._rings.pop(namespace, None)
