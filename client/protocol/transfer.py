"""Export and import: read memories out of a daemon, and restore them exactly in the same daemon or another."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Filtered, Limit, Listed, Redacted, Scoped, rpc
from memoryd.client.protocol.memories import Memory, Vote

MAX_RECORDS = 10_000  # per call
MAX_GONE = 1_000  # per call


class Link(Struct, kw_only=True):
    """A link between two memories."""

    origin: str
    """id of the memory that has the link"""
    target: str
    """id of the memory that it points to"""
    kind: str
    """its kind, such as `contradicts` or `shared_from`"""
    created_at: float
    """when it was made"""


class Record(Memory, kw_only=True):
    """A memory with everything that is stored of it, so that it can be restored exactly."""

    neighbours: str = ""
    """short turns before and after it, whose words count a little in searches"""
    turns: int = 0
    """how many observed turns it was made of; 0: it was added"""
    relations: list[Link] = []
    """links to and from other memories"""
    votes: list[Vote] = []
    """the feedback, one vote per caller, of which `usefulness` is the sum; a caller with a token gets its own vote"""


class Exported(Listed[Record], kw_only=True):
    """One batch of an export in the order of ids; call again with `after_id` = `next` until that is null.

    A turn of L0 is exported as the memory that it will become.
    """

    records: list[Record]
    """the memories, by ascending id"""
    next: str | None
    """the next call's `after_id`; null: this was the last batch"""
    total: int
    """memories and turns of the whole export"""
    left_out: dict[str, int] = {}
    """how much is not exported: `documents` (chunks of files, which are kept in the files) and, with the reach
    `visible`, memories and turns `inside` the namespace"""
    turns: int = 0
    """how many of `total` are turns of L0"""


class Imported(Struct, kw_only=True):
    """Outcome of an import: what it did, or with `dry_run` would do. Votes of both sides are kept in any case."""

    created: int = 0
    """memories that were not stored before"""
    replaced: int = 0
    """memories that were stored in another state, and were replaced"""
    unchanged: int = 0
    """memories that were stored in the same state"""
    kept: list[str] = []
    """ids of memories that stay as they are, because the stored ones are as new or newer"""
    skipped: int = 0
    """chunks of files, which are read from the files instead"""
    erased: int = 0
    """memories that were erased here, and are left out without `overwrite`"""
    changed: list[str] = []
    """ids of the replaced memories; their history has the former states"""
    deleted: list[str] = []
    """ids of memories that were deleted here after their last change there, and are left out without `overwrite`"""
    removed: list[str] = []
    """ids of memories that `gone` deleted here"""
    operation: str | None = None
    """id of the operation, for `undo`; null: nothing was changed"""
    dry_run: bool = False
    """nothing was changed"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""

    def add(self, part: "Imported") -> None:
        """Add the counts and ids of another part of the same import, except `redacted`."""
        self.created += part.created
        self.replaced += part.replaced
        self.unchanged += part.unchanged
        self.kept += part.kept
        self.skipped += part.skipped
        self.erased += part.erased
        self.changed += part.changed
        self.deleted += part.deleted
        self.removed += part.removed
        self.operation = part.operation or self.operation


class Version(Struct, kw_only=True, omit_defaults=True):
    """What a saved memory is like now, in a few bytes; or that it was here and is gone."""

    id: str
    """32 hex digits"""
    namespace: str = ""
    """where it is, or was"""
    key: str | None = None
    """its key"""
    at: float
    """when somebody last changed it, or when it went; unlike `updated_at` it counts undos and confirmations"""
    digest: str = ""
    """of its fields but `updated_at`, uses, votes, neighbours and the expiry of a `ttl_s`; empty: it is gone"""
    gone: Literal["", "deleted", "dropped", "erased"] = ""
    """`deleted`: by a caller; `dropped`: by a job, such as expiry, or by the undo of an import; `erased`: for good,
    beside a digest: and imported again since"""


class Versions(Listed[Version], kw_only=True):
    """One batch of versions in the order of ids; ask again with `after_id` = `next` until that is null."""

    versions: list[Version]
    """by rising id"""
    next: str | None
    """to be given as `after_id`; null: this was the last batch"""


class Gone(Struct, kw_only=True):
    """A memory that was deleted elsewhere."""

    id: str
    """32 hex digits"""
    at: float
    """when"""


@rpc("owner", reads=True, lane="bulk", page=False)
class ListVersions(Scoped[Versions], kw_only=True, frozen=True):
    """Read digests of the saved memories, and what is gone, as far as the operation log has it.

    Turns, what was drawn from conversations, parts of files and saves that wait for a shared root are not saved
    memories. What was erased is listed wherever it was.
    """

    after_id: str = ""
    """only those with larger ids; empty at first, then `next` of the reply"""


@rpc("within", reads=True, lane="bulk", page=False)
class ExportMemories(Filtered[Exported], kw_only=True, frozen=True):
    """Read memories with everything that is stored of them, batch by batch, superseded and expired ones included."""

    ids: list[str] = []
    """only memories with one of these ids or unique prefixes"""
    after_id: str = ""
    """only memories with larger ids; empty at first, then `next` of the reply"""
    limit: Limit = 500
    """the most memories in one reply; fewer if they are large"""


@rpc("owner", grows=True, lane="bulk", page=False)
class ImportMemories(Call[Imported], kw_only=True, frozen=True):
    """Restore memories exactly as they are given, including ids and times, as one operation.

    All are checked before the first is stored; they are committed in parts as with `add_many`, with the same errors. A
    memory that is stored in the same state stays as it is; tier and accesses alone make no difference. If the states
    differ, the later change wins (`updated_at`, or an undo or a confirmation here after that), or with `overwrite` the
    imported one. Without `overwrite` memories are left out that were erased here, or deleted here after that time, as
    long as the operation log has that; votes of both sides and the larger count of accesses stay. Without `mine` a text
    that is not stored here already gets the origin `import` and no confirmation, whatever the record says. With
    `operation` the call continues an earlier import, so that one `undo` takes both back.
    """

    records: Annotated[list[Record], Meta(max_length=MAX_RECORDS)]
    """the memories, at most 10,000 and 16 MiB"""
    overwrite: bool = False
    """imported memories win, even if the stored ones were changed later, deleted or erased"""
    dry_run: bool = False
    """only report what would be done"""
    operation: str | None = None
    """the whole id of an import to continue; left out: a new one"""
    allow_secrets: bool = False
    """store likely credentials as they are"""
    mine: bool = False
    """the records are the person's own export, so their `origin` and `confirmed_at` are kept"""
    gone: Annotated[list[Gone], Meta(max_length=MAX_GONE)] = []
    """memories that were deleted elsewhere: they are deleted here before the records are stored, unless they were
    changed here after that time; with `overwrite` in any case"""
