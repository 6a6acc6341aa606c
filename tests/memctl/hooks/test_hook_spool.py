"""What hooks spool: a call that gets no answer does not hold up the others, and what is dropped is counted."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from configs import NO_MODEL
from hosting import Agent
from memoryd.client.programs.hooks import answering, hook, spool
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.hooks.wire import CallRefused, Silent
from workbench import Process

POISON = "a line at which this daemon is lost"


def call(number: int, said: str = "") -> dict[str, Any]:
    turn = {"id": f"{number:032x}", "role": "user", "content": said or f"Plan number {number} of the migration"}
    return {"method": "observe", "namespace": "api", "session": "s", "turns": [turn]}


@pytest.fixture(autouse=True)
def own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spool in a folder of the test."""
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("MEMORYD_SOCKET", str(folder / "s"))
    (folder / "data").mkdir(mode=0o700)
    return folder / "data"


class Link:
    """A link to a daemon that fails at one call: `how` raises what the hook sees then."""

    def __init__(self, how: Callable[[], BaseException] = lambda: Silent("gone")) -> None:
        self.taken: list[int] = []
        self._how = how

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        for turn in fields.get("turns", ()):
            if turn["content"] == POISON:
                raise self._how()
            self.taken.append(int(turn["id"], 16))
        return {}


def replayed(link: Link) -> list[int]:
    spool.replay(link, time.monotonic() + 5)  # type: ignore[arg-type]
    return link.taken


def reasons(folder: Path) -> list[str]:
    path = folder / "hooks.dropped"
    return [line.partition(" ")[2] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("how", [lambda: Silent("timed out"), lambda: CallRefused("internal")])
def test_a_call_at_which_the_daemon_fails_goes_behind_the_others_and_is_kept(
    how: Callable[[], BaseException], own: Path
) -> None:
    for number in range(4):
        spool.append(call(number, POISON if number == 1 else ""))
    assert [replayed(Link(how)) for _ in range(3)] == [[0], [], [2, 3]]
    assert (spool.count_waiting(), spool.count_dropped()) == (1, 0)
    assert replayed(Link(how)) == []
    assert (spool.count_waiting(), spool.count_dropped()) == (1, 0)


@pytest.mark.parametrize("code", ["busy", "storage_full", "storage_failed"])
def test_a_daemon_that_takes_nothing_now_leaves_all_as_it_is(code: str, own: Path) -> None:
    for number in range(3):
        spool.append(call(number, POISON if number == 0 else ""))
    before = (own / "hooks.spool").read_bytes()
    assert replayed(Link(lambda: CallRefused(code))) == []
    assert (own / "hooks.spool").read_bytes() == before


@pytest.mark.parametrize("code", ["invalid", "not_found", "forbidden", "bad_frame", "unknown_method"])
def test_a_call_that_is_refused_for_good_is_dropped_and_counted_without_its_content(code: str, own: Path) -> None:
    for number in range(3):
        spool.append(call(number, POISON if number == 0 else ""))
    assert replayed(Link(lambda: CallRefused(code))) == [1, 2]
    assert (spool.count_waiting(), reasons(own)) == (0, [f"observe: refused by the daemon ({code})"])
    assert (own / "hooks.dropped").stat().st_mode & 0o777 == 0o600
    hook.note(Link(lambda: CallRefused(code)), [call(3, POISON)])
    assert (spool.count_waiting(), spool.count_dropped()) == (0, 2), "also one that was never spooled"


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
        b'{"method":"observe","self":1}',
        b'{"namespace":"api"}',
        b'{"method":"observe","tur',
    ],
)
def test_a_line_that_is_no_call_of_hooks_is_never_sent_and_counted(own: Path, memctl: Memctl, line: bytes) -> None:
    spool.append(call(1))
    with (own / "hooks.spool").open("ab") as file:
        file.write(line + b"\n")
    spool.append(call(2))
    daemon = Recorder()
    replayed(daemon)
    assert daemon.methods == ["observe", "observe"]
    assert (spool.count_waiting(), reasons(own)) == (0, ["line: no call of a hook"])


