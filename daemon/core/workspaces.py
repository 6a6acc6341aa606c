"""What RAM holds of workspaces: the readers of their files, their locks, how each is watched, threads at work on them.

Each workspace has a reader, locks and a state of its own, so that one whose disk hangs holds up no other.

Locks: `passing` is held while one thread looks at all files of a workspace. Whoever reads single files needs none: what
is read later wins (see `workspaces/committing.py`).
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from memoryd.client.errors import Unavailable
from memoryd.client.protocol import Watching
from memoryd.daemon.config import PrivacyConfig, WorkspacesConfig
from memoryd.daemon.system.process import lower_priority
from memoryd.daemon.workspaces.documents.document import Limits
from memoryd.daemon.workspaces.documents.reader import Reader

T = TypeVar("T")

FIRST_SLICE = 16
_JOIN_LIMIT_S = 2.0  # for all


class Live:
    """One workspace at work."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.passing = threading.Lock()
        self.removed = False
        self.slice = FIRST_SLICE  # rows that are written together; follows the time that it takes
        self.progress: tuple[int, int] | None = None  # files done and to do, while a pass continues
        self.problems: dict[str, str] = {}  # what the latest pass could not look at, by relative path
        self.left_out: dict[str, str] = {}  # what the latest pass was not meant to read, and why
        self.folders: frozenset[str] = frozenset()  # what the latest pass looked into
        self.scanned_at: float | None = None
        self.watching: Watching = "off"
        self.reason = ""
        self.since: float | None = None
        self.watches = 0  # of inotify


class Workspaces:
    """All workspaces of a core. `changed` hears of one that was added or removed."""

    def __init__(self, config: WorkspacesConfig, privacy: PrivacyConfig) -> None:
        self._limits = Limits(
            config.chunk_chars,
            config.overlap_chars,
            redact=privacy.secrets != "allow",
            allow=tuple(privacy.allow),
        )
        self._lives: dict[int, Live] = {}
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self.changed: Callable[[], None] = lambda: None

    def get_live(self, number: int) -> Live:
        """Return what RAM holds of a workspace."""
        with self._lock:
            found = self._lives.get(number)
            if found is None:
                found = self._lives[number] = Live(Reader(self._limits))
            return found

    def forget(self, number: int) -> None:
        """Let go of a workspace that was removed."""
        with self._lock:
            found = self._lives.pop(number, None)
        if found is not None:
            found.removed = True
            found.reader.close()

    def check_open(self) -> None:
        """Raise `Unavailable` once the daemon stops."""
        if self.stopping.is_set():
            raise Unavailable("The daemon is stopping; the rest is indexed after its next start.")

    def run_apart(self, name: str, work: Callable[[], T]) -> "Future[T]":
        """Run work on a low-priority thread of its own."""
        self.check_open()
        future: Future[T] = Future()

        def run() -> None:
            lower_priority()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:  # else it might end before it is known
            thread.start()
            self._threads.add(thread)
        return future

    def close(self) -> None:
        """Stop what is at work and end the readers."""
        self.stopping.set()
        with self._lock:
            threads, lives = list(self._threads), list(self._lives.values())
        for live in lives:
            live.reader.close()  # whoever reads ends at once, however slow the disk is
        give_up_at = time.monotonic() + _JOIN_LIMIT_S
        for thread in threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))
