"""`memctl hook EVENT`: handle one event of a coding agent.

The process always ends with exit code 0 within its time limit, and has written an answer in the host's format. An alarm
enforces the limit even if the daemon hangs or the host sends no input. Calls that could not be sent by then are
spooled. They are sent later by memctl, or by the next hook that reaches the daemon, except one at a prompt.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from memoryd.client.programs.hooks import hosts
from memoryd.client.programs.hooks.hosts import EVENTS, HOSTS

# Time limits for talking to the daemon: short at a prompt, because a user waits; long at the start of a session,
# because the hook may have to start the daemon.
LIMITS_S = {hosts.START: 6.0, hosts.PROMPT: 1.0, hosts.END: 1.0}
LIMIT_S = 2.0
REPLAY_SHARE = 0.5  # the share of the limit that sending the spool may use
_RESERVE_S = 1.0  # from the alarm to the host's own limit
_SPOOLING_S = 0.7  # the part of the reserve in which unsent calls are spooled


class OutOfTime(BaseException):
    """The hook has no time left except to spool the unsent calls."""


def main(words: Sequence[str]) -> NoReturn:
    """Run `EVENT --agent AGENT` on standard input and output, and end the process."""
    event, agent, others = _parse(words)
    if event not in EVENTS or agent not in HOSTS or others:
        foreign = f"does not know {' '.join(others)}; it " if event in EVENTS and others else ""
        sys.stderr.write(f"memctl hook: {foreign}needs one of {', '.join(EVENTS)} and --agent {'|'.join(HOSTS)}.\n")
        sys.stderr.flush()
        os._exit(0)
    answer = HostOutput(event, agent)
    unsent: list[dict[str, Any]] = []
    try:
        try:
            _set_alarm(HOSTS[agent].events[event].timeout_s - _RESERVE_S, answer)
            handle(event, agent, _read_input(), answer, unsent)
        except OutOfTime:
            _spool(unsent)
    except BaseException as error:
        with suppress(Exception):
            sys.stderr.write(f"memctl hook: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
    answer.leave()


def _parse(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return the event, the agent and any other arguments."""
    rest = list(words)
    agent = next(iter(HOSTS))
    if "--agent" in rest:
        at = rest.index("--agent")
        agent = "".join(rest[at + 1 : at + 2])
        del rest[at : at + 2]
    event = next((word for word in rest if word in EVENTS), "")
    return event, agent, [word for word in rest if word != event]


def _set_alarm(limit_s: float, answer: "HostOutput") -> None:
    """Raise `OutOfTime` after `limit_s`, and end the process shortly after that."""

    def ring(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGALRM, lambda number, frame: answer.leave())
        signal.setitimer(signal.ITIMER_REAL, _SPOOLING_S)
        raise OutOfTime

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)


def _read_input() -> bytes:
    parts = []
    while part := os.read(0, 1 << 16):
        parts.append(part)
    return b"".join(parts)


class HostOutput:
    """The output for the host, written once; by default an empty answer."""

    def __init__(self, event: str, agent: str) -> None:
        self._host, self._event, self._is_given = HOSTS[agent], event, False

    def give(self, text: str) -> None:
        """Write an answer with a text, or an empty answer."""
        if self._is_given:
            return
        self._is_given = True
        data = self._host.answer_nothing(self._event)
        if text:
            import msgspec

            data = msgspec.json.encode(self._host.answer(self._event, text))
        with suppress(OSError):  # the host has closed the pipe
            while data:
                data = data[os.write(1, data) :]

    def leave(self) -> NoReturn:
        """End the process, with an empty answer if none was written."""
        self.give("")
        os._exit(0)


def handle(event: str, agent: str, data: bytes, answer: HostOutput, unsent: list[dict[str, Any]]) -> None:
    """Answer an event and report it to the daemon; spool the calls that cannot be sent.

    Calls are added to `unsent` first, and removed once they are sent or spooled.
    """
    from memoryd.client.errors import Untrusted
    from memoryd.client.programs.hooks import answering
    from memoryd.client.programs.hooks.wire import Silent

    if _is_removed():
        return
    asked = answering.read_event(event, agent, data)
    unsent += answering.list_calls(asked)
    with suppress(OSError, Untrusted):
        answering.note_files(asked.session, answering.list_edited(asked))
    link = None
    with suppress(Silent):
        link = open_link(event)
        _report(link, asked, answer)
    answer.give("")
    note(link, unsent)
    if event == hosts.START:
        answering.forget_files()


def _is_removed() -> bool:
    """Return whether memoryd was uninstalled, so that nothing is recorded and no daemon is started.

    After that the data folder is missing, or contains a marker file. Installing hooks or starting the daemon creates
    the folder.
    """
    from memoryd.client.transport import paths

    return not os.path.isdir(paths.data_folder()) or os.path.exists(paths.removed_mark())


def open_link(event: str) -> Any:
    """Return a link to the daemon; if it does not answer at the start of a session, start it first."""
    from memoryd.client.programs.hooks.wire import DaemonLink, Silent

    give_up_at = time.monotonic() + LIMITS_S.get(event, LIMIT_S)
    try:
        return DaemonLink(give_up_at)
    except Silent:
        if event != hosts.START or time.monotonic() > give_up_at:
            raise
    from memoryd.client.transport import paths, spawn

    spawn.start(paths.socket_path())
    return DaemonLink(give_up_at)


def _report(link: Any, asked: Any, answer: HostOutput) -> None:
    """Send the spool, answer the host, and let the daemon index changed memory files. Refused calls are ignored."""
    from memoryd.client.programs.hooks import answering, spool
    from memoryd.client.programs.hooks.wire import CallRefused

    if asked.event != hosts.PROMPT:
        with suppress(CallRefused):
            spool.replay(link, time.monotonic() + REPLAY_SHARE * LIMITS_S.get(asked.event, LIMIT_S))
    with suppress(CallRefused):
        answer.give(answering.context(link, asked))
    for path in answering.list_written(asked):
        with suppress(CallRefused):  # the file is not in a workspace
            link.call("index_workspace", workspace=path)


def note(link: Any, unsent: list[dict[str, Any]]) -> None:
    """Send calls in order; spool the first one that the daemon does not accept and all after it."""
    from memoryd.client.programs.hooks import spool

    while unsent and link is not None and spool.send_call(link, unsent[0]):
        del unsent[0]
    _spool(unsent)


def _spool(unsent: list[dict[str, Any]]) -> None:
    from memoryd.client.programs.hooks import spool

    while unsent:
        spool.append(unsent[0])
        del unsent[0]
