"""Watch workspaces for changes, with one low-priority thread each, so that a failing one does not affect the others.

Each folder that a pass enters is watched individually (inotify, through watchfiles), not recursively, so that excluded
folders cost no watches. Changes of indexed files lead to reading these files; any other relevant change (a new file, a
folder, a .gitignore, more than `_MANY` names) leads to a pass.

If the system has no watches left, the thread runs a pass every few seconds, and `status` says so. While the folder is
missing nothing is changed; the thread waits for it and runs a pass once it is back.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.client.errors import MemorydError, NotFound, Unavailable
from memoryd.client.protocol.workspaces import Watching
from memoryd.daemon.core.core import Core
from memoryd.daemon.workspaces import committing, indexing, registry
from memoryd.daemon.workspaces.chunks import absolute_path
from memoryd.daemon.workspaces.indexing import Gone
from memoryd.daemon.workspaces.live import get_live, get_lives
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

SCAN_EVERY_S = 5.0  # for a folder that cannot be watched
_DEBOUNCE_MS = 1000  # a longer burst of changes is handled in parts
_STEP_MS = 50  # changes within this time are handled together
_LOOK_MS = 2000  # how often the folder itself is checked, since inotify does not report that it was replaced
_MANY = 200  # names; for more a pass is cheaper
_AGAIN_S = 60.0  # until watches are requested again after there were none
_SCAN_SHARE = 20  # scanning takes at most 1 / _SCAN_SHARE of the time
_CLOSE_LIMIT_S = 2.0  # for all threads together

log = logging.getLogger(__name__)

Notify = Callable[[Sequence[str]], "RustNotify"]  # opens the source of changes in folders


def open_inotify(folders: Sequence[str]) -> "RustNotify":
    """Watch folders, not recursively; raise `OSError` if the system refuses."""
    from watchfiles._rust_notify import RustNotify  # most daemons have no workspace, and start without it

    try:
        # The last argument must be False: otherwise watchfiles hides a used up limit as a lack of permission.
        return RustNotify(list(folders), False, False, 0, False, False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise OSError(_advice(str(error))) from None


def _advice(error: str) -> str:
    if "limit reached" in error:
        return "The watches of inotify are used up; raise fs.inotify.max_user_watches."
    if "os error 24" in error:
        return "The instances of inotify are used up; raise fs.inotify.max_user_instances."
    return f"The system gives no watches: {error}."


class Watchers:
    """The threads of all workspaces. `notify` opens the source of changes."""

    def __init__(self, core: Core, notify: Notify = open_inotify) -> None:
        self._core, self._notify = core, notify
        self._swept = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._watchers: dict[int, _Watcher] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start watching; the first pass of each thread finds changes made while the daemon was not running."""
        get_lives(self._core).changed = self._follow_changes
        stopping = self._core.background.stopping
        self._thread = self._core.supervisor.start("workspaces", self._work, stopping, self._wake, nice=True)

    def _work(self) -> None:
        self.follow()
        if self._swept:
            return
        try:
            if gone := committing.sweep(self._core):
                log.info("%d chunks belonged to no workspace and were removed", gone)
        except Unavailable:
            pass
        except MemorydError as error:
            log.warning("chunks of former workspaces could not be removed: %s", error)
        self._swept = True

    def _follow_changes(self) -> None:
        """Start or stop watching a workspace that was added or removed; if that fails the thread tries again."""
        try:
            self.follow()
        except Exception:
            self._wake.set()

    def follow(self) -> None:
        """Start watching new workspaces, and stop watching removed ones."""
        with self._lock:
            if self._core.background.stopping.is_set():
                return
            known = {workspace.id: workspace for workspace in registry.list_all(self._core)}
            for number, watcher in list(self._watchers.items()):
                if known.get(number) != watcher.workspace:  # removed, or its patterns were changed
                    self._watchers.pop(number).close()
                    if number not in known:  # its thread may have ended before the removal
                        self._core.supervisor.forget(f"workspace-{number}")
            for number in known.keys() - self._watchers.keys():
                watcher = _Watcher(self._core, known[number], self._notify)
                watcher.start()
                self._watchers[number] = watcher

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            watchers = list(self._watchers.values())
        for watcher in watchers:
            watcher.close()
        self._wake.set()
        give_up_at = time.monotonic() + _CLOSE_LIMIT_S
        for thread in [self._thread, *(watcher.thread for watcher in watchers)]:
            if thread:
                thread.join(max(0.0, give_up_at - time.monotonic()))


