"""What hooks spool, and a daemon that dies or hangs at one call of it: that one is set aside, the rest arrives."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from configs import NO_MODEL
from hosting import Agent
from memoryd.client.agents.hooks import answering, spool
from memoryd.client.agents.hooks.hosts import HOSTS
from memoryd.client.agents.hooks.wire import Broken, Silent
from workbench import Process

POISON = "a line at which this daemon is lost"


def call(number: int, said: str = "") -> dict[str, Any]:
    turn = {"id": f"{number:032x}", "role": "user", "content": said or f"Plan number {number} of the migration"}
    return {"method": "observe", "namespace": "api", "session": "s", "turns": [turn]}


@pytest.fixture(autouse=True)
def own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spool in a folder of the test; where a link is broken, no daemon answers another one."""
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("MEMORYD_SOCKET", str(folder / "s"))
    (folder / "data").mkdir(mode=0o700)
    return folder / "data"


class Link:
    """A link to a daemon that is lost at one call: `how` raises what the hook sees then."""

    def __init__(self, how: Callable[[], Exception] = lambda: Broken("gone"), answers: bool = True) -> None:
        self.taken: list[int] = []
        self._how, self._answers = how, answers

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        if not self._answers:
            raise Silent("hung")
        for turn in fields.get("turns", ()):
            if turn["content"] == POISON:
                raise self._how()
            self.taken.append(int(turn["id"], 16))
        return {}


def replayed(link: Link) -> list[int]:
    spool.replay(link, time.monotonic() + 5)  # type: ignore[arg-type]
    return link.taken


def kept_aside(folder: Path) -> list[str]:
    path = folder / "hooks.aside"
    return [json.loads(line)["turns"][0]["content"] for line in path.read_bytes().splitlines()] if path.exists() else []


def test_a_call_at_which_the_daemon_dies_twice_is_set_aside_and_the_rest_is_sent(own: Path) -> None:
    for number in range(4):
        spool.append(call(number, POISON if number == 1 else ""))
    assert replayed(Link()) == [0]
    assert replayed(Link()) == []
    assert (spool.count_waiting(), spool.count_aside()) == (3, 0)
    assert replayed(Link()) == [2, 3]
    assert (spool.count_waiting(), kept_aside(own)) == (0, [POISON])
    assert (own / "hooks.aside").stat().st_mode & 0o777 == 0o600
    assert POISON not in (own / "hooks.sending").read_text()


