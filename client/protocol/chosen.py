"""Calls on all memories that a filter leaves: count them, delete them."""

from msgspec import Struct

from memoryd.client.protocol.base import Filtered, rpc


class Counted(Struct, kw_only=True):
    """How many memories a filter leaves."""

    count: int
    """how many"""


@rpc("within", reads=True)
class Count(Filtered[Counted], kw_only=True, frozen=True):
    """Count memories by filter, turns in L0 aside. Superseded and expired ones on request."""

    all_states: bool = False
    """superseded and expired ones too"""


class DeletedWhere(Struct, kw_only=True):
    """Outcome of `delete_where`: what was deleted, or would be in a dry run."""

    count: int
    """how many memories and turns"""
    ids: list[str]
    """full ids of the first 1,000 of them, oldest first"""
    operation: int | None = None
    """its number, for `undo`; null in a dry run, or where there was nothing to delete"""
    documents: int = 0
    """parts of files that the filter leaves too: they are changed in their files, and stay"""
    dry_run: bool = False
    """nothing was deleted"""


@rpc("within", lane="bulk")
class DeleteWhere(Filtered[DeletedWhere], kw_only=True, frozen=True):
    """Delete all memories that a filter leaves, turns in L0 too, as one operation, which one `undo` takes back.

    Left out, `reach` is `subtree` here: what is shared with the caller stays. A call without any filter is refused. All
    that the filter leaves is looked at before the first is deleted; if one of them may not be changed by the caller,
    none is. They are deleted in parts, so that no other write waits long: a crash ends the call between two parts.
    """

    all_states: bool = False
    """superseded and expired ones too"""
    dry_run: bool = False
    """only return what would be deleted"""
