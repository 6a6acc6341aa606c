"""Shared roots: where they are, whether the line to them is open, which saves wait to be sent."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.access import Identity
from memoryd.client.protocol.base import Call, rpc

Auto = Literal["decisions", "all", "none"]


class Greeting(Identity, kw_only=True):
    """The first message of another machine on a line: whom the line speaks for, and what the root is for."""

    protocol: int = 1
    """version of the protocol there"""
    repositories: list[str] = []
    """patterns of the repositories that the root is for"""


class RootStatus(Struct, kw_only=True):
    """A shared root and the line to the machine or database that holds it."""

    name: str
    """name of the root, the outermost of its namespaces"""
    server: str
    """address of the other machine or database; empty: the root is on this machine"""
    state: Literal["idle", "connecting", "ready", "away", "here"]
    """state of the line; `idle`: it was not used for a while; `here`: there is none, because the root is here"""
    repositories: list[str] = []
    """patterns of the repositories that it is for"""
    problem: str = ""
    """why the state is `away`"""
    token: str = ""
    """name of the token that the line speaks for there; empty until it was ready once"""
    role: str = ""
    """role of that token"""
    auto: Auto
    """which saves are sent there automatically"""
    exclude: list[str] = []
    """namespaces whose saves stay here"""
    waiting: int = 0
    """how many saves wait to be sent"""
    unreadable: int = 0
    """how many rows of its answers could not be read, and were left out, since the daemon started"""
    place: dict[str, str] = {}
    """facts about a database while the line is ready: versions, how safe a commit is, who holds a lock"""


class WaitingSave(Struct, kw_only=True):
    """A save that is on this machine until the root's machine or database answers."""

    id: str
    """id of the memory here"""
    namespace: str
    """its namespace, here and there"""
    preview: str
    """the beginning of its text"""
    since: float
    """when it was saved"""
    refused: str = ""
    """why the root refused it; empty: it did not"""


class SharedStatus(Struct, kw_only=True):
    """The shared roots of this machine, and the saves that wait to be sent."""

    roots: list[RootStatus]
    """by name"""
    waiting: list[WaitingSave]
    """the first 100, oldest first"""


@rpc("owner", page=True)
class GetShared(Call[SharedStatus], kw_only=True, frozen=True):
    """Return the shared roots of this machine and the saves that wait to be sent to them."""

    send: bool = False
    """try to send now, including saves that were refused before"""
