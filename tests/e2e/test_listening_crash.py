"""`kill -9` of the real daemon at random moments of live sessions: all that files have is heard, and nothing twice."""

import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killing import kill_amid, open_snapshot

from configs import NO_MODEL
from memoryd.client import MemorydError
from memoryd.client.protocol import NewTurn, Verify
from memoryd.client.protocol.backfill import Listen
from memoryd.client.times import iso
from workbench import wait_until


class Host:
    """A coding agent with one session: it writes the file and sends the events, or has them wait."""

    def __init__(self, home: Path, dice: random.Random) -> None:
        self.session, self.dice = str(uuid.UUID(int=dice.getrandbits(128), version=4)), dice
        self.path = home / "projects" / "-api" / f"{self.session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.said: list[str] = []
        self.last: str | None = None
        self.events = 0

    def invent(self, role: str) -> str:
        about = f"{self.dice.getrandbits(40):x}, which is number {len(self.said)}"
        return f"The {role} of {self.session[:8]} spoke of {about}{self.dice.choice(['?', '.', ''])}"

    def write(self, type: str, text: str, is_said: bool = True) -> None:
        id = str(uuid.UUID(int=self.dice.getrandbits(128), version=4))
        value: dict[str, Any] = {"type": type, "uuid": id, "parentUuid": self.last, "timestamp": iso(time.time())}
        value |= {"message": {"role": type, "content": text}, "cwd": "/"}
        if type == "attachment":
            value["attachment"] = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        with self.path.open("a") as file:
            file.write(json.dumps(value) + "\n")
        self.last = id
        if is_said:
            self.said.append(text)

    def tell(self, client: Any, role: str = "", text: str = "", moment: Any = "turn") -> None:
        """Send an event; a daemon that is away is told later that there is something to read."""
        told = [NewTurn(role=role, content=text, created_at=time.time())] if text else []
        self.events += 1
        client.call(
            Listen(
                agent="claude-code", file=str(self.path), session=self.session, namespace="api", folder="/",
                moment=moment, turns=told,
            )
        )  # fmt: skip

    def talk(self, client: Any) -> None:
        """Say one thing and hear the answer, as hosts do: the file comes after the event, or before it."""
        prompt, answer = self.invent("user"), self.invent("agent")
        steps: list[Callable[[], None]] = [
            lambda: self.tell(client, "user", prompt),
            lambda: self.write("user", prompt),
        ]
        self.dice.shuffle(steps)
        if self.dice.random() < 0.3:
            queued = self.invent("user")
            steps.append(lambda: self.write("attachment", queued))
        steps.append(lambda: self.write("assistant", "Let me look first", False))
        end: list[Callable[[], None]] = [
            lambda: self.tell(client, "assistant", answer),
            lambda: self.write("assistant", answer),
        ]
        self.dice.shuffle(end)
        failed = None
        for step in [*steps, *end]:  # the session goes on without a daemon
            time.sleep(self.dice.random() * 0.1)  # people are slower, and a daemon has time to read
            try:
                step()
            except (MemorydError, OSError) as error:
                failed = error
        if failed:
            raise failed

    def work(self, process: Any) -> None:
        try:
            with process.client("api", timeout_s=20) as client:
                while True:
                    self.talk(client)
        except (MemorydError, OSError):
            return


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "lives", [pytest.param(40, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.stress)]
)
def test_nothing_is_heard_twice_or_lost_however_often_the_daemon_is_killed(
    make_process: Callable[..., Any], lives: int, tmp_path: Path
) -> None:
    home = tmp_path / "claude"
    process = make_process(NO_MODEL, {"CLAUDE_CONFIG_DIR": str(home)})
    dice = random.Random(11)
    hosts = [Host(home, random.Random(number)) for number in range(2)]
    for _ in range(lives):
        process.start()
        aim = sum(host.events for host in hosts) + dice.randrange(1, 12)
        workers = [threading.Thread(target=host.work, args=(process,)) for host in hosts]
        kill_amid(process, workers, lambda: sum(host.events for host in hosts) >= aim, dice, within_s=0.5)  # noqa: B023
    process.start()
    with process.client("api") as client:
        for host in hosts:
            host.tell(client, moment="end")
        expected = Counter(text for host in hosts for text in host.said)
        wait_until(lambda: read_all(process).keys() >= expected.keys())
        for host in hosts:
            host.tell(client, moment="end")
        assert read_all(process) == expected
        assert client.call(Verify()).problems == []


def read_all(process: Any) -> Counter[str]:
    with open_snapshot(process) as connection:
        sql = "SELECT content FROM turns UNION ALL SELECT content FROM memories WHERE turns > 0"
        return Counter(text for (text,) in connection.execute(sql))
