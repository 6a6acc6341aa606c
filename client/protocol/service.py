"""Service: the daemon's health, its model, checks and copies of the database, stop and restart."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Progress, rpc

PauseKind = Literal["session", "namespace", "folder"]


class ModelState(Struct, kw_only=True):
    """The embedding model."""

    name: str
    """its name"""
    state: Literal["missing", "fetching", "loading", "ready", "failed"]
    """its state"""
    dimensions: int | None = None
    """length of its vectors; null: it is not ready"""
    format: str = ""
    """format of its weights, such as rows8/2, chosen for the processor at the installation; empty: unknown"""
    error: str = ""
    """why it is missing or failed"""
    attempts: int = 0
    """failed attempts to load it"""
    reembedding: Progress | None = None
    """progress of a change to another model; null: there is none"""


class ThreadState(Struct, kw_only=True):
    """A thread of the daemon. After an error it starts again."""

    name: str
    """its task"""
    restarts: int = 0
    """how often it failed and started again"""
    error: str = ""
    """the latest error"""
    failed_at: float | None = None
    """when it failed last"""
    works_since: float | None = None
    """since when it works again; null: it fails, or it never failed"""

    def is_failing(self) -> bool:
        """Return whether it fails at present."""
        return self.failed_at is not None and self.works_since is None


class ClockState(Struct, kw_only=True):
    """Whether the system's clock jumped by more than a day, which a machine that was off so long looks like too.

    For a day after a jump, nothing is deleted, moved or forgotten because of the new time.
    """

    state: Literal["steady", "jumped"]
    """whether it jumped"""
    now: float
    """the clock's time"""
    off_s: float = 0.0
    """seconds that it jumped; negative: backward"""
    counts_in_s: float | None = None
    """seconds until the new time counts; null: it did not jump"""


class Unread(Struct, kw_only=True):
    """Texts in languages that the embedding model does not support, so that searches by meaning hardly find them."""

    languages: list[str]
    """the languages, the commonest first; `Cyrillic` is any in that script"""
    share: float
    """their share of all texts, estimated from a sample"""
    model: str
    """a model of the catalogue that supports them"""


class Pause(Struct, kw_only=True):
    """A place in which nothing is observed: a session, a namespace with its inner ones, or a folder with subfolders."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """name of the session, namespace (the empty text: all) or folder"""
    since: float | None = None
    """when it was paused; null: the settings declare it (`[observe] never`)"""


class Status(Struct, kw_only=True):
    """Health of the daemon."""

    version: str
    """version of the daemon"""
    protocol: int
    """version of its protocol"""
    pid: int
    """its process id"""
    uptime_s: float
    """seconds since it started"""
    socket: str
    """path of its socket"""
    data_dir: str
    """the folder of the database"""
    memories: int
    """how many memories there are"""
    pending_embeddings: int
    """how many memories wait for a vector"""
    model: ModelState
    """the embedding model"""
    degraded: list[str] = []
    """what does not work now: `vector` while there is no model, `database` if a part of it cannot be read"""
    connections: int = 0
    """open connections"""
    queued: dict[str, int] = {}
    """calls that run or wait, per lane; writes that wait"""
    rss_bytes: int = 0
    """resident memory"""
    index_bytes: int = 0
    """the vector index's part of it"""
    database_bytes: int = 0
    """size of the database file and its log"""
    database_limit_bytes: int = 0
    """`max_size_mb` of [storage], from which on nothing is added; 0: no limit"""
    database_used_bytes: int = 0
    """size that is compared with the limit: pages of the file that are in use"""
    clock: ClockState | None = None
    """state of the system's clock"""
    threads: list[ThreadState] = []
    """the daemon's threads"""
    turns: int = 0
    """turns in L0, which are no memories yet"""
    data_bytes: int = 0
    """size of all files in `data_dir`: the database, its log, copies, the daemon's log"""
    disk_full: bool = False
    """the disk is full: memories can be read and deleted, but not added"""
    options: list[str] = []
    """its command line's options, with absolute paths; returned to the owner alone"""
    unread: Unread | None = None
    """texts in languages that the model does not support, if they are at least a tenth of all"""
    pauses: list[Pause] = []
    """where observing is paused; returned to the owner alone"""


class Verification(Struct, kw_only=True):
    """Result of a check of the store."""

    memories: int
    """how many memories there are"""
    pending_embeddings: int
    """how many memories wait for a vector"""
    problems: list[str] = []
    """what is wrong; empty: nothing"""
    repaired: list[str] = []
    """what was rebuilt"""


class BackedUp(Struct, kw_only=True):
    """A copy of the database that was made and checked."""

    path: str
    """its path"""
    size_bytes: int
    """its size"""
    memories: int
    """how many memories it has, not counting parts of files"""
    turns: int = 0
    """how many turns of L0 it has"""
    parts: int = 0
    """how many parts of files it has"""
    operation: str | None
    """id of the latest operation in it; null: there is none"""
    took_ms: float
    """milliseconds that copying and checking took"""


@rpc("anyone", reads=True, lane="control", any_version=True, page=True)
class GetStatus(Call[Status], kw_only=True, frozen=True, tag="status"):
    """Return the health of the daemon: model, queue of embeddings, connections, memory use."""


@rpc("owner", grows=True, page=False)
class UseModel(Call[Done], kw_only=True, frozen=True):
    """Switch to another installed embedding model. Memories are re-embedded in the background, search continues."""

    name: str
    """name of an installed model"""


@rpc("owner", lane="bulk", page=False)
class Verify(Call[Verification], kw_only=True, frozen=True):
    """Check the database, and whether full text, vectors, hashes, graph and the account of turns agree with the rows.

    With `repair` all indexes and derived tables are rebuilt from the rows, while the daemon continues.
    """

    repair: bool = False
    """rebuild all that is derived"""


@rpc("owner", lane="bulk", page=False)
class Backup(Call[BackedUp], kw_only=True, frozen=True):
    """Copy the whole database to one file while it is in use, and check the copy.

    The copy has everything that was acknowledged before the call.

    `path` is an absolute path of a new file or of a folder; without one the copy is written to `backups` beside the
    database, and stays there until somebody deletes it.
    """

    path: str = ""
    """an absolute path of a new file or of a folder; empty: `backups` beside the database"""


@rpc("owner", lane="inline", any_version=True, page=False)
class Shutdown(Call[Done], kw_only=True, frozen=True):
    """Finish the current calls, write everything to disk, and stop or restart the daemon."""

    restart: bool = False
    """start the version that is installed now, on the same socket; meanwhile calls wait and none is refused"""


class Welcome(Struct, kw_only=True):
    """The daemon's versions."""

    version: str
    """version of the running daemon"""
    protocol: int
    """version of its protocol"""
    installed: str
    """version on disk, which is newer after an upgrade"""
    restarting: bool = False
    """the daemon restarts now, with the installed version"""


@rpc("anyone", reads=True, lane="inline", any_version=True, page=False)
class Hello(Call[Welcome], kw_only=True, frozen=True):
    """Tell the daemon the client's version, before the first call.

    If a newer version was installed where the daemon runs from, and the client is not older than that, the daemon
    restarts as by `shutdown` with `restart`, so that no old code runs after an upgrade. The call does nothing else.
    """

    version: str
    """the client's version, like 0.2.0"""