def test_half_a_line_of_a_killed_hook_takes_no_other_with_it(own: Path) -> None:
    spool.append(call(0))
    with (own / "hooks.spool").open("ab") as file:
        file.write(b'{"method":"obs')
    spool.append(call(1))
    assert replayed(Link()) == [0, 1]
    assert (own / "hooks.spool").read_bytes() == b""


def test_what_waits_holds_no_credential(own: Path) -> None:
    token = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
    spool.append(call(1, f"push with {token}"))
    [line] = (own / "hooks.spool").read_text().splitlines()
    assert json.loads(line)["turns"][0]["content"] == "push with [secret: GitHub token]"


def test_what_hooks_spool_may_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/c")
    given = {"session_id": "s", "conversation_id": "s", "prompt": "Plan", "trigger": "auto"}
    given["transcript_path"] = "/c/projects/a/s.jsonl"
    asked = set()
    for observe in ("on", "off"):
        monkeypatch.setenv("MEMORYD_OBSERVE", observe)
        for agent, host in HOSTS.items():
            for event in host.events:
                event_of = answering.read_event(event, agent, json.dumps(given).encode())
                asked |= {call["method"] for call in answering.list_calls(event_of)}
    assert asked == {*spool.METHODS}


def test_a_hook_that_was_killed_while_it_sent_leaves_the_call_where_it_was(own: Path) -> None:
    class Killed(BaseException):
        pass

    for number in range(3):
        spool.append(call(number, POISON if number == 1 else ""))
    with pytest.raises(Killed):
        replayed(Link(how=Killed))
    assert replayed(Link(how=lambda: CallRefused("conflict"))) == [2]
    assert (spool.count_waiting(), spool.count_dropped()) == (0, 0)


def test_while_one_hook_sends_another_leaves_it_to_that_one(own: Path) -> None:
    spool.append(call(1))
    spool.append(call(2))
    second = Link()

    class First(Link):
        def call(self, method: str, **fields: Any) -> dict[str, Any]:
            assert replayed(second) == []
            return super().call(method, **fields)

    assert replayed(First()) == [1, 2]
    assert (second.taken, spool.count_waiting()) == ([], 0)


def test_what_was_dropped_is_reported(own: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    assert memctl("doctor", "hooks", "--json").json == []
    assert memctl("hooks", "status", "--json").json["dropped"] == 0
    monkeypatch.setattr(spool, "MAX_BYTES", 300)
    assert [spool.append(call(number)) for number in (1, 2, 3)] == [True, False, False]
    assert reasons(own) == ["observe: the spool is full"] * 2
    [found] = memctl("doctor", "hooks", "--json").json
    assert (found["state"], found["message"]) == (
        "warn",
        "2 calls of hooks dropped: the daemon refused them, or the spool was full",
    )
    assert found["fix"] == f"cat {own / 'hooks.dropped'}; rm {own / 'hooks.dropped'}"
    assert memctl("hooks", "status", "--json").json["dropped"] == 2
    assert f"2 calls dropped, as it says in {own}/hooks.dropped" in memctl("hooks", "status").out


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
    daemon = Process(folder, NO_MODEL)
    for _ in range(2):
        daemon.start("-c", HANGING)
        agent.hook("session-end", reason="exit")
        daemon.kill()
    daemon.start()
    try:
        with daemon.client("api") as client:
            assert [turn.content for turn in reversed(client.turns().turns)] == [
                "Plan number 1 of the migration",
                "Plan number 2 of the migration",
            ]
        agent.hook("session-end", reason="exit")
        assert (spool.count_waiting(), spool.count_dropped()) == (0, 0), "a daemon that was mended takes it"
    finally:
        daemon.stop()
