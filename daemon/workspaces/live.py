"""What RAM holds of workspaces: the readers of their files, their locks, how each is watched.

Each workspace has a reader, locks and a state of its own, so that one whose disk hangs holds up no other.

Locks: `passing` is held while one thread looks at all files of a workspace. Whoever reads single files needs none: what
is read later wins (see `committing`).
"""

import threading
from collections.abc import Callable

from memoryd.client.errors import NotFound
from memoryd.client.protocol.workspaces import Watching
from memoryd.daemon.core.core import Core
from memoryd.daemon.workspaces.documents.document import Limits
from memoryd.daemon.workspaces.documents.reader import FileReader
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

FIRST_SLICE = 16


class Live:
    """One workspace at work."""

    def __init__(self, reader: FileReader) -> None:
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


class Lives:
    """What RAM holds of the workspaces of a core. `changed` hears of one that was added or removed."""

    def __init__(self, core: Core) -> None:
        config, privacy = core.config.workspaces, core.config.privacy
        self._limits = Limits(
            config.chunk_chars,
            config.overlap_chars,
            redact=privacy.secrets != "allow",
            allow=tuple(privacy.allow),
        )
        self._lives: dict[int, Live] = {}
        self._removed: set[int] = set()  # numbers, which are never used again
        self._lock = threading.Lock()
        self.changed: Callable[[], None] = lambda: None
        core.background.on_close.append(self.close)

    def get(self, workspace: StoredWorkspace) -> Live:
        """Return what RAM holds of a workspace; raise `NotFound` when it was removed."""
        number = workspace.id
        with self._lock:
            if number in self._removed:  # a thread of it may still ask, and would start another process
                raise NotFound(f"The workspace {workspace.namespace} was removed.")
            found = self._lives.get(number)
            if found is None:
                found = self._lives[number] = Live(FileReader(self._limits))
            return found

    def forget(self, number: int) -> None:
        """Let go of a workspace that was removed."""
        with self._lock:
            self._removed.add(number)
            found = self._lives.pop(number, None)
        if found is not None:
            found.removed = True
            found.reader.close()

    def close(self) -> None:
        """End the readers: whoever reads ends at once, however slow the disk is."""
        with self._lock:
            lives = list(self._lives.values())
        for live in lives:
            live.reader.close()


def get_lives(core: Core) -> Lives:
    """Return what RAM holds of all workspaces."""
    return core.state(Lives, core)


def get_live(core: Core, workspace: StoredWorkspace) -> Live:
    """Return what RAM holds of a workspace."""
    return get_lives(core).get(workspace)
