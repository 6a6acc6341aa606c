"""The state of workspaces in RAM: the readers of their files, their locks, and how they are watched.

Each workspace has its own reader, locks and state, so that a workspace on a hanging disk does not block the others.

Locks: `passing` is held while one thread checks all files of a workspace. A thread that reads single files needs no
lock: the later reading takes effect (see `committing`).
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
    """The state of one workspace."""

    def __init__(self, reader: FileReader) -> None:
        self.reader = reader
        self.passing = threading.Lock()
        self.removed = False
        self.slice = FIRST_SLICE  # rows that are written together, adjusted to the time that this takes
        self.progress: tuple[int, int] | None = None  # files done and to do, during a pass
        self.problems: dict[str, str] = {}  # why the latest pass could not read files, by relative path
        self.left_out: dict[str, str] = {}  # why the latest pass excluded files, by relative path
        self.folders: frozenset[str] = frozenset()  # folders that the latest pass entered
        self.scanned_at: float | None = None
        self.watching: Watching = "off"
        self.reason = ""
        self.since: float | None = None
        self.watches = 0  # number of inotify watches


class Lives:
    """The states of all workspaces. `changed` is called when a workspace was added or removed."""

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
        """Return the state of a workspace; raise `NotFound` if the workspace was removed."""
        number = workspace.id
        with self._lock:
            if number in self._removed:  # a thread that still reads it would start another process
                raise NotFound(f"The workspace {workspace.namespace} was removed.")
            found = self._lives.get(number)
            if found is None:
                found = self._lives[number] = Live(FileReader(self._limits))
            return found

    def forget(self, number: int) -> None:
        """Drop the state of a removed workspace."""
        with self._lock:
            self._removed.add(number)
            found = self._lives.pop(number, None)
        if found is not None:
            found.removed = True
            found.reader.close()

    def close(self) -> None:
        """Close the readers, which ends all reading at once, however slow the disk is."""
        with self._lock:
            lives = list(self._lives.values())
        for live in lives:
            live.reader.close()


def get_lives(core: Core) -> Lives:
    """Return the states of all workspaces."""
    return core.state(Lives, core)


def get_live(core: Core, workspace: StoredWorkspace) -> Live:
    """Return the state of a workspace."""
    return get_lives(core).get(workspace)
