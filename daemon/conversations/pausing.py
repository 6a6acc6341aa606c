"""The calls that pause and resume recording."""

from concurrent.futures import Future
from contextlib import suppress

from memoryd.client.errors import Invalid, NotFound
from memoryd.client.protocol import GetObserving, Observing, Pause, PauseObserving
from memoryd.daemon.conversations.tables import session_names
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces

_MAX_BYTES = 4096
_WHOLE_CHARS = 32  # a session's name of this length is complete: agents use UUIDs


@handles(GetObserving)
def read_pauses(core: Core, call: GetObserving) -> Observing:
    """Return where recording is paused."""
    return _list(core, core.pauses.list_all())


@handles(PauseObserving)
def pause(core: Core, call: PauseObserving) -> "Future[Observing]":
    """Pause or resume recording in a place."""
    name, now = call.name, core.clock()
    if call.kind == "namespace":
        namespaces.check(name.strip("/"))
    elif not name or len(name.encode()) > _MAX_BYTES or "\0" in name:
        raise Invalid(f"A {call.kind} has a name of 1 to {_MAX_BYTES} bytes.")
    elif call.kind == "folder" and not name.startswith("/"):
        raise Invalid(f"{name!r} is not an absolute path of a folder.")
    limits.check_text("name", name)
    if call.kind == "session" and len(name) < _WHOLE_CHARS:  # the first characters of a known session
        with core.store.reading() as connection, suppress(NotFound):  # the session may not have begun
            name = session_names.choose_session(session_names.list_sessions(connection), name)
    change = core.pauses.remove if call.resume else core.pauses.put
    return core.store.write(lambda transaction: _list(core, change(transaction, call.kind, name, now)))


def _list(core: Core, pauses: list[Pause]) -> Observing:
    return Observing(pauses=pauses, only=core.pauses.list_only())
