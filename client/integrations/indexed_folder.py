"""A folder that the daemon indexes as its files change: at once while it answers, else when it is back.

The files are the truth, so a change of one never fails for a daemon that is away: it looks at all files of a workspace
when it starts, and a folder that is no workspace yet becomes one by a thread that tries again.
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
MOST_AHEAD = 200  # texts without a vector, of whatever namespace, that a change waits for: they are embedded in order
_PASSING = (Busy, StorageFailed, StorageFull, TimedOut, Unavailable)

log = logging.getLogger(__name__)


class FollowedFolder:
    """A folder with the patterns of its files that are indexed, in a namespace or the one of its name."""

    def __init__(
        self, client: Client, folder: str | os.PathLike[str], namespace: str | None, globs: Sequence[str]
    ) -> None:
        self._client, self._folder = client, os.path.realpath(folder)
        self._namespace, self._globs = namespace, globs
        self._beginning = threading.Lock()
        self._has_begun = self._is_workspace = False

    def begin(self) -> None:
        """Make the folder a workspace, once; raise why it cannot be one, but not that the daemon is away."""
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
        """Have the index brought up to date with what was changed, vectors included, whoever read the files first.

        Without a model, or where very many texts wait for their vectors, words alone find it for now.
        """
        if not self._is_workspace:  # all is indexed once it is one
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
