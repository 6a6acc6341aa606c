"""Workspaces: folders of Markdown files that the daemon indexes and watches. The files are the truth."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Done

MAX_GLOBS = 64
Watching = Literal["inotify", "scanning", "gone", "off"]
Glob = Annotated[str, Meta(min_length=1, max_length=1000)]


class Workspace(Struct, kw_only=True):
    """A folder of Markdown files. `root` is absolute, with symlinks resolved; `globs` are relative to it."""

    namespace: str
    root: str
    globs: list[str]
    created_at: float
    files: int = 0
    chunks: int = 0
    watching: Watching = "off"


class WorkspaceList(Struct, kw_only=True):
    """All workspaces, by namespace."""

    workspaces: list[Workspace]

    def __iter__(self) -> Iterator[Workspace]:
        return iter(self.workspaces)

    def __len__(self) -> int:
        return len(self.workspaces)


class FileProblem(Struct, kw_only=True):
    """Why nothing, or not all, of a file or folder is indexed; `path` is relative to the root."""

    path: str
    problem: str


class WorkspaceStatus(Struct, kw_only=True):
    """How a workspace is.

    `watching` is `inotify` (changes are heard of at once), `scanning` (looked at every few seconds), `gone` (the folder
    is not there; what is indexed of it stays) or `off` (the daemon is just starting or stopping); `reason` says why and
    `since` since when.
    """

    workspace: Workspace
    pending_embeddings: int
    problems: list[FileProblem] = []
    reason: str = ""
    since: float | None = None
    watches: int = 0
    indexing: int | None = None
    indexed_at: float | None = None
    scanned_at: float | None = None


class IndexedWorkspace(Struct, kw_only=True):
    """What bringing the index of one workspace up to date did; `problem` says why it could not be."""

    namespace: str
    scanned: int = 0
    read: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks_new: int = 0
    chunks_kept: int = 0
    seconds: float = 0.0
    problem: str = ""


class Indexed(Struct, kw_only=True):
    """What bringing the index up to date did, workspace by workspace."""

    workspaces: list[IndexedWorkspace]

    def __iter__(self) -> Iterator[IndexedWorkspace]:
        return iter(self.workspaces)


class AddWorkspace(Call[Workspace], kw_only=True, frozen=True):
    """Make a folder a workspace: it is watched from now on, and indexed in the background.

    `path` is absolute. `namespace` left out is the folder's name, `globs` left out `MEMORY.md` and `memory/**/*.md`.
    """

    path: str
    namespace: str | None = None
    globs: Annotated[list[Glob], Meta(max_length=MAX_GLOBS)] = []


class RemoveWorkspace(Call[Done], kw_only=True, frozen=True):
    """Forget a workspace and what is indexed of it. Its files stay as they are."""

    workspace: str


class Workspaces(Call[WorkspaceList], kw_only=True, frozen=True):
    """List the workspaces."""


class GetWorkspace(Call[WorkspaceStatus], kw_only=True, frozen=True):
    """Tell how a workspace is: what is indexed, what is not and why, how it is watched."""

    workspace: str


class IndexWorkspace(Call[Indexed], kw_only=True, frozen=True):
    """Bring the index of a workspace, or of all, up to date with the files. Sends progress.

    Files whose size and time are as they were are not read, unless `force` is given.
    """

    workspace: str | None = None
    force: bool = False
