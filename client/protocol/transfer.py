"""Taking memories out of a daemon and putting them back exactly as they were, into the same one or another."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Call, Filtered, Limit, Redacted
from memoryd.client.protocol.memories import Memory, Vote

MAX_RECORDS = 10_000  # of one call


class Link(Struct, kw_only=True):
    """A link between two memories, for example `contradicts` or `shared_from`."""

    origin: str
    target: str
    kind: str
    created_at: float


class Record(Memory, kw_only=True):
    """A memory with all that is stored of it, so that it can be put back exactly.

    `neighbours` are short turns before and after it, `turns` how many observed turns it is made of,
    `relations` its links to other memories, `votes` the feedback on it, which `usefulness` sums up.
    """

    neighbours: str = ""
    turns: int = 0
    relations: list[Link] = []
    votes: list[Vote] = []


class Exported(Struct, kw_only=True):
    """One portion of an export in the order of ids; ask again with `after_id` = `next` until that is null.

    `total` counts what the whole export holds, `left_out` what it does not: `documents` (chunks of files, which are
    the truth themselves) and `L0` (turns, which are no memories yet).
    """

    records: list[Record]
    next: str | None
    total: int
    left_out: dict[str, int] = {}

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


class Imported(Struct, kw_only=True):
    """What an import did, or with `dry_run` would do. `kept` are the ids of memories that stay as they are because the
    stored ones are as new or newer; `skipped` counts chunks of files. Without a change there is no operation."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    kept: list[str] = []
    skipped: int = 0
    operation: int | None = None
    dry_run: bool = False
    redacted: Redacted = {}


class ExportMemories(Filtered[Exported], kw_only=True, frozen=True):
    """Read memories with all that is stored of them, also superseded and expired ones, portion by portion."""

    after_id: str = ""
    limit: Limit = 500


class ImportMemories(Call[Imported], kw_only=True, frozen=True):
    """Put memories back exactly as they are given, id and times included: all of them or none, in one transaction.

    What is stored already is left alone; where it differs the later `updated_at` wins, with `overwrite` what is
    imported. The tier and the accesses of a memory are no difference by themselves. With `operation` the call goes on
    with an earlier import, so that one `undo` takes both back.
    """

    records: Annotated[list[Record], Meta(max_length=MAX_RECORDS)]
    overwrite: bool = False
    dry_run: bool = False
    operation: Annotated[int, Meta(ge=1, le=MAX_INTEGER)] | None = None
    allow_secrets: bool = False