class _Watcher:
    def __init__(self, core: Core, workspace: StoredWorkspace, notify: Notify) -> None:
        self.core, self.workspace = core, workspace
        self.live = get_live(core, workspace)
        self.stop, self._wake = threading.Event(), threading.Event()
        self.thread: threading.Thread | None = None
        self._notify = notify
        self._names = frozenset(pattern.rsplit("/", 1)[-1] for pattern in workspace.globs)

    def start(self) -> None:
        name = f"workspace-{self.workspace.id}"
        self.thread = self.core.supervisor.start(name, self._work, self.stop, self._wake, nice=True)

    def close(self) -> None:
        self.stop.set()
        self._wake.set()

    def _work(self) -> float:
        """Watch until an error; return how long to wait before the next attempt."""
        try:
            if not self._is_ending():
                self._watch()
        except Gone as error:
            self._set_status("gone", error.message)
            return _LOOK_MS / 1000
        except (NotFound, Unavailable):
            return 0.1  # removed meanwhile, or stopping
        except BaseException as error:
            self._set_status("scanning", f"Watching failed and is tried again: {error}")
            raise
        finally:
            if self._is_ending():
                self.stop.set()
                if self.live.removed:
                    self.core.supervisor.forget(f"workspace-{self.workspace.id}")
                else:
                    self._set_status("off", "")
        return 0.0

    def _is_ending(self) -> bool:
        return self.stop.is_set() or self.core.background.stopping.is_set() or self.live.removed

    def _set_status(self, watching: Watching, reason: str, watches: int = 0) -> None:
        """Record and log how the workspace is watched, for `status`."""
        live = self.live
        if (live.watching, live.reason) != (watching, reason):
            live.since = self.core.clock()
            level = logging.WARNING if watching in ("scanning", "gone") else logging.INFO
            log.log(level, "workspace %s (%s): %s", self.workspace.namespace, watching, reason or self.workspace.root)
        live.reason, live.watches, live.watching = reason, watches, watching

    # With inotify ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Watch until the set of folders changes, or the folder itself is replaced or removed."""
        identity = _read_identity(self.workspace.root)
        folders = frozenset(indexing.scan(self.core, self.workspace).folders)
        try:
            notify = self._notify([os.path.join(self.workspace.root, folder) for folder in sorted(folders)])
        except FileNotFoundError:
            return  # a folder was removed at this moment
        except OSError as error:
            self._scan_for_a_while(str(error))
            return
        try:
            self._set_status("inotify", "", len(folders))
            self._run_pass()
            while (
                not self._is_ending()
                and self.live.folders <= folders
                and _read_identity(self.workspace.root) == identity
            ):
                changes = notify.watch(_DEBOUNCE_MS, _STEP_MS, _LOOK_MS, self.stop)
                if isinstance(changes, set):
                    self._note_paths({path for _, path in changes}, folders)
        finally:
            notify.close()

    def _note_paths(self, paths: Iterable[str], folders: frozenset[str]) -> None:
        root = absolute_path(self.workspace, "")
        below = (path.removeprefix(root) for path in paths if path.startswith(root))
        names = [name for name in below if self._is_relevant(name, folders)]
        if not names:
            return
        if len(names) <= _MANY and self._is_known(names):
            indexing.reindex(self.core, self.workspace, sorted(names))
        else:
            self._run_pass()

    def _is_relevant(self, name: str, folders: frozenset[str]) -> bool:
        """Return whether a name may be a file to index, a folder to enter, or a .gitignore."""
        last = name.rsplit("/", 1)[-1]
        if last.startswith("."):
            return last == ".gitignore"
        if any(fnmatchcase(last, pattern) for pattern in self._names) or name in folders:
            return True
        return os.path.isdir(os.path.join(self.workspace.root, name))

    def _is_known(self, names: Sequence[str]) -> bool:
        with self.core.store.reading() as connection:
            return all(workspaces.read_stat(connection, self.workspace.id, name) is not None for name in names)

    def _run_pass(self) -> None:
        done = indexing.index(self.core, self.workspace)
        if done.indexed or done.removed:
            log.info(
                "workspace %s: %d files indexed, %d removed; chunks: %d new, %d kept",
                self.workspace.namespace,
                done.indexed,
                done.removed,
                done.chunks_new,
                done.chunks_kept,
            )

    # Without ---------------------------------------------------------------------------------------------------------

    def _scan_for_a_while(self, reason: str) -> None:
        self._set_status("scanning", reason)
        until = time.monotonic() + _AGAIN_S
        while not self._is_ending() and time.monotonic() < until:
            began = time.monotonic()
            self._run_pass()
            took_s = time.monotonic() - began
            self.stop.wait(max(SCAN_EVERY_S, _SCAN_SHARE * took_s))


def _read_identity(root: Path) -> tuple[int, int] | None:
    try:
        state = os.stat(root)
    except OSError:
        return None
    return state.st_dev, state.st_ino
