"""The hot buffer: what searches of each namespace returned lately, the least recently used forgotten first.

It holds row numbers; their vectors are the index's own codes, so a memory that was changed or deleted can never be met
here as it was. Lost at a restart. Threads: a lock, a leaf.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from memoryd.daemon.store.tiers import HOT_ROWS

_NAMESPACES = 1024


class HotBuffer:
    """The latest rows returned, by the namespace that searched."""

    def __init__(self, capacity: int = HOT_ROWS) -> None:
        self.capacity = capacity
        self._rows: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, namespace: str, rows: Iterable[int]) -> None:
        """Note rows that a search returned, the best one last."""
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
