"""One exception class per error code of the protocol.

A failed call carries a code and one clear sentence, never a traceback. `ERRORS` maps each code to its class, so the
client raises exactly what the daemon meant: `except NotFound` rather than comparing strings.
"""

from typing import Any, ClassVar


class MemorydError(Exception):
    """Base of all errors of memoryd: `code`, a sentence for a person (`message`) and machine-readable `data`."""

    code: ClassVar[str] = "internal"

    def __init_subclass__(cls, *, code: str = "") -> None:
        cls.code = code or cls.code

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data or {}

    def __reduce__(self) -> tuple[type["MemorydError"], tuple[str, dict[str, Any]]]:
        return type(self), (self.message, self.data)


class Internal(MemorydError, code="internal"):
    """The daemon failed unexpectedly; its log has the details."""


class Invalid(MemorydError, code="invalid"):
    """An argument has a wrong type or value. Nothing was changed."""


class BadFrame(MemorydError, code="bad_frame"):
    """The bytes sent are not a frame of the protocol, or exceed the size limit."""


class UnknownMethod(MemorydError, code="unknown_method"):
    """The daemon has no such method."""


class VersionMismatch(MemorydError, code="version_mismatch"):
    """Client and daemon speak different versions of the protocol."""


class NotFound(MemorydError, code="not_found"):
    """No memory, operation or trace with this id is visible to the caller."""


class AmbiguousId(MemorydError, code="ambiguous_id"):
    """Several memories begin with this id prefix; `data["candidates"]` lists them."""


class Conflict(MemorydError, code="conflict"):
    """The request contradicts the present state: for example, a memory was changed again after the change to undo."""


class Busy(MemorydError, code="busy"):
    """The daemon's queues are full; try again after `data["retry_after_ms"]`."""


class Unavailable(MemorydError, code="unavailable"):
    """No daemon answers and none can be started; or it stopped before it replied, and a change may have been made."""


class Untrusted(MemorydError, code="untrusted"):
    """The socket, its folder, the process that listens there or a data folder belongs to another user. Nothing was
    sent."""


class TimedOut(MemorydError, code="timeout"):
    """There was no reply within the client's `timeout_s`. The change may have been made, or may still be made."""


class ModelUnavailable(MemorydError, code="model_unavailable"):
    """An embedding model is missing or cannot be loaded."""


class StorageFailed(MemorydError, code="storage_failed"):
    """The database cannot be written or read: disk full, not writable, damaged."""


class StorageFull(MemorydError, code="storage_full"):
    """The database has reached its size limit. Memories can be read and deleted, but not added or changed, because a
    change grows the history."""


class Forbidden(MemorydError, code="forbidden"):
    """The token of this connection does not allow it. Nothing was changed."""


class Unauthenticated(MemorydError, code="unauthenticated"):
    """The daemon requires a token, and this connection has presented no valid one."""


ERRORS: dict[str, type[MemorydError]] = {error.code: error for error in MemorydError.__subclasses__()}


def error_for(code: str, message: str, data: dict[str, Any] | None = None) -> MemorydError:
    """Return the exception for a code; an unknown code, of a newer daemon, becomes `Internal`."""
    return ERRORS.get(code, Internal)(message, data)