class Recorder(Link):
    """Takes everything; keeps the methods that it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.methods: list[str] = []

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        self.methods.append(method)
        return {}


@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"delete","ids":["0123456789abcdef0123456789abcdef"]}',
        b'{"method":"shutdown"}',
        b'{"method":"erase","namespace":"api"}',
        b'{"method":["observe"],"turns":[]}',
        b'{"namespace":"api"}',
    ],
)
def test_a_line_that_is_no_call_of_hooks_is_refused_and_said(own: Path, memctl: Memctl, line: bytes) -> None:
    spool.append(call(1))
    with (own / "hooks.spool").open("ab") as file:
        file.write(line + b"\n")
    spool.append(call(2))
    daemon = Recorder()
    replayed(daemon)
    assert daemon.methods == ["status", "observe", "observe"]
    assert (spool.count_waiting(), spool.count_aside(), spool.count_foreign()) == (0, 1, 1)
    assert "1 line refused that no hook wrote" in memctl("hooks", "status").out
    spool.put_back()
    replayed(daemon)
    assert set(daemon.methods) == {"status", "observe"}
    assert spool.count_foreign() == 1


def test_what_hooks_spool_may_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"session_id": "s", "conversation_id": "s", "prompt": "Plan", "trigger": "auto"}
    asked = set()
    for observe in ("on", "off"):
        monkeypatch.setenv("MEMORYD_OBSERVE", observe)
        for agent, host in HOSTS.items():
            for event in host.events:
                event_of = answering.read_event(event, agent, json.dumps(given).encode())
                asked |= {call["method"] for call in answering.list_calls(event_of)}
    assert asked == spool.METHODS


def test_a_daemon_that_hangs_at_a_call_and_answers_nobody_is_lost(own: Path) -> None:
    spool.append(call(1, POISON))
    for _ in range(2):
        replayed(Link(lambda: Silent("timed out")))  # and nobody listens at the socket
    spool.append(call(2))
    assert replayed(Link()) == [2]
    assert kept_aside(own) == [POISON]


def test_a_daemon_that_is_only_busy_loses_no_call(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "DaemonLink", lambda until: Busy())
    spool.append(call(1, POISON))
    for _ in range(3):
        replayed(Link(lambda: Silent("timed out")))
    assert (spool.count_waiting(), spool.count_aside()) == (1, 0)


def test_a_call_that_is_never_answered_does_not_hold_up_the_rest_for_ever(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "DaemonLink", lambda until: Busy())
    spool.append(call(1, POISON))
    spool.append(call(2))
    for _ in range(spool.MOST_UNANSWERED):
        assert replayed(Link(lambda: Silent("timed out"))) == []
    assert replayed(Link(lambda: Silent("timed out"))) == [2]
    assert kept_aside(own) == [POISON]


class Busy:
    """A second connection to a daemon that answers: it refuses, which is an answer too."""

    def call(self, method: str) -> dict[str, Any]:
        raise spool.CallRefused("forbidden")

    def close(self) -> None:
        pass


def test_a_daemon_that_hung_before_is_put_down_to_no_call(own: Path) -> None:
    spool.append(call(1))
    for _ in range(3):
        assert replayed(Link(answers=False)) == []
    assert replayed(Link()) == [1]


def test_a_call_that_arrives_after_one_loss_is_forgiven(own: Path) -> None:
    spool.append(call(1, POISON))
    replayed(Link())
    taken = Link(how=lambda: spool.CallRefused("conflict"))  # it has it
    replayed(taken)
    assert spool.count_waiting() == 0
    spool.append(call(1, POISON))
    replayed(Link())
    replayed(Link(how=lambda: spool.CallRefused("conflict")))
    assert (spool.count_waiting(), spool.count_aside()) == (0, 0)


def test_a_hook_that_was_killed_while_it_sent_counts_too(own: Path) -> None:
    class Killed(BaseException):
        pass

    spool.append(call(1, POISON))
    spool.append(call(2))
    for _ in range(2):
        with pytest.raises(Killed):
            replayed(Link(how=Killed))  # type: ignore[arg-type]
    assert replayed(Link()) == [2]
    assert kept_aside(own) == [POISON]


def test_while_one_hook_sends_another_leaves_it_to_that_one(own: Path) -> None:
    spool.append(call(1))
    with spool.hold_attempts() as first:
        assert first is not None
        assert replayed(Link()) == []
    assert replayed(Link()) == [1]


@pytest.mark.parametrize("written", [b"", b"{", b"null", b'{"sending": 3}'])
def test_a_file_of_attempts_that_says_nothing_is_begun_again(written: bytes, own: Path) -> None:
    (own / "hooks.sending").write_bytes(written)
    spool.append(call(1))
    assert replayed(Link()) == [1]


def test_what_was_set_aside_is_reported_and_can_be_sent_again(own: Path, memctl: Memctl) -> None:
    assert memctl("doctor", "hooks", "--json").json == []
    for number in (1, 2):
        spool.append(call(number, POISON if number == 1 else ""))
    for _ in range(3):
        replayed(Link())
    [found] = memctl("doctor", "hooks", "--json").json
    assert found["state"] == "warn"
    assert found["message"].startswith("1 call of hooks set aside, because the daemon died, hung or never answered")
    assert found["fix"] == f"after an upgrade: memctl hooks retry; to drop them: rm {own / 'hooks.aside'}"
    assert memctl("hooks", "status", "--json").json["set_aside"] == 1
    assert "1 call set aside" in memctl("hooks", "status").out
    assert memctl("hooks", "retry").out == "1 call will be sent again by `memctl up` or the next hook.\n"
    assert (spool.count_waiting(), spool.count_aside()) == (1, 0)
    assert memctl("hooks", "retry", "--json").json == {"retried": 0}
    assert replayed(Link(how=lambda: spool.CallRefused("conflict"))) == []
    assert spool.count_waiting() == 0


def test_nothing_is_put_back_into_a_full_spool(own: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append(call(1, POISON))
    for _ in range(3):
        replayed(Link())
    monkeypatch.setattr(spool, "MAX_BYTES", 10)
    done = memctl("hooks", "retry")
    assert (done.code, done.err) == (
        1,
        "memctl: The spool of the hooks is full. Run `memctl up`, which sends what waits, and try again.\n",
    )
    assert spool.count_aside() == 1


HANGING = f"""
import re
from memoryd.daemon.conversations import gate
judge = gate.check
gate.check = lambda text: re.fullmatch("(?:a|a)*b", "a" * 60) if text == {POISON!r} else judge(text)
from memoryd.daemon.__main__ import main
main()
"""


@pytest.mark.slow
def test_a_line_at_which_real_daemons_hang_keeps_no_other_from_the_next(own: Path, folder: Path) -> None:
    project = folder / "api"
    project.mkdir()
    agent = Agent("claude-code", folder, project)
    for number in range(3):
        spool.append(call(number, POISON if number == 0 else ""))
    process = Process(folder, NO_MODEL)
    for _ in range(2):
        process.start("-c", HANGING)
        agent.hook("session-end", reason="exit")
        process.kill()
    process.start()
    try:
        agent.hook("session-end", reason="exit")
        with process.client("api") as client:
            assert [turn.content for turn in reversed(client.turns().turns)] == [
                "Plan number 1 of the migration",
                "Plan number 2 of the migration",
            ]
        assert (spool.count_waiting(), kept_aside(own)) == (0, [POISON])
    finally:
        process.stop()
