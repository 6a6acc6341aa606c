"""A folder that the daemon indexes when its files change: at once, or when the daemon is back.

A change of a file never fails because no daemon runs: when the daemon starts, it scans all files of its workspaces. A
folder that is not a workspace yet is added by a thread, which tries until a daemon answers.
"""

import logging
import os
import threading
from collections.abc import Sequence

from memoryd.client.errors import (
    Busy,
    MemorydError,
    ModelUnavailable,
    StorageFailed,
    StorageFull,
    TimedOut,
    Unavailable,
)
from memoryd.client.transport.sync import Client

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
MOST_AHEAD = 200  # a change waits for its vectors if the embedding backlog of all namespaces is at most this long
_PASSING = (Busy, StorageFailed, StorageFull, TimedOut, Unavailable)

log = logging.getLogger(__name__)


class FollowedFolder:
    """A folder whose files are indexed: `globs` select them; their `namespace` is by default the folder's name."""

    def __init__(
        self, client: Client, folder: str | os.PathLike[str], namespace: str | None, globs: Sequence[str]
    ) -> None:
        self._client, self._folder = client, os.path.realpath(folder)
        self._namespace, self._globs = namespace, globs
        self._beginning = threading.Lock()
        self._has_begun = self._is_workspace = False

    def begin(self) -> None:
        """Make the folder a workspace, once; raise the daemon's refusal, but no error if no daemon answers."""
        with self._beginning:
            if self._has_begun:
                return
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            try:
                self._add()
            except _PASSING as error:
                log.warning("%s is not indexed yet: %s", self._folder, error)
                threading.Thread(target=self._keep_trying, name="memoryd-followed-folder", daemon=True).start()
            self._has_begun = True

    def index(self) -> None:
        """Update the index after a change, including vectors, even if the daemon's watcher was first.

        Without a model, or with a long embedding backlog, only searches by words find the change for now.
        """
        if not self._is_workspace:  # adding the workspace indexes everything
            return
        try:
            waits = self._client.status().pending_embeddings <= MOST_AHEAD
            self._client.index_workspace(self._folder, wait=waits)
        except ModelUnavailable:
            return
        except MemorydError as error:
            log.warning("what was changed in %s is not indexed yet: %s", self._folder, error)

    def _add(self) -> None:
        self._client.add_workspace(self._folder, namespace=self._namespace, globs=self._globs)  # or changes its globs
        self._is_workspace = True
        self.index()

    def _keep_trying(self) -> None:
        pause_s, waiting = FIRST_PAUSE_S, threading.Event()
        while not self._is_workspace:
            waiting.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                self._add()
            except _PASSING:
                continue
            except MemorydError as error:
                log.error("%s cannot be indexed: %s", self._folder, error)
                return
