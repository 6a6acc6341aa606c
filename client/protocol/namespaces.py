"""Namespaces: list those that hold memories, and move turns and tokens of one to another."""

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
    """What went to another namespace beside memories."""

    turns: int
    """turns of L0"""
    tokens: list[str]
    """the names of tokens that are bound to the other namespace from now on"""


@rpc("within", reads=True, page=True)
class Namespaces(Scoped[NamespaceList], kw_only=True, frozen=True):
    """List the namespaces that hold memories. In `prefix`, `*` stands for any one part."""

    prefix: str = ""
    """only those that begin with these parts, like `acme/*/docs`"""
    limit: Limit = 100
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""


@rpc("owner", page=False)
class MoveNamespace(Call[MovedNamespace], kw_only=True, frozen=True):
    """Let what a namespace has beside its memories go to another one: turns of L0 and tokens; see `share`.

    Its pauses stay and hold under the other name as well; what was said in one, also one that is over, stays out there.
    """

    namespace: str
    """where it is; not the root"""
    to: str
    """where it goes; not the root"""
