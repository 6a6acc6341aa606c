"""The shelf of a root: in RAM, what a session's start may tell of it, so that no start waits for a line.

It is fetched when the line opens, after a change, and every twenty minutes while it is open; it goes with the daemon,
or at once when the place refuses the line. What the person wrote or confirmed is on it; a start tells nothing else of a
root.
"""

import time
from collections.abc import Callable, Sequence

from memoryd.client.errors import Forbidden, MemorydError, NotFound, Unauthenticated
from memoryd.client.protocol import Memory

EVERY_S, AFTER_S = 1200.0, 5.0  # a line that nobody uses is closed before it is fetched again
MOST, MOST_BYTES = 2000, 4_000_000
PAGE = 1000
_REFUSED = (Unauthenticated, Forbidden, NotFound)
_DENIED = "Permission denied"  # as ssh says it


class Shelf:
    """What is kept of one root; `read` returns what is there from an offset on, `PAGE` memories at most.

    It is fetched by one thread; any may read it or clear it.
    """

    def __init__(self, read: Callable[[int], Sequence[Memory]], is_mine: Callable[[Memory], bool]) -> None:
        self._read, self._is_mine = read, is_mine
        self._due_at = -1.0
        self.memories: Sequence[Memory] = ()

    def expect(self) -> None:
        """Have it fetched at the next occasion."""
        self._due_at = 0.0

    def note_change(self) -> None:
        """Have it fetched a little after something was changed there."""
        self._due_at = min(self._due_at, time.monotonic() + AFTER_S)

    def is_expected(self) -> bool:
        """Return whether it is to be fetched now, be it that the line is opened for it."""
        return self._due_at == 0.0

    def drop(self, error: MemorydError) -> None:
        """Clear it where an error says that this machine has no right any more."""
        if isinstance(error, _REFUSED) or _DENIED in error.message:
            self.memories = ()

    def fetch(self) -> float:
        """Fetch it if that is due; return the seconds until it is due again."""
        left = self._due_at - time.monotonic()
        if left > 0.0:
            return left
        self._due_at = time.monotonic() + EVERY_S
        fetched: dict[str, Memory] = {}
        size = 0
        try:
            for offset in range(0, MOST, PAGE):
                page = self._read(offset)
                for memory in page:
                    size += len(memory.content.encode()) + len(memory.summary.encode())
                    if size <= MOST_BYTES and self._is_mine(memory):
                        fetched[memory.id] = memory
                if len(page) < PAGE:
                    break
        except (MemorydError, TimeoutError) as error:  # what it has stays, unless the place refused
            if isinstance(error, MemorydError):
                self.drop(error)
        else:
            self.memories = tuple(fetched.values())
        return EVERY_S
