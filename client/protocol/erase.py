"""Erasing: delete for good what no undo is to bring back."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, rpc


class Mentioned(Struct, kw_only=True):
    """Where a memory or turn mentions the text of `matching`."""

    id: str
    """its full id"""
    place: str
    """what holds the text: `text`, `summary`, `key`, `session` (its name), `speaker`, `files`, `metadata`, a note of
    `feedback`, or `neighbours` (what was said around it)"""
    text: str
    """the words around it"""
    is_former: bool = False
    """only a former version does"""
    is_deleted: bool = False
    """it was deleted before, and is in the history alone"""


class Erased(Struct, kw_only=True):
    """Outcome of `erase`: what was erased, or would be in a dry run, and what still holds it."""

    count: int
    """how many memories and turns, without those made of them"""
    ids: list[str]
    """full ids of the first 1,000 of them"""
    derived: list[str]
    """full ids of the first 1,000 facts, summaries and shared copies that were made of them and are erased too"""
    already: list[str] = []
    """full ids of the first 1,000 of those asked for that were erased before: copies may still hold them"""
    mentions: list[Mentioned] = []
    """where the first 100 of them mention the text of `matching`"""
    around: list[Mentioned] = []
    """the first 1,000 memories and turns that only hold the text of `matching` in what was said around them: they stay,
    and what was said around them is erased"""
    skipped: int = 0
    """how many turns that were skipped are erased with them"""
    recent: list[str] = []
    """sessions in which something of it was said within the last hour and observing is not paused: one that goes on
    may say it again"""
    waiting: int = 0
    """how many conversations that wait for their summary or facts are forgotten with them"""
    session: str | None = None
    """the whole name of the session that was asked for"""
    operation: str | None = None
    """the first operation; it says when and how many, and cannot be undone; null in a dry run"""
    copies: list[str] = []
    """copies of the database in the data directory that still hold some of it; with `copies` those that could not be
    rewritten"""
    looked_at: int = 0
    """how many copies of the database are in the data directory"""
    rewritten: list[str] = []
    """copies that were rewritten"""
    notes: list[str] = []
    """files of workspaces that mention the text of `matching`; nothing is erased from them"""
    dry_run: bool = False
    """nothing was erased"""


@rpc("owner", lane="bulk", page=True)
class Erase(Filtered[Erased], kw_only=True, frozen=True):
    """Erase memories and turns for good: only copies of the database still hold them, and no undo brings them back.

    With `copies` all in the data directory are rewritten; without it `copies` of the reply names those that hold it.

    With them go their former versions, facts and summaries made of them, shared copies, vectors, the words in full
    text, what other memories hold of them as neighbours (with `matching` also where nothing else mentions it), and
    traces. What was deleted before and is still in the history is erased too, if its id, its session, `matching`, or a
    namespace with `reach` is given, and no filter by type, source, tier, path or `where`. Parts of files are not:
    erase them in the file. Copies elsewhere, and texts that an agent has in its own files, are not known here. Names
    stay: those of namespaces, projects, workspaces, tokens and pauses.

    Without a filter it is refused, unless `reach` is `exact` or `subtree` of a namespace.
    """

    ids: list[str] = []
    """only memories and turns with one of these ids or unique prefixes"""
    session: str | None = None
    """only what was said in this session, skipped and waiting turns included: its name, or its first 4 characters or
    more if no other begins so"""
    matching: Annotated[str, Meta(min_length=1)] | None = None
    """only what mentions this text in its content, summary, key, metadata or feedback, now or formerly: in any case;
    white space, hyphens and underscores between words are alike"""
    unsent: list[str] = []
    """sessions of which the caller erases what hooks have not sent yet: `session` may be one of them alone, and a
    backfill takes in nothing more of them"""
    copies: bool = False
    """rewrite the copies in the data directory"""
    dry_run: bool = False
    """only return what would be erased"""
