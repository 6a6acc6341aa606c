"""Namespaces: list those that have memories, and move turns and tokens from one to another."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Call, Limit, Scoped, rpc


class NamespaceCount(Struct, kw_only=True):
    """A namespace and how many memories are in it."""

    name: str
    """its name; the root is the empty text"""
    memories: int
    """how many memories are in it"""


class NamespaceList(Struct, kw_only=True):
    """Namespaces in the order of their names, and how many match in all."""

    namespaces: list[NamespaceCount]
    """in the order of their names"""
    total: int
    """how many match in all"""
    degraded: list[str] = []
    """`shared:NAME`: that shared root did not answer"""


class MovedNamespace(Struct, kw_only=True):
    """What was moved to another namespace."""

    turns: int
    """how many turns of L0"""
    tokens: list[str]
    """names of the tokens that are bound to the other namespace now"""


@rpc("within", reads=True, page=True)
class Namespaces(Scoped[NamespaceList], kw_only=True, frozen=True):
    """List the namespaces that have memories. In `prefix`, `*` stands for any one part."""

    prefix: str = ""
    """only namespaces that begin with these parts, like `acme/*/docs`"""
    limit: Limit = 100
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""


@rpc("owner", page=False)
class MoveNamespace(Call[MovedNamespace], kw_only=True, frozen=True):
    """Move the turns of L0 and the tokens of a namespace to another one; `share` moves memories.

    Pauses of the namespace stay and hold for the other one too: a backfill there also leaves out what was said during
    a pause that has ended.
    """

    namespace: str
    """the namespace that they are in; not the root"""
    to: str
    """the namespace that they are moved to; not the root"""
