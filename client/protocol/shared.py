"""Shared roots: where they lie, whether the line to them is open, what waits to be sent."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.access import Identity
from memoryd.client.protocol.base import Call, rpc

Auto = Literal["decisions", "all", "none"]


class Greeting(Identity, kw_only=True):
    """What another machine says first on a line: whom it speaks for, and what the root is."""

    protocol: int = 1
    """version of the protocol there"""
    repositories: list[str] = []
    """patterns of the repositories that the root is for"""


class RootStatus(Struct, kw_only=True):
    """A shared root and the line to its place."""

    name: str
    """name of the root, the outermost of its namespaces"""
    server: str
    """the other machine; empty: the root lies here"""
    state: Literal["idle", "connecting", "ready", "away", "here"]
    """the line to it; `idle`: nothing was asked for a while; `here`: there is none, as the root lies here"""
    repositories: list[str] = []
    """patterns of the repositories that it is for"""
    problem: str = ""
    """why it is away"""
    token: str = ""
    """name of the token that it speaks for there, once it was ready"""
    role: str = ""
    """role of that token"""
    auto: Auto
    """which saves go there by themselves"""
    exclude: list[str] = []
    """namespaces whose saves stay here"""
    waiting: int = 0
    """how many saves wait to be sent"""
    unreadable: int = 0
    """how many rows of answers could not be read since the daemon began, and were left out"""
    place: dict[str, str] = {}
    """what a database says of itself while the line is ready: versions, how safe a commit is, who holds a lock"""


class WaitingSave(Struct, kw_only=True):
    """A save that is on this machine until its place answers."""

    id: str
    """id of the memory here"""
    namespace: str
    """where it is, here and there"""
    preview: str
    """the beginning of its text"""
    since: float
    """when it was saved"""
    refused: str = ""
    """why the place refused it; empty: it has not"""


class SharedStatus(Struct, kw_only=True):
    """The shared roots of this machine, and what waits."""

    roots: list[RootStatus]
    """by name"""
    waiting: list[WaitingSave]
    """the first 100, oldest first"""


@rpc("owner", page=True)
class GetShared(Call[SharedStatus], kw_only=True, frozen=True):
    """Return the shared roots of this machine and what waits to be sent to them."""

    send: bool = False
    """try the places now, and send again what one refused"""
