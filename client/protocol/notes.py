"""Writing into the files of workspaces, and what their index and they disagree on."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Line, Listed, Redacted, Scoped, rpc
from memoryd.client.protocol.tiers import TurnList

Standing = Literal["missing", "extra", "changed"]


class Remembered(Struct, kw_only=True):
    """Where a note was written. `id` is the memory that holds it, null when it no longer exists from the file again
    already.
    """

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
    """credentials that were taken out before anything was stored, by kind"""


class Flushed(Struct, kw_only=True):
    """What was worth keeping of a conversation."""

    text: str
    """what was written, a list item for each thing; empty: nothing was, or the note says it already"""
    by: str
    """who chose it: `rules` or a model"""
    note: Remembered | None
    """where it was written"""
    redacted: Redacted = {}
    """credentials that were taken out before anything was stored, by kind"""


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
    operation: int | None = None
    """the deletion that `undo` takes back; null: nothing was deleted"""
    dry_run: bool = False
    """nothing was changed"""


class ChunkDifference(Struct, kw_only=True):
    """A part of a file that only the file (`in_file`) or only the index has; `preview` is the beginning of its text."""

    in_file: bool
    """only the file has it, else only the index"""
    start_line: int
    """its first line"""
    end_line: int
    """its last line"""
    preview: str
    """the beginning of its text"""


class FileDifference(Struct, kw_only=True):
    """A file that is `missing` in the index, `extra` there (there is no such file), or `changed` since it was read."""

    workspace: str
    """namespace of the workspace"""
    path: str
    """the file, absolute"""
    standing: Standing
    """its state"""
    chunks: list[ChunkDifference] = []
    """what differs, by line; at most 100; none: equal chunks stand another number of times"""


class Differences(Listed[FileDifference], kw_only=True):
    """Where files and index differ; none: they are equal. `total` counts the files, of which the first are listed."""

    files: list[FileDifference]
    """by path; at most 1000"""
    total: int
    """how many files differ"""
    compared: int
    """how many were compared"""


@rpc("within", grows=True, page=False)
class Remember(Scoped[Remembered], kw_only=True, frozen=True):
    """Write a note into a file of a workspace; it can be found when this returns.

    `workspace` is its namespace or an absolute path inside it. `file` is a path in it (`MEMORY.md`, `memory/cache.md`,
    or short `cache`), or `today`, also in a sub-folder (`alpha/today`). The note is written at the end, in the style of
    the file, in one step: the file is the old or the new one at any moment, and nobody else's save is lost.
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

    A language model chooses it where one is configured, else its main sentences are taken. The turns themselves are
    not kept; `observe` does that. What the file says already is not written again.
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
    start_line: Line | None = None
    """take out only lines from this one on, counted in the file"""
    end_line: Line | None = None
    """to this one; left out: `start_line` alone"""
    dry_run: bool = False
    """only report what would be removed"""


@rpc("owner", reads=True, lane="control", page=False)
class DiffWorkspaces(Call[Differences], kw_only=True, frozen=True):
    """Compare the index with the files of a workspace, or of all, and change neither. Sends progress."""

    workspace: str | None = None
    """its namespace or an absolute path inside it; left out: all"""
