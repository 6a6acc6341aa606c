"""The shelf of a root: the memories that a session's start may show, kept in RAM so that no start waits for the place.

They are those that the person wrote or confirmed. The newest may also be shown beside a prompt: they are embedded and
split into words here, so that no prompt waits or is sent anywhere.

The shelf is fetched when the line opens, after a change, and every twenty minutes while the line is open; if that
fails, soon again. It is lost when the daemon ends, and cleared when the place refuses the line.
"""

import time
from collections.abc import Callable, Sequence

from memoryd.client.errors import Forbidden, MemorydError, NotFound, Unauthenticated
from memoryd.client.protocol import Memory
from memoryd.daemon.search.remotes import MeasuredText

EVERY_S, AFTER_S = 1200.0, 5.0  # the first is longer than an unused line stays open
_AGAIN_S = 15.0  # after a fetch that failed, if the line is still open
MOST, MOST_BYTES = 2000, 4_000_000
PAGE = 1000
MOST_MEASURED = 300  # the newest, which are shown beside a prompt; as many as `unasked` compares
_REFUSED = (Unauthenticated, Forbidden, NotFound)
_DENIED = "Permission denied"  # in ssh's error message


class Shelf:
    """The shelf of one root; `read` returns at most `PAGE` of the root's memories from an offset on.

    `on_refused` is called when the place says that this machine has lost its access. `measure` returns the words of a
    memory, and its vector by the model of `find_model`. One thread fetches it; any thread may read or clear it.
    """

    def __init__(
        self,
        read: Callable[[int], Sequence[Memory]],
        is_mine: Callable[[Memory], bool],
        on_refused: Callable[[], None],
        measure: Callable[[Memory], MeasuredText],
        find_model: Callable[[], str],
    ) -> None:
        self._read, self._is_mine, self._on_refused = read, is_mine, on_refused
        self._measure, self._find_model = measure, find_model
        self._due_at = -1.0
        self.memories: Sequence[Memory] = ()
        self._measured: dict[str, tuple[str, MeasuredText]] = {}  # by id, with the text that was measured

    def expect(self) -> None:
        """Have it fetched as soon as possible, even if the line must be opened for that."""
        self._due_at = 0.0

    def note_change(self) -> None:
        """Have it fetched soon, since something was changed in the root."""
        self._due_at = min(self._due_at, time.monotonic() + AFTER_S)

    def is_expected(self) -> bool:
        """Return whether it should be fetched now, even if the line must be opened for that."""
        return self._due_at == 0.0

    def drop(self, error: MemorydError) -> None:
        """Clear it if an error says that this machine has lost its access."""
        if isinstance(error, _REFUSED) or _DENIED in error.message:
            self.memories, self._measured = (), {}
            self._on_refused()

    def fetch(self) -> float:
        """Fetch it if it is due; return the seconds until it is due again."""
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
        except (MemorydError, TimeoutError) as error:  # its memories stay, unless access was refused
            self._due_at = time.monotonic() + _AGAIN_S
            if isinstance(error, MemorydError):
                self.drop(error)
            return _AGAIN_S
        self.memories = tuple(fetched.values())
        self._measure_newest()
        return max(0.0, self._due_at - time.monotonic())

    def find_measured(self, memory: Memory) -> MeasuredText | None:
        """Return the words and the vector of a memory, if it is among the newest."""
        content, text = self._measured.get(memory.id, ("", None))
        return text if content == memory.content else None

    def _measure_newest(self) -> None:
        measured: dict[str, tuple[str, MeasuredText]] = {}
        model = self._find_model()
        for memory in sorted(self.memories, key=lambda memory: -memory.created_at)[:MOST_MEASURED]:
            known = self.find_measured(memory)
            try:
                text = known if known is not None and known.model == model else self._measure(memory)
            except MemorydError:  # the daemon is stopping
                return
            measured[memory.id] = memory.content, text
        if self.memories:  # else access was refused meanwhile
            self._measured = measured
