"""L0 in RAM: the last turns of each namespace, as the journal holds them.

Every transaction that changes the journal hands the new rings over after its commit, so RAM and disk agree; a start
reads them back. Threads: the writer replaces whole tuples, readers take them as they are.
"""

from collections.abc import Iterable

import apsw

from memoryd.daemon.store import turns
from memoryd.daemon.store.turns import Turn
from memoryd.daemon.store.writer import Transaction


class Active:
    """The rings of a database, by namespace number."""

    def __init__(self, connection: apsw.Connection) -> None:
        rings: dict[int, list[Turn]] = {}
        for turn in turns.everything(connection):
            rings.setdefault(turn.namespace, []).append(turn)
        self._rings = {namespace: tuple(ring) for namespace, ring in rings.items()}

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
        """Return the newest turns of the reached namespaces, newest first; recalls are not among them."""
        found = [
            turn
            for namespace, ring in list(self._rings.items())
            if reached is None or namespace in reached
            for turn in ring[-2 * count :]
            if turn.source != turns.RECALL
        ]
        return sorted(found, key=lambda turn: -turn.id)[:count]

    def fill(self) -> dict[int, int]:
        """Return how many turns each namespace has in L0."""
        return {namespace: len(ring) for namespace, ring in list(self._rings.items())}

    def _put(self, namespace: int, ring: tuple[Turn, ...]) -> None:
        if ring:
            self._rings[namespace] = ring
        else:
            self._rings.pop(namespace, None)
