"""The thin client of memoryd: standard library and msgspec only.

    from memoryd.client import Client

    with Client(namespace=("acme", "api")) as memory:
        memory.add("We use Valkey, not Redis", type="decision")

`AsyncClient` is the same with await. Each name is loaded on first use: a hook of an agent, which runs at every prompt,
needs none of them, and `Client` no asyncio.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        StorageFull,
        TimedOut,
        Unauthenticated,
        Unavailable,
        UnknownMethod,
        Untrusted,
        VersionMismatch,
    )
    from memoryd.client.protocol import Hit, Hits, Memory, NewMemory
    from memoryd.client.transport.aio import AsyncClient
    from memoryd.client.transport.sync import Client

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
    "StorageFull",
    "TimedOut",
    "Unauthenticated",
    "Unavailable",
    "UnknownMethod",
    "Untrusted",
    "VersionMismatch",
]

_PROTOCOL = dict.fromkeys(("Hit", "Hits", "Memory", "NewMemory"), "protocol")
_ELSEWHERE = {"AsyncClient": "transport.aio", "Client": "transport.sync", **_PROTOCOL}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
