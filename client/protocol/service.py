"""Service: the daemon's health, its model, checks and copies of the database, its end."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Progress, rpc

PauseKind = Literal["session", "namespace", "folder"]


class ModelState(Struct, kw_only=True):
    """The embedder: `state` is missing, fetching, loading, ready or failed; `reembedding` while models are swapped."""

    name: str
    """the model"""
    state: Literal["missing", "fetching", "loading", "ready", "failed"]
    """how it is"""
    dimensions: int | None = None
    """length of its vectors, once ready"""
    format: str = ""
    """how its weights are stored, such as rows8/2: chosen for the processor when it was installed; empty: not known"""
    error: str = ""
    """why it is missing or failed"""
    attempts: int = 0
    """failed attempts to load it"""
    reembedding: Progress | None = None
    """how far the change to another model is"""


class ThreadState(Struct, kw_only=True):
    """How a thread of the daemon is. One that fails continues after a pause."""

    name: str
    """what it does"""
    restarts: int = 0
    """how often it failed and went on"""
    error: str = ""
    """why, the latest time"""
    failed_at: float | None = None
    """when it failed the latest time"""
    works_since: float | None = None
    """since when it works again; null: it fails, or it never failed"""

    def is_failing(self) -> bool:
        """Return whether it does not work at present."""
        return self.failed_at is not None and self.works_since is None


class ClockState(Struct, kw_only=True):
    """Whether the system's clock jumped by more than a day, or the machine was off for so long.

    Until a day has passed since then, nothing is deleted, moved or forgotten by the new time.
    """

    state: Literal["steady", "jumped"]
    """how it is"""
    now: float
    """what it says"""
    off_s: float = 0.0
    """by how much it jumped; below 0: back"""
    counts_in_s: float | None = None
    """how much of that day is left; null: it did not jump"""


class Unread(Struct, kw_only=True):
    """Texts in languages that the embedding model does not read: by meaning they are hardly found."""

    languages: list[str]
    """the commonest first; `Cyrillic` is any that is written so"""
    share: float
    """how much of all texts that is, by a sample"""
    model: str
    """one of the catalogue that reads them"""


class Pause(Struct, kw_only=True):
    """A place in which nothing is observed: a session, a namespace with those inside it, a folder with all below it."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """of the session, namespace (the empty text: all) or folder"""
    since: float | None = None
    """when it was paused; null: by the settings, `[observe] never`"""


class Status(Struct, kw_only=True):
    """Health of the daemon."""

    version: str
    """of the daemon"""
    protocol: int
    """version of the protocol it speaks"""
    pid: int
    """its process"""
    uptime_s: float
    """for how many seconds it has run"""
    socket: str
    """where it listens"""
    data_dir: str
    """the folder of the database"""
    memories: int
    """how many there are"""
    pending_embeddings: int
    """how many wait for a vector"""
    model: ModelState
    """the embedding model"""
    degraded: list[str] = []
    """what does not work now: `vector` while there is no model, `database` where a part of it cannot be read"""
    connections: int = 0
    """open connections"""
    queued: dict[str, int] = {}
    """calls under way or waiting, per lane; writes waiting"""
    rss_bytes: int = 0
    """resident memory"""
    index_bytes: int = 0
    """of that the vector index"""
    database_bytes: int = 0
    """size of the database file and its log"""
    database_limit_bytes: int = 0
    """`max_size_mb` of [storage]; at it nothing more is added; 0: no limit"""
    database_used_bytes: int = 0
    """what the limit is compared with: pages of the file that are in use, not empty ones"""
    clock: ClockState | None = None
    """how the system's clock is"""
    threads: list[ThreadState] = []
    """the daemon's threads"""
    turns: int = 0
    """turns in L0, which are no memories yet"""
    data_bytes: int = 0
    """size of all files in `data_dir`: the database, its log, copies, the daemon's log"""
    disk_full: bool = False
    """whether the disk has no room: what is there is read and deleted, nothing is added until there is"""
    options: list[str] = []
    """with which it was started, all paths absolute; shown to the owner"""
    unread: Unread | None = None
    """texts in languages that the model does not read, when they are a tenth of all or more"""
    pauses: list[Pause] = []
    """where observing is paused; shown to the owner"""


class Verification(Struct, kw_only=True):
    """Result of a check of the store: `problems` is empty when all is well."""

    memories: int
    """how many there are"""
    pending_embeddings: int
    """how many wait for a vector"""
    problems: list[str] = []
    """what is wrong; empty: nothing"""
    repaired: list[str] = []
    """what was rebuilt"""


class BackedUp(Struct, kw_only=True):
    """A copy that was made and checked, and what it holds."""

    path: str
    """the copy"""
    size_bytes: int
    """its size"""
    memories: int
    """how many memories it holds, parts of files aside"""
    turns: int = 0
    """how many turns of L0 it holds"""
    parts: int = 0
    """how many parts of files it holds"""
    operation: str | None
    """the latest operation that it holds; null: there is none"""
    took_ms: float
    """how long it took, the check included"""


@rpc("anyone", reads=True, lane="control", any_version=True, page=True)
class GetStatus(Call[Status], kw_only=True, frozen=True, tag="status"):
    """Health of the daemon: model, queue of embeddings, connections, memory use."""


@rpc("owner", grows=True, page=False)
class UseModel(Call[Done], kw_only=True, frozen=True):
    """Switch to another installed embedding model. Memories are re-embedded in the background, search continues."""

    name: str
    """name of an installed model"""


@rpc("owner", lane="bulk", page=False)
class Verify(Call[Verification], kw_only=True, frozen=True):
    """Check the database, and that full text, vectors, hashes, graph and the account of turns agree with the rows.

    With `repair` all indexes and everything derived are rebuilt from the rows, while the daemon continues.
    """

    repair: bool = False
    """rebuild what is derived"""


@rpc("owner", lane="bulk", page=False)
class Backup(Call[BackedUp], kw_only=True, frozen=True):
    """Copy the whole database to one file while it is in use, and check it: it holds all that was acknowledged before.

    `path` is an absolute path of a new file or of a folder; without one the copy is written to `backups` beside the
    database, and stays there until somebody deletes it.
    """

    path: str = ""
    """an absolute path of a new file or of a folder; empty: `backups` beside the database"""


@rpc("owner", lane="inline", any_version=True, page=False)
class Shutdown(Call[Done], kw_only=True, frozen=True):
    """Finish the calls under way, write everything to disk and end the daemon, or start again."""

    restart: bool = False
    """start again from what is installed now, on the same socket: nobody is refused"""


class Welcome(Struct, kw_only=True):
    """Which daemon answers; `installed` is the version on disk, which is newer after an upgrade."""

    version: str
    """version of memoryd that answers"""
    protocol: int
    """version of the protocol"""
    installed: str
    """version that a daemon started now would have"""
    restarting: bool = False
    """it hands over to that one now"""


@rpc("anyone", reads=True, lane="inline", any_version=True, page=False)
class Hello(Call[Welcome], kw_only=True, frozen=True):
    """Say which version the client has, ahead of its first call.

    Where a newer version was installed in the place that the daemon runs from, and the client is no older than that,
    the daemon restarts as `shutdown` does with `restart`, so that an upgrade leaves no old code running. Nothing else
    depends on it.
    """

    version: str
    """the client's version, like 0.2.0"""
