"""Workspaces: folders of Markdown files that the daemon indexes, watches and writes into. The files are the truth."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import (
    MAX_INTEGER,
    Call,
    Done,
    Iterated,
    LineNumber,
    Listed,
    Redacted,
    Scoped,
    rpc,
)
from memoryd.client.protocol.tiers import TurnList

MAX_GLOBS = 64
Watching = Literal["inotify", "scanning", "gone", "off"]
Glob = Annotated[str, Meta(min_length=1, max_length=1000)]


class FileProblem(Struct, kw_only=True):
    """A file or folder, and what is wrong with it."""

    path: str
    """relative to the root"""
    problem: str
    """a sentence"""


class IndexedFile(Struct, kw_only=True):
    """An indexed file of a workspace."""

    path: str
    """relative to the root"""
    chunks: int
    """how many chunks it has"""
    size: int
    """its size in bytes"""
    changed_at: float
    """when it was last changed"""
    indexed_at: float
    """when it was indexed"""
    problem: str = ""
    """why it is not, or not completely, indexed"""


class Workspace(Struct, kw_only=True):
    """A folder of Markdown files.

    `watching` is `inotify` (changes are seen at once), `scanning` (the files are checked every few seconds), `gone`
    (the folder does not exist; its index stays) or `off` (the daemon is just starting or stopping). The fields from
    `pending_embeddings` on are filled only if the call names the workspace.
    """

    namespace: str
    """the namespace of its chunks"""
    root: str
    """the absolute path of the folder, symlinks resolved"""
    globs: list[str]
    """patterns of its files, relative to `root`"""
    created_at: float
    """when it was added"""
    files: int = 0
    """indexed files"""
    chunks: int = 0
    """chunks of these files"""
    watching: Watching = "off"
    """how the daemon detects changes"""
    reason: str = ""
    """why `watching` is not as usual; empty: it is"""
    since: float | None = None
    """since when `watching` has this value"""
    watches: int = 0
    """inotify watches in use, one per folder"""
    indexing: int | None = None
    """files that the current pass has still to read; null: there is no pass"""
    indexed_at: float | None = None
    """when a file was last read"""
    scanned_at: float | None = None
    """when all files were last checked since the daemon started"""
    dreams_write: bool = False
    """dreams may write its MEMORY.md, because somebody permitted it"""
    pending_embeddings: int = 0
    """chunks that wait for a vector; searches by words find them already"""
    problems: list[FileProblem] = []
    """files and folders that are not, or not completely, indexed, and why"""
    left_out: list[FileProblem] = []
    """the first 200 files and folders that are excluded, and why: patterns, ignored by git, hidden"""
    differing: list[FileProblem] = []
    """the first 200 files that were added, changed or removed and are not indexed again yet"""
    listed: list[IndexedFile] = []
    """as many indexed files as `files` asked for, by path"""


class WorkspaceList(Listed[Workspace], kw_only=True):
    """All workspaces, by namespace, or the one that was asked for."""

    workspaces: list[Workspace]
    """by namespace"""


class IndexedWorkspace(Struct, kw_only=True):
    """The outcome of updating the index of one workspace."""

    namespace: str
    """the workspace's namespace"""
    scanned: int = 0
    """files that were checked"""
    read: int = 0
    """files that were read because their size or time had changed"""
    indexed: int = 0
    """files that were new or changed"""
    unchanged: int = 0
    """files that were the same"""
    removed: int = 0
    """files that do not exist any more"""
    chunks_new: int = 0
    """chunks that are new or changed"""
    chunks_kept: int = 0
    """chunks of changed files that stayed the same"""
    seconds: float = 0.0
    """how long it took"""
    problem: str = ""
    """why the index could not be updated; empty: it was"""


class Indexed(Iterated[IndexedWorkspace], kw_only=True):
    """The outcome of updating the index, workspace by workspace."""

    workspaces: list[IndexedWorkspace]
    """one entry per workspace"""


@rpc("owner", grows=True, page=False)
class AddWorkspace(Call[Workspace], kw_only=True, frozen=True):
    """Make a folder a workspace: it is watched from now on, and indexed in the background.

    If the folder is a workspace already, its `globs` are changed.
    """

    path: str
    """absolute path of the folder; symlinks are resolved"""
    namespace: str | None = None
    """namespace of its chunks; left out: the folder's name"""
    globs: Annotated[list[Glob], Meta(max_length=MAX_GLOBS)] = []
    """patterns of its files, relative to the folder; left out: `**/*.md` in an Obsidian vault or a folder of Markdown
    files, `MEMORY.md` and `memory/**/*.md` where one of these exists"""


