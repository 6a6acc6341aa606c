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
    """A file or folder, and what is to be said of it; `path` is relative to the root."""

    path: str
    """relative to the root"""
    problem: str
    """a sentence"""


class IndexedFile(Struct, kw_only=True):
    """A file of a workspace as the index has it."""

    path: str
    """relative to the root"""
    chunks: int
    """how many chunks it has"""
    size: int
    """its bytes"""
    changed_at: float
    """when it was changed"""
    indexed_at: float
    """when it was read"""
    problem: str = ""
    """why nothing, or not all, of it is indexed"""


class Workspace(Struct, kw_only=True):
    """A folder of Markdown files. `root` is absolute, with symlinks resolved; `globs` are relative to it.

    `watching` is `inotify` (changes are seen at once), `scanning` (looked at every few seconds), `gone` (the folder
    is not there; what is indexed of it stays) or `off` (the daemon is just starting or stopping); `reason` says why and
    `since` since when. From `pending_embeddings` on it says nothing unless this workspace was asked for by its name.
    """

    namespace: str
    """where its chunks lie"""
    root: str
    """the folder, symlinks resolved"""
    globs: list[str]
    """patterns of its files, relative to it"""
    created_at: float
    """when it was added"""
    files: int = 0
    """files in the index"""
    chunks: int = 0
    """their chunks"""
    watching: Watching = "off"
    """how the daemon detects changes"""
    reason: str = ""
    """why it is watched as it is; empty: as usual"""
    since: float | None = None
    """since when it is watched so"""
    watches: int = 0
    """watches of inotify in use: one per folder"""
    indexing: int | None = None
    """files that a pass under way has still to read; null: none is under way"""
    indexed_at: float | None = None
    """when a file was last read"""
    scanned_at: float | None = None
    """when all files were last looked at, since the start of the daemon"""
    dreams_write: bool = False
    """dreams may write its MEMORY.md: somebody allowed it"""
    pending_embeddings: int = 0
    """chunks that wait for a vector; words find them already"""
    problems: list[FileProblem] = []
    """files and folders of which nothing, or not all, is indexed, and why"""
    left_out: list[FileProblem] = []
    """the first 200 files and folders that are not meant to be indexed, and why: patterns, ignored by git, hidden"""
    differing: list[FileProblem] = []
    """the first 200 files that were added, changed or removed since the index followed them"""
    listed: list[IndexedFile] = []
    """files of the index by path, as many as were asked for"""


class WorkspaceList(Listed[Workspace], kw_only=True):
    """All workspaces, by namespace, or the one that was asked for."""

    workspaces: list[Workspace]
    """by namespace"""


class IndexedWorkspace(Struct, kw_only=True):
    """What bringing the index of one workspace up to date did; `problem` says why it could not be."""

    namespace: str
    """of the workspace"""
    scanned: int = 0
    """files looked at"""
    read: int = 0
    """files read, because they looked changed"""
    indexed: int = 0
    """files that were new or changed"""
    unchanged: int = 0
    """files that are as they were"""
    removed: int = 0
    """files that are not there any more"""
    chunks_new: int = 0
    """chunks that are new or changed"""
    chunks_kept: int = 0
    """chunks of changed files that are as they were"""
    seconds: float = 0.0
    """how long it took"""
    problem: str = ""
    """why it could not be done; empty: it was"""


class Indexed(Iterated[IndexedWorkspace], kw_only=True):
    """What bringing the index up to date did, workspace by workspace."""

    workspaces: list[IndexedWorkspace]
    """one entry each"""


@rpc("owner", grows=True, page=False)
class AddWorkspace(Call[Workspace], kw_only=True, frozen=True):
    """Make a folder a workspace: it is watched from now on, and indexed in the background.

    `path` is absolute. `namespace` left out is the folder's name, `globs` left out `**/*.md` in an Obsidian vault and
    in a folder of Markdown files, `MEMORY.md` and `memory/**/*.md` where there is one of these. For a folder that is a
    workspace already, `globs` are changed in place.
    """

    path: str
    """an absolute path of a folder; symlinks are resolved"""
    namespace: str | None = None
    """where its chunks lie; left out: the folder's name"""
    globs: Annotated[list[Glob], Meta(max_length=MAX_GLOBS)] = []
    """patterns of its files, relative to it; left out: see above"""


