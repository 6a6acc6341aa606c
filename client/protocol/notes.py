"""Writing into the files of workspaces, and what their index and they disagree on."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Line, Redacted, Scoped

Standing = Literal["missing", "extra", "changed"]


class Remembered(Struct, kw_only=True):
    """Where a note was written. `id` is the memory that holds it, null when it is gone from the file again already."""

    path: str
    start_line: int
    end_line: int
    namespace: str
    id: str | None
    redacted: Redacted = {}


class RemovedLines(Struct, kw_only=True):
    """Lines that were taken out of a file: `text` is what stood there, line ends included."""

    id: str
    path: str
    start_line: int
    end_line: int
    text: str


class Forgotten(Struct, kw_only=True):
    """What was forgotten, or with `dry_run` would be: lines of files, and memories that `undo` of `operation` brings
    back."""

    removed: list[RemovedLines]
    deleted: list[str] = []
    operation: int | None = None
    dry_run: bool = False


class ChunkDifference(Struct, kw_only=True):
    """A part of a file that only the file (`in_file`) or only the index has; `preview` is the beginning of its text."""

    in_file: bool
    start_line: int
    end_line: int
    preview: str


class FileDifference(Struct, kw_only=True):
    """A file that is `missing` in the index, `extra` there (there is no such file), or `changed` since it was read."""

    workspace: str
    path: str
    standing: Standing
    chunks: list[ChunkDifference] = []


class Differences(Struct, kw_only=True):
    """Where files and index differ; none: they are equal. `total` counts the files, of which the first are listed."""

    files: list[FileDifference]
    total: int
    compared: int

    def __iter__(self) -> Iterator[FileDifference]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


class Remember(Scoped[Remembered], kw_only=True, frozen=True):
    """Write a note into a file of a workspace; it can be found when this returns.

    `workspace` is its namespace or an absolute path inside it. `file` is a path in it (`MEMORY.md`, `memory/cache.md`,
    or short `cache`), or `today`, also in a sub-folder (`alpha/today`). The note goes to the end, in the style of the
    file, in one step: the file is the old or the new one at any moment, and nobody else's save is lost.
    """

    text: str
    workspace: str
    file: str = "today"
    allow_secrets: bool = False


class Forget(Scoped[Forgotten], kw_only=True, frozen=True):
    """Forget memories: of a file its lines are taken out, any other memory is deleted.

    A line belongs to the first chunk of its file that holds it, so what a chunk repeats of the one before stays, as
    does a heading that more stands below. `text` takes out only the list item or line that holds it, `start_line` to
    `end_line` only these lines; both need one id. All is checked before the first file is changed.
    """

    ids: list[str]
    text: str | None = None
    start_line: Line | None = None
    end_line: Line | None = None
    dry_run: bool = False


class DiffWorkspaces(Call[Differences], kw_only=True, frozen=True):
    """Compare the index with the files of a workspace, or of all, and change neither. Sends progress."""

    workspace: str | None = None