@rpc("owner", lane="bulk", page=False)
class RemoveWorkspace(Call[Done], kw_only=True, frozen=True):
    """Remove a workspace and its index. Its files stay as they are."""

    workspace: str
    """its namespace, or an absolute path inside it"""


@rpc("owner", reads=True, page=True)
class Workspaces(Call[WorkspaceList], kw_only=True, frozen=True):
    """List the workspaces, or report on one: what is indexed, what is not and why, how index and files differ."""

    workspace: str | None = None
    """its namespace, or an absolute path inside it; left out: all, in short"""
    files: Annotated[int, Meta(ge=0, le=1000)] = 0
    """how many of its files to list"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many of them to skip"""


@rpc("owner", grows=True, lane="control", page=False)
class IndexWorkspace(Call[Indexed], kw_only=True, frozen=True):
    """Update the index of one workspace, or of all, from the files. Sends progress.

    Files whose size and time have not changed are not read, unless `force` is given. The path of a file updates the
    index of this file alone.
    """

    workspace: str | None = None
    """its namespace, or an absolute path inside it, such as that of one file; left out: all"""
    wait: bool = False
    """return when each chunk has its vector"""
    force: bool = False
    """read all files, even if their size and time have not changed"""


# Notes ----------------------------------------------------------------------------------------------------------------


class Remembered(Struct, kw_only=True):
    """Where a note was written."""

    path: str
    """absolute path of the file"""
    start_line: int
    """the note's first line in the file"""
    end_line: int
    """its last line in the file"""
    namespace: str
    """namespace of the file's memories"""
    id: str | None
    """id of the memory that has it; null: it was removed from the file meanwhile"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class Flushed(Struct, kw_only=True):
    """What `flush` wrote about a conversation."""

    text: str
    """the list items that were written; empty: there was nothing to note, or the note has it already"""
    by: str
    """who selected it: `rules` or a model"""
    note: Remembered | None
    """where it was written; null: nothing was"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class RemovedLines(Struct, kw_only=True):
    """Lines that were removed from a file."""

    id: str
    """id of the memory that had them"""
    path: str
    """the file"""
    start_line: int
    """number of the first removed line"""
    end_line: int
    """number of the last; a blank line that would be left over is removed too"""
    text: str
    """the removed text, line ends included"""


class Forgotten(Struct, kw_only=True):
    """Outcome of `forget`: the lines and memories that were removed, or with `dry_run` would be."""

    removed: list[RemovedLines]
    """lines that were removed from files"""
    deleted: list[str] = []
    """ids of memories outside files, which were deleted"""
    operation: str | None = None
    """id of the deletion, for `undo`; null: nothing was deleted"""
    dry_run: bool = False
    """nothing was changed"""


@rpc("within", grows=True, page=False)
class Remember(Scoped[Remembered], kw_only=True, frozen=True):
    """Write a note into a file of a workspace; searches find it when the call returns.

    The note is written at the end of the file, in its style, and atomically: at any moment the file is the old or the
    new one. Changes that another program saved meanwhile are kept; of two saves in the same millisecond one wins.
    """

    text: str
    """the note, as Markdown; several lines stay together"""
    workspace: str
    """its namespace or an absolute path inside it"""
    file: str = "today"
    """a path in the workspace (`MEMORY.md`, `memory/cache.md`, or `cache` for short), or `today`, also in a sub-folder
    (`alpha/today`)"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("within", grows=True, page=False)
class Flush(Scoped[Flushed], kw_only=True, frozen=True):
    """Write the essence of a conversation into a file of a workspace, by default today's note.

    A language model selects it, if one is configured; otherwise it is the first request and the last answer with
    content. The turns themselves are not stored; `observe` does that. Nothing is written that the file has already.
    """

    turns: TurnList
    """the conversation, oldest first"""
    workspace: str
    """its namespace or an absolute path inside it"""
    file: str = "today"
    """the file that it is written to, as for `remember`"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("within", page=False)
class Forget(Scoped[Forgotten], kw_only=True, frozen=True):
    """Forget memories: the lines of a file's memory are removed from the file, any other memory is deleted.

    A line belongs to the first chunk of its file that has it, so lines that a chunk repeats from the one before stay,
    and so does a heading with other text below it. To remove a part of one memory, give one id with `text` or with
    `start_line`. Everything is checked before the first file is changed.
    """

    ids: list[str]
    """ids or unique prefixes"""
    text: str | None = None
    """remove only the list item or line with this text"""
    start_line: LineNumber | None = None
    """remove only lines from this one on, counted in the file"""
    end_line: LineNumber | None = None
    """the last line to remove; left out: `start_line` alone"""
    dry_run: bool = False
    """only report what would be removed"""