@rpc("owner", lane="bulk", page=False)
class RemoveWorkspace(Call[Done], kw_only=True, frozen=True):
    """Forget a workspace and what is indexed of it. Its files stay as they are."""

    workspace: str
    """its namespace, or an absolute path inside it"""


@rpc("owner", reads=True, page=True)
class Workspaces(Call[WorkspaceList], kw_only=True, frozen=True):
    """List the workspaces, or report how one is: what is indexed, what is not and why, what differs from its files."""

    workspace: str | None = None
    """its namespace, or an absolute path inside it; left out: all, in short"""
    files: Annotated[int, Meta(ge=0, le=1000)] = 0
    """how many of its files to list"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many of them to skip"""


@rpc("owner", grows=True, lane="control", page=False)
class IndexWorkspace(Call[Indexed], kw_only=True, frozen=True):
    """Bring the index of a workspace, or of all, up to date with the files. Sends progress.

    Files whose size and time are as they were are not read, unless `force` is given. The path of a file indexes this
    file alone.
    """

    workspace: str | None = None
    """its namespace, or an absolute path inside it, also of one file; left out: all"""
    wait: bool = False
    """return when each chunk has its vector"""
    force: bool = False
    """read all files, also those whose size and time are as they were"""


# Notes ----------------------------------------------------------------------------------------------------------------


class Remembered(Struct, kw_only=True):
    """Where a note was written. `id` is the memory that holds it; null: it left the file again meanwhile."""

    path: str
    """the file, absolute"""
    start_line: int
    """the note's first line there"""
    end_line: int
    """its last line"""
    namespace: str
    """of the file's memories"""
    id: str | None
    """the memory that holds it"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class Flushed(Struct, kw_only=True):
    """What was worth keeping of a conversation."""

    text: str
    """what was written, a list item for each thing; empty: nothing was, or the note says it already"""
    by: str
    """who chose it: `rules` or a model"""
    note: Remembered | None
    """where it was written"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class RemovedLines(Struct, kw_only=True):
    """Lines that were taken out of a file: `text` is what stood there, line ends included."""

    id: str
    """the memory that held them"""
    path: str
    """the file"""
    start_line: int
    """where they stood, the first"""
    end_line: int
    """the last; a blank line that would be left over is removed too"""
    text: str
    """what stood there"""


class Forgotten(Struct, kw_only=True):
    """What was forgotten, or with `dry_run` would be: lines of files, and memories that `undo` of `operation` brings
    back."""

    removed: list[RemovedLines]
    """what was taken out of files"""
    deleted: list[str] = []
    """ids of memories of no file, which were deleted"""
    operation: str | None = None
    """the deletion that `undo` takes back; null: nothing was deleted"""
    dry_run: bool = False
    """nothing was changed"""


@rpc("within", grows=True, page=False)
class Remember(Scoped[Remembered], kw_only=True, frozen=True):
    """Write a note into a file of a workspace; it can be found when this returns.

    `workspace` is its namespace or an absolute path inside it. `file` is a path in it (`MEMORY.md`, `memory/cache.md`,
    or short `cache`), or `today`, also in a sub-folder (`alpha/today`). The note is written at the end, in the style of
    the file, in one step: the file is the old or the new one at any moment. What another program saved meanwhile is
    taken up; of two saves in the same millisecond one wins.
    """

    text: str
    """the note, as Markdown; several lines stay together"""
    workspace: str
    """its namespace or an absolute path inside it"""
    file: str = "today"
    """the file that it is written to"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("within", grows=True, page=False)
class Flush(Scoped[Flushed], kw_only=True, frozen=True):
    """Write what is worth keeping of a conversation into a file of a workspace, by default today's note.

    A language model chooses it where one is configured, else it is what was asked first and the last answer that says
    something. The turns themselves are not kept; `observe` does that. What the file says already is not written again.
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
    """Forget memories: those of a file have their lines removed from it, any other memory is deleted.

    A line belongs to the first chunk of its file that holds it, so what a chunk repeats of the one before stays, as
    does a heading that has more below it. `text` removes only the list item or line that holds it, `start_line` to
    `end_line` only these lines; both need one id. All is checked before the first file is changed.
    """

    ids: list[str]
    """ids or unique prefixes"""
    text: str | None = None
    """remove only the list item or line that holds it"""
    start_line: LineNumber | None = None
    """take out only lines from this one on, counted in the file"""
    end_line: LineNumber | None = None
    """to this one; left out: `start_line` alone"""
    dry_run: bool = False
    """only report what would be removed"""
