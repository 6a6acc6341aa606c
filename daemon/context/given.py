"""What a session was given, so that it gets nothing twice: noted on disk before it is returned."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from memoryd.client.protocol import Done, GetContext, GetUnasked, ResetSession
from memoryd.daemon.core.checks import check_text
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import sessions
from memoryd.daemon.store.writer import Transaction

R = TypeVar("R")


@handles(ResetSession)
def reset(core: Core, call: ResetSession) -> "Future[Done]":
    """Forget what a session was given; the future is done when that is on disk."""
    check_text("session", call.session)

    def write(transaction: Transaction) -> Done:
        sessions.forget_given(transaction.connection, _key(call))
        return Done(message="Contexts of this session start again.")

    return core.store.write(write, over_limit=True)


def read(core: Core, call: GetContext | GetUnasked) -> dict[str, bytes]:
    """Return the content hashes of the memories that a session was given, by id."""
    if not call.session:
        return {}
    with core.store.reading() as connection:
        return sessions.read_given(connection, _key(call))


def keep(core: Core, call: GetContext | GetUnasked, memories: Sequence[tuple[str, bytes]], result: R) -> "Future[R]":
    """Note the ids and content hashes of what a session is given; the future has the result when that is on disk."""
    if not call.session or not (memories or call.fresh) or core.store.is_full():
        future: Future[R] = Future()
        future.set_result(result)
        return future
    now = core.clock()

    def write(transaction: Transaction) -> R:
        if call.fresh:
            sessions.forget_given(transaction.connection, _key(call))
        sessions.keep_given(transaction.connection, _key(call), memories, now)
        return result

    return core.store.write(write)


def _key(call: GetContext | GetUnasked | ResetSession) -> str:
    return f"{call.namespace}\n{call.session}"
