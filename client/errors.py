"""One exception class per error code of the protocol.

A failed call carries a code and one clear sentence, never a traceback. `ERRORS` maps each code to its class, so the
client raises exactly what the daemon meant: `except NotFound` rather than comparing strings.
"""

from typing import Any, ClassVar


class MemorydError(Exception):
    """Base of all errors of memoryd: `code`, a sentence for a person (`message`) and machine-readable `data`."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data or {}

    def __reduce__(self) -> tuple[type["MemorydError"], tuple[str, dict[str, Any]]]:
        return type(self), (self.message, self.data)


class Internal(MemorydError):
    """The daemon met a condition it does not know; its log holds the details."""

    code = "internal"


class Invalid(MemorydError):
    """An argument has a wrong type or value. Nothing was changed."""

    code = "invalid"


class BadFrame(MemorydError):
    """Bytes that are not a frame of the protocol, or a frame over the size limit."""

    code = "bad_frame"


class UnknownMethod(MemorydError):
    """The daemon has no such method."""

    code = "unknown_method"


class VersionMismatch(MemorydError):
    """Client and daemon speak different versions of the protocol."""

    code = "version_mismatch"


class NotFound(MemorydError):
    """No memory, operation or trace with this id is visible to the caller."""

    code = "not_found"


class AmbiguousId(MemorydError):
    """Several memories begin with this id prefix; `data["candidates"]` lists them."""

    code = "ambiguous_id"


class Conflict(MemorydError):
    """The request contradicts the present state, for example undoing what was changed again since."""

    code = "conflict"


class Busy(MemorydError):
    """The daemon's queues are full; try again after `data["retry_after_ms"]`."""

    code = "busy"


class Unavailable(MemorydError):
    """No daemon answers, or it stopped before it replied."""

    code = "unavailable"


class Untrusted(MemorydError):
    """The socket, its folder, what listens there or a folder of data belongs to another user. Nothing was sent."""

    code = "untrusted"


class TimedOut(MemorydError):
    """No reply within the client's `timeout_s`."""

    code = "timeout"


class ModelUnavailable(MemorydError):
    """An embedding model is missing or cannot be loaded."""

    code = "model_unavailable"


class StorageFailed(MemorydError):
    """The database cannot be written or read: disk full, not writable, damaged."""

    code = "storage_failed"


class StorageFull(MemorydError):
    """The database has reached the size that is allowed to it. Reading and deleting go on; nothing is added or changed,
    since a change grows the history."""

    code = "storage_full"


class Forbidden(MemorydError):
    """The token of this connection does not allow it. Nothing was changed."""

    code = "forbidden"


class Unauthenticated(MemorydError):
    """The connection has presented no token that is in force, and the daemon wants one."""

    code = "unauthenticated"


ERRORS: dict[str, type[MemorydError]] = {
    error.code: error
    for error in (
        Internal,
        Invalid,
        BadFrame,
        UnknownMethod,
        VersionMismatch,
        NotFound,
        AmbiguousId,
        Conflict,
        Busy,
        Unavailable,
        Untrusted,
        TimedOut,
        ModelUnavailable,
        StorageFailed,
        StorageFull,
        Forbidden,
        Unauthenticated,
    )
}


def error_for(code: str, message: str, data: dict[str, Any] | None = None) -> MemorydError:
    """Return the exception for a code; a code of a newer daemon becomes `Internal`."""
    return ERRORS.get(code, Internal)(message, data)
