"""Hooks of a host that keeps a file of each session: the daemon reads there what events do not tell."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from configs import NO_MODEL
from hosting import Agent
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.sessions.agents import AGENTS
from telling import HOSTS as TOLD
from waiting import wait_until
from workbench import Process

PROMPT = "Move the nightly report to the old cluster, please"
QUEUED = "And keep the mail service where it is for now"
ANSWER = "The nightly report runs on the old cluster from tonight on"
NOTICE = "<task-notification><status>completed</status></task-notification>"


class Session:
    """A session of Claude Code with a file below its folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        project = folder / "api"
        (project / ".git").mkdir(parents=True)
        self.agent = Agent("claude-code", folder, project)
        self.agent.environment |= environment
        self.path = Path(environment["CLAUDE_CONFIG_DIR"], "projects", "-api", f"{self.agent.session}.jsonl")
        self.path.parent.mkdir(parents=True)
        self.count = 0

    def hook(self, event: str, **fields: Any) -> str:
        done = self.agent.hook(event, transcript_path=str(self.path), **fields)
        assert (done.code, done.err) == (0, "")
        return done.said

    def write(self, type: str, text: str) -> None:
        self.count += 1
        id, parent = (f"00000000-0000-4000-8000-{number:012}" for number in (self.count, self.count - 1))
        value = {"type": type, "uuid": id, "parentUuid": parent if self.count > 1 else None}
        value |= {"cwd": str(self.agent.project), "timestamp": f"2026-03-01T10:00:{self.count:02}Z"}
        with self.path.open("a") as file:
            if type == "queued":
                attached = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
                file.write(json.dumps({**value, "type": "attachment", "attachment": attached}) + "\n")
            else:
                file.write(json.dumps({**value, "message": {"role": type, "content": text}}) + "\n")


@pytest.fixture
def process(folder: Path) -> Iterator[Process]:
    running = Process(folder, NO_MODEL, {"CLAUDE_CONFIG_DIR": str(folder / "claude")})
    yield running
    running.stop()


@pytest.fixture
def session(process: Process) -> Session:
    return Session(process.folder, {"CLAUDE_CONFIG_DIR": str(process.folder / "claude")})


def heard(process: Process) -> list[tuple[str, str]]:
    with process.client("api") as client:
        return sorted((turn.role, turn.content) for turn in client.turns())


def test_a_session_is_heard_from_its_events_and_its_file_once(process: Process, session: Session) -> None:
    process.start()
    session.hook("session-start", source="startup")
    session.hook("prompt", prompt=PROMPT)
    assert heard(process) == [("user", PROMPT)]
    session.write("user", PROMPT)
    session.write("queued", QUEUED)
    session.write("assistant", ANSWER)
    session.hook("stop", last_assistant_message=ANSWER)
    session.write("user", NOTICE)
    assert session.hook("prompt", prompt=NOTICE) == ""
    session.write("assistant", "The task in the background is done by now")
    session.hook("session-end")
    every = {("user", PROMPT), ("user", QUEUED), ("assistant", ANSWER)}
    every.add(("assistant", "The task in the background is done by now"))
    wait_until(lambda: set(heard(process)) == every)
    assert len(heard(process)) == len(every)


def test_what_waits_for_a_daemon_that_is_away_holds_no_word_and_the_file_gives_them(
    process: Process, session: Session
) -> None:
    process.data.mkdir(exist_ok=True, mode=0o700)
    session.hook("prompt", prompt=PROMPT)
    session.write("user", PROMPT)
    session.write("assistant", ANSWER)
    session.hook("stop", last_assistant_message=ANSWER)
    waiting = [json.loads(line) for line in (process.data / "hooks.spool").read_text().splitlines()]
    assert [(call["method"], call["turns"], call["size"] > 0) for call in waiting] == [
        ("listen", [], False),
        ("listen", [], True),
    ]
    process.start()
    session.hook("session-end")
    wait_until(lambda: heard(process) == [("assistant", ANSWER), ("user", PROMPT)])


def test_with_a_token_the_texts_are_sent(process: Process, session: Session) -> None:
    process.start()
    with process.client() as client:
        session.agent.environment["MEMORYD_TOKEN"] = client.add_token("worker", "api").token
    session.write("user", PROMPT)
    session.write("queued", QUEUED)
    session.hook("prompt", prompt=PROMPT)
    session.hook("stop", last_assistant_message=ANSWER)
    assert heard(process) == [("assistant", ANSWER), ("user", PROMPT)]


def test_nothing_is_read_of_a_session_that_is_not_to_be_observed(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {AGENTS[name].home.partition("/")[0]: str(process.folder / name) for name in TOLD}
    process.environment |= homes
    for variable, home in homes.items():
        monkeypatch.setenv(variable, home)
    process.start()
    (process.folder / "api" / ".git").mkdir(parents=True)
    for name in TOLD:
        keep_back_and_go_on(name, process)
    assert heard(process) == []


def keep_back_and_go_on(name: str, process: Process) -> None:
    """Have a session of a host that is kept back, its end once more without that, and another session."""
    home = AGENTS[name].find_home()
    home.mkdir(parents=True)
    agent = Agent(name, process.folder, process.folder / "api", f"5d0e8f0e-{name}")
    agent.environment |= process.environment
    written: Any = TOLD[name](SimpleNamespace(clock=time.time), home, agent.session)  # type: ignore[arg-type]
    path = "" if HOSTS[name].file else str(written.path)

    def hook(event: str, **fields: Any) -> None:
        done = agent.hook(event, transcript_path=path, **fields)
        assert (done.code, done.err) == (0, "")

    hook("session-start", source="startup")
    agent.environment["MEMORYD_OBSERVE"] = "off"
    hook("prompt", prompt=PROMPT)
    written.types(PROMPT)
    written.says(ANSWER)
    hook("stop", **{HOSTS[name].message: ANSWER})
    hook("session-end")
    del agent.environment["MEMORYD_OBSERVE"]
    hook("session-end")
    agent.session = f"another-{name}"
    hook("session-start", source="startup")
    hook("session-end")
