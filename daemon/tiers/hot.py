"""The hot buffer: an LRU cache of the memories that recent searches of each namespace returned.

It holds only row numbers, and uses the codes of the vector index, so it never returns an outdated memory. It is empty
after a restart. Threads: any; a lock, within which no other lock is taken.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from memoryd.daemon.store.tiers import HOT_ROWS

_NAMESPACES = 1024


class HotBuffer:
    """The rows returned last, by the namespace of the search."""

    def __init__(self, capacity: int = HOT_ROWS) -> None:
        self.capacity = capacity
        self._rows: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, namespace: str, rows: Iterable[int]) -> None:
        """Add the rows that a search returned, the best one last."""
        with self._lock:
            buffer = self._rows.setdefault(namespace, OrderedDict())
            self._rows.move_to_end(namespace)
            for row in rows:
                buffer[row] = None
                buffer.move_to_end(row)
            while len(buffer) > self.capacity:
                buffer.popitem(last=False)
            while len(self._rows) > _NAMESPACES:
                self._rows.popitem(last=False)

    def list_rows(self, namespace: str) -> list[int]:
        """Return the rows of a namespace, the latest first."""
        with self._lock:
            return list(reversed(self._rows.get(namespace, ())))

    def fill(self) -> dict[str, int]:
        """Return how many rows each namespace holds."""
        with self._lock:
            return {namespace: len(rows) for namespace, rows in self._rows.items()}
