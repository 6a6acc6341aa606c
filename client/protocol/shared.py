"""Shared roots: where they lie, whether the line to them is open, what waits to be sent."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc


class RootStatus(Struct, kw_only=True):
    """A shared root and the line to its place."""

    name: str
    """name of the root, the outermost of its namespaces"""
    server: str
    """the other machine"""
    state: Literal["idle", "connecting", "ready", "away"]
    """the line to it; `idle`: nothing was asked for a while"""
    problem: str = ""
    """why it is away"""
    token: str = ""
    """name of the token that it speaks for there, once it was ready"""
    role: str = ""
    """role of that token"""
    auto: Literal["decisions", "all", "none"]
    """which saves go there by themselves"""
    exclude: list[str] = []
    """namespaces whose saves stay here"""
    waiting: int = 0
    """how many saves wait to be sent"""
    unreadable: int = 0
    """how many rows of answers could not be read since the daemon began, and were left out"""


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
