"""Workspaces: folders of Markdown files that the daemon indexes and watches. The files are the truth."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Call, Done, Iterated, Limit, Listed, rpc

MAX_GLOBS = 64
Watching = Literal["inotify", "scanning", "gone", "off"]
Glob = Annotated[str, Meta(min_length=1, max_length=1000)]


class Workspace(Struct, kw_only=True):
    """A folder of Markdown files. `root` is absolute, with symlinks resolved; `globs` are relative to it."""

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


class WorkspaceList(Listed[Workspace], kw_only=True):
    """All workspaces, by namespace."""

    workspaces: list[Workspace]
    """by namespace"""


class FileProblem(Struct, kw_only=True):
    """Why nothing, or not all, of a file or folder is indexed; `path` is relative to the root."""

    path: str
    """relative to the root"""
    problem: str
    """a sentence that says why nothing, or not all of it, is indexed"""


class WorkspaceStatus(Struct, kw_only=True):
    """How a workspace is.

    `watching` is `inotify` (changes are seen at once), `scanning` (looked at every few seconds), `gone` (the folder
    is not there; what is indexed of it stays) or `off` (the daemon is just starting or stopping); `reason` says why and
    `since` since when.
    """

    workspace: Workspace
    """the workspace"""
    pending_embeddings: int
    """chunks that wait for a vector; words find them already"""
    problems: list[FileProblem] = []
    """files and folders of which nothing, or not all, is indexed"""
    left_out: list[FileProblem] = []
    """the first 200 files and folders that are not meant to be indexed, and why: patterns, .gitignore, hidden"""
    dreams_write: bool = False
    """dreams may write its MEMORY.md: somebody allowed it"""
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
    """List the workspaces."""


@rpc("owner", reads=True, page=True)
class GetWorkspace(Call[WorkspaceStatus], kw_only=True, frozen=True):
    """Report how a workspace is: what is indexed, what is not and why, how it is watched."""

    workspace: str
    """its namespace, or an absolute path inside it"""


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


class FileList(Struct, kw_only=True):
    """Files of a workspace by path, and how many there are."""

    files: list[IndexedFile]
    """by path"""
    total: int
    """how many there are"""


@rpc("owner", reads=True, page=True)
class ListFiles(Call[FileList], kw_only=True, frozen=True):
    """List the files of a workspace that the index knows."""

    workspace: str
    """its namespace, or an absolute path inside it"""
    limit: Limit = 1000
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""


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
