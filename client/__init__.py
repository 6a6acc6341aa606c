"""The thin client of memoryd: standard library and msgspec only.

    from memoryd.client import Client

    with Client(namespace=("acme", "api")) as memory:
        memory.add("We use Valkey, not Redis", type="decision")

`AsyncClient` is the same with await; it is loaded on first use, so that `Client` costs no asyncio.
"""

from typing import TYPE_CHECKING, Any

from memoryd.client.errors import (
    AmbiguousId,
    BadFrame,
    Busy,
    Conflict,
    Forbidden,
    Internal,
    Invalid,
    MemorydError,
    ModelUnavailable,
    NotFound,
    StorageFailed,
    TimedOut,
    Unauthenticated,
    Unavailable,
    UnknownMethod,
    VersionMismatch,
)
from memoryd.client.protocol import Hit, Hits, Memory, NewMemory
from memoryd.client.sync import Client

if TYPE_CHECKING:
    from memoryd.client.aio import AsyncClient

__all__ = [
    "AmbiguousId",
    "AsyncClient",
    "BadFrame",
    "Busy",
    "Client",
    "Conflict",
    "Forbidden",
    "Hit",
    "Hits",
    "Internal",
    "Invalid",
    "Memory",
    "MemorydError",
    "ModelUnavailable",
    "NewMemory",
    "NotFound",
    "StorageFailed",
    "TimedOut",
    "Unauthenticated",
    "Unavailable",
    "UnknownMethod",
    "VersionMismatch",
]


def __getattr__(name: str) -> Any:
    if name == "AsyncClient":
        from memoryd.client.aio import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
