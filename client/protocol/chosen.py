"""Calls on all memories that match a filter (count them, delete them), and on the namespaces that hold memories."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Filtered, Limit, Scoped, rpc


class Counted(Struct, kw_only=True):
    """How many memories match a filter."""

    count: int
    """how many"""


@rpc("within", reads=True, page=True)
class Count(Filtered[Counted], kw_only=True, frozen=True):
    """Count the memories that match a filter, without turns in L0; superseded and expired ones on request."""

    all_states: bool = False
    """superseded and expired ones too"""


class DeletedWhere(Struct, kw_only=True):
    """Outcome of `delete_where`: what was deleted, or would be in a dry run."""

    count: int
    """how many memories and turns"""
    ids: list[str]
    """full ids of the first 1,000 of them, oldest first"""
    operation: str | None = None
    """its id, for `undo`; null in a dry run, or where there was nothing to delete"""
    documents: int = 0
    """parts of files that match too: they stay, since they are changed in their files"""
    dry_run: bool = False
    """nothing was deleted"""


@rpc("within", lane="bulk", page=False)
class DeleteWhere(Filtered[DeletedWhere], kw_only=True, frozen=True):
    """Delete all memories that match a filter, turns in L0 too, as one operation, which one `undo` takes back.

    Left out, `reach` is `subtree` here: what is shared with the caller stays. A call without any filter is refused. All
    matches are checked before the first is deleted; if the caller may not change one of them, none is deleted. They are
    deleted in parts, so that no other write waits long: a crash ends the call between two parts.
    """

    all_states: bool = False
    """superseded and expired ones too"""
    dry_run: bool = False
    """only return what would be deleted"""


class NamespaceCount(Struct, kw_only=True):
    """A namespace and how many memories are in it."""

    name: str
    """its name; the root is the empty text"""
    memories: int
    """how many memories are in it, or with a `depth` in it and below"""


class NamespaceList(Struct, kw_only=True):
    """Namespaces in the order of their names, and how many match in all."""

    namespaces: list[NamespaceCount]
    """in the order of their names"""
    total: int
    """how many match in all"""


@rpc("within", reads=True, page=True)
class Namespaces(Scoped[NamespaceList], kw_only=True, frozen=True):
    """List the namespaces that hold memories. In `prefix` and `suffix`, `*` stands for any one part."""

    prefix: str = ""
    """only those that begin with these parts, like `acme/*/docs`"""
    suffix: str = ""
    """only those that end with these parts"""
    depth: Annotated[int, Meta(ge=1, le=16)] | None = None
    """cut names to so many parts; those that are equal then are one"""
    limit: Limit = 100
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""
