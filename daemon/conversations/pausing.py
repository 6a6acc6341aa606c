"""The calls that pause and resume observing."""

from concurrent.futures import Future

from memoryd.client.errors import Invalid
from memoryd.client.protocol import GetObserving, Observing, PauseObserving, ResumeObserving
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces

_MAX_BYTES = 4096


@handles(GetObserving)
def read_pauses(core: Core, call: GetObserving) -> Observing:
    """Return where observing is paused."""
    return Observing(pauses=core.pauses.list_all())


@handles(PauseObserving)
def pause(core: Core, call: PauseObserving) -> "Future[Observing]":
    """Pause observing in a place."""
    _check(call)
    now = core.clock()
    return core.store.write(
        lambda transaction: Observing(pauses=core.pauses.put(transaction, call.kind, call.name, now))
    )


@handles(ResumeObserving)
def resume(core: Core, call: ResumeObserving) -> "Future[Observing]":
    """Observe in a place again."""
    _check(call)
    now = core.clock()
    return core.store.write(
        lambda transaction: Observing(pauses=core.pauses.remove(transaction, call.kind, call.name, now))
    )


def _check(call: PauseObserving | ResumeObserving) -> None:
    """Raise `Invalid` for what cannot be the name of such a place."""
    if call.kind == "namespace":
        namespaces.check(call.name.strip("/"))
    elif not call.name or len(call.name.encode()) > _MAX_BYTES or "\0" in call.name:
        raise Invalid(f"A {call.kind} has a name of 1 to {_MAX_BYTES} bytes.")
    elif call.kind == "folder" and not call.name.startswith("/"):
        raise Invalid(f"{call.name!r} is not an absolute path of a folder.")
    checks.check_text("name", call.name)
