"""The namespaces that hold memories."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Limit, Scoped, rpc


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


@rpc("within", reads=True, page=True)
class Namespaces(Scoped[NamespaceList], kw_only=True, frozen=True):
    """List the namespaces that hold memories. In `prefix`, `*` stands for any one part."""

    prefix: str = ""
    """only those that begin with these parts, like `acme/*/docs`"""
    limit: Limit = 100
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""
