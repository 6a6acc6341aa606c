"""Nothing of a private passage is left on disk, whichever way it came in, and the reply says that one was there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client, Invalid
from memoryd.client.credentials.private import KIND
from memoryd.client.protocol import GetUnasked, NewTurn, Observe, Record, Traces
from memoryd.client.protocol.backfill import Backfill, PastTurn
from workbench import Daemon

WORD = "zanzibar"
TEXT = f"The deploy of the payments service runs at six. <private>Ask {WORD}.</private> Then it is checked."
CLEAN = "The deploy of the payments service runs at six.  Then it is checked."
WHOLE = f"<Private>only {WORD} knows of the merger"


def ways_in(client: Client) -> list[Any]:
    other = client.add("The staging cluster runs in Frankfurt since the spring release.")
    record = Record(id="ab" * 16, namespace="", type="fact", content=f"In. {TEXT}", created_at=5.0, updated_at=5.0)
    past = PastTurn(role="user", content=f"Past. {TEXT}", id="cd" * 16, created_at=5.0)
    return [
        client.add(TEXT, metadata={"note": TEXT}, allow_secrets=True),
        client.add_many([{"content": f"First of many. {TEXT}"}]),
        client.put_many([{"key": "deploy", "memory": {"content": f"Put. {TEXT}"}}]),
        client.update(other.id, content=f"Changed. {TEXT}"),
        client.observe([{"role": "user", "content": f"Said. {TEXT}"}], session="s1"),
        client.import_memories([record]),
        client.complete_task("failed", TEXT, task="deploy", session="s1"),
        client.call(Backfill(turns=[past], session="s2")),
    ]


def holding(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_socket()]
    return [path.name for path in files if WORD.encode() in path.read_bytes().lower()]


@pytest.mark.parametrize("mode", ["redact", "refuse", "allow"])
def test_nothing_of_it_is_on_disk_and_each_reply_says_so(start_daemon: Callable[..., "Daemon"], mode: str) -> None:
    daemon = start_daemon(privacy={"secrets": mode})
    with daemon.client() as client:
        told = [reply.redacted for reply in ways_in(client)]
        assert told == [{KIND: 2}, *[{KIND: 1}] * 7]
        assert client.search("payments service deploy")[0].content.endswith(CLEAN)
        client.search(f"deploy <private>{WORD}</private> payments")
        client.call(GetUnasked(prompt=f"when is the deploy of payments? <private>{WORD}", session="s1"))
        assert len(client.call(Traces()).traces) == 3
        assert client.call(GetUnasked(prompt=WHOLE, session="s1")).lines == []
        assert len(client.call(Traces()).traces) == 3
        with pytest.raises(Invalid, match="marked <private>"):
            client.add(WHOLE)
    daemon.stop()
    daemon.core.close()
    assert holding(daemon.core.folder) == []


def said(*turns: tuple[str, str]) -> list[NewTurn]:
    return [NewTurn(role=role, content=content) for role, content in turns]


def test_of_a_prompt_that_is_private_as_a_whole_neither_it_nor_its_answer_is_kept(client: Client) -> None:
    def observe(*turns: tuple[str, str], session: str = "s1") -> list[str]:
        done = client.call(Observe(turns=said(*turns), session=session))
        return [one.outcome for one in done.turns]

    assert observe(("user", WHOLE)) == ["skipped"]
    assert observe(("assistant", "The merger is announced on Friday by the board")) == ["skipped"]
    assert observe(("assistant", "The tests of the mailer pass again"), session="s2") == ["accepted"]
    mixed = [
        ("assistant", "The merger takes a year"), ("user", "Which port has the mailer?"),
        ("assistant", "The mailer is on 2525"), ("user", WHOLE), ("assistant", "The merger is off, says the board"),
    ]  # fmt: skip
    assert observe(*mixed) == ["skipped", "accepted", "accepted", "skipped", "skipped"]
    assert "merger" not in str(client.turns()) + str(client.turns(skipped=True).skipped)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_backfill_leaves_out_a_private_prompt_and_its_answer(daemon: "Daemon", client: Client, dry_run: bool) -> None:
    turns = [
        PastTurn(role=role, content=content, id=f"{number:032x}", created_at=5.0 + number)
        for number, (role, content) in enumerate(
            [("user", WHOLE), ("assistant", "The merger is off"), ("user", "Which port has the mailer?")]
        )
    ]
    done = client.call(Backfill(turns=turns, session="s", dry_run=dry_run))
    assert (done.taken, done.left_out) == (1, {"marked as private, or the answer to it": 2})
    assert daemon.core.store.find_problems() == []
