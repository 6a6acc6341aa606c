"""Erasing: delete memories for good, so that no undo brings them back."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, rpc


class Mentioned(Struct, kw_only=True):
    """A place where a memory or turn mentions the text of `matching`."""

    id: str
    """its full id"""
    place: str
    """the part that has the text: `text`, `summary`, `key`, `session` (its name), `speaker`, `files`, `metadata`,
    `feedback` (a note), or `neighbours` (the turns before and after it)"""
    text: str
    """the words around it"""
    is_former: bool = False
    """only a former version mentions it"""
    is_deleted: bool = False
    """the memory was deleted before, and is in the history alone"""


class Erased(Struct, kw_only=True):
    """Outcome of `erase`: what was erased, or would be in a dry run, and where it still is."""

    count: int
    """how many memories and turns, not counting those derived from them"""
    ids: list[str]
    """full ids of the first 1,000 memories and turns"""
    derived: list[str]
    """full ids of the first 1,000 facts, summaries and shared copies that were derived from them and are erased too"""
    already: list[str] = []
    """full ids of the first 1,000 given ids that were erased before: copies of the database may still have them"""
    mentions: list[Mentioned] = []
    """where the first 100 memories and turns mention the text of `matching`"""
    around: list[Mentioned] = []
    """the first 1,000 memories and turns that have the text of `matching` only in their neighbours: they stay, and the
    neighbours' text in them is erased"""
    skipped: int = 0
    """how many skipped turns are erased too"""
    recent: list[str] = []
    """sessions that had an erased turn within the last hour and whose observing is not paused: if they go on, they may
    say it again"""
    waiting: int = 0
    """how many conversations lose their place in the queue for summaries and facts"""
    session: str | None = None
    """the whole name of the given session"""
    operation: str | None = None
    """id of the first operation, which says when and how many, and cannot be undone; null in a dry run"""
    copies: list[str] = []
    """copies of the database in the data directory that still have something erased; with `copies` those that could
    not be rewritten"""
    looked_at: int = 0
    """how many copies of the database are in the data directory"""
    rewritten: list[str] = []
    """copies of the database that were rewritten"""
    notes: list[str] = []
    """files of workspaces that mention the text of `matching`; nothing is erased from them"""
    dry_run: bool = False
    """nothing was erased"""


@rpc("owner", lane="bulk", page=True)
class Erase(Filtered[Erased], kw_only=True, frozen=True):
    """Erase memories and turns for good: no undo brings them back, and only copies of the database still have them.

    With `copies` those in the data directory are rewritten; without it the field `copies` of the reply names those that
    still have something erased.

    Also erased are their former versions, facts and summaries derived from them, shared copies, vectors, words of the
    full-text index, their texts where other memories have them as neighbours (with `matching` also in memories that
    mention it nowhere else), and traces. Memories that were deleted before and are still in the history are erased if
    their id, their session, `matching`, or a namespace with `reach` is given, and no filter by type, source, tier, path
    or `where`. Parts of files are not erased: remove them in the file. The daemon does not know copies elsewhere and
    texts in an agent's own files. Names of namespaces, projects, workspaces, tokens and pauses stay.

    A call without a filter is refused, unless `reach` is `exact` or `subtree` of a namespace.
    """

    ids: list[str] = []
    """only memories and turns with one of these ids or unique prefixes"""
    session: str | None = None
    """only turns of this session, including skipped and waiting ones: its name, or at least its first 4 characters if
    no other session begins with them"""
    matching: Annotated[str, Meta(min_length=1)] | None = None
    """only memories whose content, summary, key, metadata or feedback mentions this text, now or in a former version;
    upper and lower case are equal, and so are white space, hyphens and underscores between words"""
    unsent: list[str] = []
    """sessions whose turns the caller erases from the hooks' spool itself: `session` may name one of which nothing is
    stored, and a later backfill takes nothing from them"""
    copies: bool = False
    """rewrite the copies of the database in the data directory"""
    dry_run: bool = False
    """only return what would be erased"""
