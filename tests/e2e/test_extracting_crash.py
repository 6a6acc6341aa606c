"""`kill -9` while conversations are thought about: no turn is lost to thinking, none is thought about twice."""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from killing import Account, kill_amid, open_snapshot

from conversing import resting
from memoryd.client import MemorydError
from memoryd.client.protocol import NewTurn, Verify
from model_server import Request, model_server
from workbench import wait_until

CONFIG = """
[model]
name = "none"
fetch = false
[llm]
url = "{url}"
model = "tiny"
[jobs]
enabled = false
"""
LIVES = int(os.environ.get("MEMORYD_TEST_KILLS", "10"))


def answer(request: Request) -> None:
    """Answer as a language model that makes each turn a fact, word for word."""
    system, question = (message["content"] for message in request.body["messages"])
    turns = json.loads(question)["turns"]
    if "importance" in system:
        request.say({"importances": [0.8] * len(turns)})
    elif "draw out" in system:
        facts = [{"text": one["text"], "type": "fact", "confidence": 1, "turns": [one["number"]]} for one in turns]
        request.say({"facts": facts})
    else:
        request.say({"done": [turns[-1]["text"]]})


def observe_until_killed(process: Any, account: Account, name: str, seed: str) -> None:
    dice = random.Random(seed)
    try:
        with process.client(f"talk/{name}", timeout_s=20) as client:
            while True:
                said = [
                    NewTurn(
                        role="user", content=f"We decided that item {dice.getrandbits(40)} gets the number {number}."
                    )
                    for number in range(dice.randrange(1, 5))
                ]
                account.note(f"talk/{name}", client.observe(said, session=seed).ids, said)
                if dice.random() < 0.1:
                    client.end_session(seed)
                time.sleep(dice.random() * 0.03)  # people pause: a conversation may rest
    except (MemorydError, OSError):
        return


def check(process: Any, account: Account) -> tuple[int, int]:
    """Each acknowledged turn waits or is a fact, once; return how many there are of each."""
    with open_snapshot(process) as connection:
        waiting = Counter(key for (key,) in connection.execute("SELECT turn FROM extraction WHERE task = 'extract'"))
        facts: Any = connection.execute(
            "SELECT v.value, m.content FROM memories m, json_each(m.metadata, '$.turns') v"
            " WHERE m.source = 'extraction'"
        ).fetchall()
    done = Counter(key for key, _ in facts)
    assert [key for key, count in (waiting + done).items() if count > 1] == []
    assert [key for key in account.accepted if key not in waiting and key not in done] == []
    assert [key for key, content in facts if account.accepted.get(key, ("", content))[1] != content] == []
    with process.client() as client:
        assert client.call(Verify()).problems == []
    return len(waiting), len(done)


def count_facts(process: Any) -> int:
    with open_snapshot(process) as connection:
        return int(connection.execute("SELECT count(*) FROM memories WHERE source = 'extraction'").get)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_extraction_queue_loses_nothing_and_does_nothing_twice(make_process: Callable[..., Any]) -> None:
    with model_server() as server:
        server.will(answer)
        process = make_process(
            CONFIG.format(url=server.url),
            constants={
                "daemon.conversations.extracting.QUIET_S": 0.05,
                "daemon.conversations.extracting.SUMMARY_AFTER_S": 0.1,
                "daemon.conversations.extracting.LONGEST_S": 0.2,
            },
        )
        dice, account = random.Random(11), Account()
        met = Counter[str]()
        for life in range(LIVES):
            process.start()
            waiting, done = check(process, account)
            met.update(waiting=waiting > 0, done=done > 0)
            if waiting and not done:  # a slow machine may be killed each time before it has made the first fact
                wait_until(lambda: count_facts(process) > 0)
            aim = account.calls + dice.randrange(5, 60)
            threads = [
                threading.Thread(target=observe_until_killed, args=(process, account, name, f"{life} {name}"))
                for name in "abc"
            ]
            kill_amid(process, threads, lambda aim=aim: account.calls >= aim, dice, within_s=0.1)  # type: ignore[misc]
        process.start()
        with process.client() as client:
            wait_until(lambda: not resting(client.tiers()))
            summaries = Counter(
                (one.namespace, one.metadata["session"]) for one in client.list(source="session_summary", limit=500)
            )
        left, thought = check(process, account)
        assert left == 0
        assert thought >= len(account.accepted)  # more: a kill between the commit and its acknowledgement
        assert set(summaries.values()) == {1}
        assert process.stop() == 0
        assert met["waiting"] > 0
        assert met["done"] > 0
