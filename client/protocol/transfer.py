"""Export and import: take memories out of a daemon and put them back as they were, into the same one or another."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Filtered, Limit, Listed, Redacted, Scoped, rpc
from memoryd.client.protocol.memories import Memory, Vote

MAX_RECORDS = 10_000  # of one call
MAX_GONE = 1_000  # of one call


class Link(Struct, kw_only=True):
    """A link between two memories, for example `contradicts` or `shared_from`."""

    origin: str
    """the memory that it starts from"""
    target: str
    """the memory that it leads to"""
    kind: str
    """what it says"""
    created_at: float
    """when it was made"""


class Record(Memory, kw_only=True):
    """A memory with all that is stored of it, so that it can be put back exactly.

    `neighbours` are short turns before and after it, `turns` how many observed turns it is made of,
    `relations` its links to other memories, `votes` the feedback on it, which `usefulness` sums up.
    """

    neighbours: str = ""
    """texts before and after it, searched lightly"""
    turns: int = 0
    """how many observed turns it is made of; 0: it was added"""
    relations: list[Link] = []
    """links to and from other memories"""
    votes: list[Vote] = []
    """the feedback, one vote of each caller; a bound caller is shown its own"""


class Exported(Listed[Record], kw_only=True):
    """One batch of an export in the order of ids; ask again with `after_id` = `next` until that is null.

    A turn of L0 is in it as the memory that it will be. `total` counts what the whole export holds, `left_out` what it
    does not: `documents` (chunks of files, which are the truth themselves) and, with the reach `visible` from a
    namespace, what is `inside` that.
    """

    records: list[Record]
    """by rising id"""
    next: str | None
    """to be given as `after_id`; null: this was the last batch"""
    total: int
    """memories and turns of the whole export"""
    left_out: dict[str, int] = {}
    """how many `documents` are within reach and not exported, and how many memories and turns are `inside`"""
    turns: int = 0
    """how many of `total` are turns of L0"""


class Imported(Struct, kw_only=True):
    """What an import did, or with `dry_run` would do. `kept` are the ids of memories that stay as they are because the
    stored ones are as new or newer; `skipped` counts chunks of files. Without a change there is no operation.
    Votes of both sides are kept in any case."""

    created: int = 0
    """were not there"""
    replaced: int = 0
    """were there in another state"""
    unchanged: int = 0
    """were there as they are"""
    kept: list[str] = []
    """ids of those that were left as they are stored"""
    skipped: int = 0
    """chunks of files: they come from the files"""
    erased: int = 0
    """were erased here, and are left out without `overwrite`"""
    changed: list[str] = []
    """ids of those that were replaced; their history has what they were"""
    deleted: list[str] = []
    """ids of those that were deleted here later than they were changed there, and are left out without `overwrite`"""
    removed: list[str] = []
    """ids of those that `gone` deleted here"""
    operation: str | None = None
    """what `undo` takes back; null: nothing was changed"""
    dry_run: bool = False
    """nothing was changed"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""

    def add(self, part: "Imported") -> None:
        """Add what another part of the same import did, credentials excepted."""
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
    """Read memories with all that is stored of them, also superseded and expired ones, batch by batch."""

    ids: list[str] = []
    """only memories with one of these ids or unique prefixes"""
    after_id: str = ""
    """only memories with larger ids; empty at first, then `next` of the reply"""
    limit: Limit = 500
    """memories in one reply at most; fewer where they are large"""


@rpc("owner", grows=True, lane="bulk", page=False)
class ImportMemories(Call[Imported], kw_only=True, frozen=True):
    """Put memories back exactly as they are given, id and times included, as one operation.

    All are checked before the first is stored; they are committed in parts as with `add_many`, with the same errors.
    What is stored already is left alone; where it differs the later change wins (`updated_at`, or an undo or a
    confirmation here after that), with `overwrite` what is imported. What was erased here, or deleted here later than
    that, is left out without `overwrite`, as long as the log of operations has it. Without it votes of both sides and
    the larger count of accesses stay. The tier and the accesses of a memory are no difference by themselves. Without
    `mine` what is not stored here in the same words counts as imported, whoever the record says it is from, and as
    confirmed by nobody. With `operation` the call continues with an earlier import, so that one `undo` takes both back.
    """

    records: Annotated[list[Record], Meta(max_length=MAX_RECORDS)]
    """the memories, at most 10,000 and 16 MiB"""
    overwrite: bool = False
    """what is imported wins, also over what was changed later, deleted or erased"""
    dry_run: bool = False
    """only report what would be done"""
    operation: str | None = None
    """the whole id of an import to go on with; left out: a new one"""
    allow_secrets: bool = False
    """store likely credentials as they are"""
    mine: bool = False
    """the records are the person's own export: what it says of `origin` and `confirmed_at` is believed"""
    gone: Annotated[list[Gone], Meta(max_length=MAX_GONE)] = []
    """memories that were deleted elsewhere: they are deleted here before the records are stored, unless they were
    changed here later than that; with `overwrite` in any case"""
