"""What was done, session by session; and a memory in its conversation."""

from typing import Any

import pytest

from conversing import FACTS, in_each_place, observe, settle
from each import each
from memoryd.client.errors import NotFound
from memoryd.client.protocol import CompleteTask, EndSession, Get, GetLog, NewTurn
from memoryd.daemon.conversations import extracting
from memoryd.daemon.core.core import Core
from workbench import Clock, add, ask


def said(role: str, content: str, **fields: Any) -> NewTurn:
    return NewTurn(role=role, content=content, **fields)


def work(core: Core, clock: Clock) -> None:
    """Two sessions: one with files, an outcome and a summary, in L0 or beyond; and one of a day later."""
    observe(core, said("user", "Make the importer stream its orders."), session="a", namespace="acme")
    clock.advance(60)
    files = ["/src/importer.py", "/src/orders.py"]
    observe(core, said("assistant", "Implemented streaming, 220 MB.", files=files), session="a", namespace="acme")
    observe(core, said("user", "We decided that the limit of the importer is 300 MB."), session="a", namespace="acme")
    done = CompleteTask(outcome="completed", output="It streams.", task="importer", session="a", namespace="acme")
    ask(core, done)
    ask(core, EndSession(session="a", namespace="acme"))
    while extracting.step(core):
        pass
    clock.advance(86_400)
    observe(core, said("user", "Rename the ledger.", files=["/src/ledger.py"]), session="b", namespace="acme")
    observe(core, "A remark of nobody in particular", namespace="acme")


@in_each_place
def test_sessions_are_told_latest_first_with_what_they_came_to(core: Core, clock: Clock, place: str) -> None:
    began = clock.now
    work(core, clock)
    settle(core, place)
    late, early = ask(core, GetLog(namespace="acme"))
    assert (late.session, late.turns, late.asked, late.files) == ("b", 1, "Rename the ledger.", ["/src/ledger.py"])
    assert (early.session, early.namespace, early.turns, early.began_at) == ("a", "acme", 3, began)
    assert early.asked == "Make the importer stream its orders."
    assert early.files == ["/src/importer.py", "/src/orders.py"]
    assert [(one.outcome, one.content) for one in early.outcomes] == [("completed", "Completed: importer\nIt streams.")]
    assert early.summary.splitlines()[:2] == [f"Asked: {early.asked}", "Answer: Implemented streaming, 220 MB."]


@pytest.fixture
def worked(core: Core, clock: Clock, place: str) -> Core:
    work(core, clock)
    settle(core, place)
    return core


@in_each_place
@each(
    ("asked", "expected"),
    [
        ({"path": "/src/importer.py"}, ["a"]),
        ({"path": "importer.py"}, ["a"]),
        ({"path": "./orders.py"}, ["a"]),
        ({"path": "porter.py"}, []),
        ({"session": "b"}, ["b"]),
        ({"session": ""}, []),
        ({"limit": 1}, ["b"]),
        ({"namespace": "other"}, []),
        ({"namespace": "acme/api"}, ["b", "a"]),
        ({"namespace": "acme/api", "reach": "exact"}, []),
    ],
)
def test_the_log_can_be_narrowed(worked: Core, place: str, asked: dict[str, Any], expected: list[str]) -> None:
    assert [one.session for one in ask(worked, GetLog(**{"namespace": "acme", **asked}))] == expected


def test_a_turn_is_read_in_its_conversation_wherever_its_turns_are_by_now(core: Core) -> None:
    ids = []
    for number in range(30):
        ids += observe(core, FACTS[number], session="s").ids
        observe(core, FACTS[30 + number // 2] + f" Number {number}.", session="another")

    def around(id: str, count: int) -> list[str]:
        return [turn.content for turn in ask(core, Get(id=id, around=count)).around]

    assert around(ids[15], 2) == list(FACTS[13:18])
    assert around(ids[20], 3) == list(FACTS[17:24])
    assert around(ids[0], 2) == list(FACTS[:3])
    assert around(ids[29], 2) == list(FACTS[27:30])
    assert around(ids[7], 0) == [FACTS[7]]
    assert around(ids[7], 200) == list(FACTS[:30])
    fact = add(core, "What was decided", source="extraction", metadata={"turns": [ids[4]]}).id
    assert around(fact, 1) == list(FACTS[3:6])
    assert around(add(core, "Said on purpose").id, 3) == []
    with pytest.raises(NotFound):
        around("0" * 32, 1)


def test_a_turn_that_was_corrected_was_said(core: Core) -> None:
    said_id = observe(core, said("user", "Rename the ledger.", files=["/src/ledger.py"]), session="b").ids[0]
    observe(core, FACTS[0], session="b")
    settle(core, "stored")
    add(core, "Do not rename the ledger.", type="correction", supersedes=said_id)
    [session] = ask(core, GetLog(path="ledger.py"))
    assert (session.turns, session.asked) == (2, "Rename the ledger.")


def test_a_session_is_asked_for_by_its_name_or_without_one_of_that_name_by_a_beginning(core: Core) -> None:
    for number, session in enumerate(("abcd", "abcde", "b%d%")):
        observe(core, FACTS[number], session=session)
    observe(core, FACTS[3], session="another one")
    assert [one.session for one in ask(core, GetLog(session="anot"))] == ["another one"]
    assert [
        sorted(one.session for one in ask(core, GetLog(session=name))) for name in ("abcd", "abc", "b%d%", "%%%%")
    ] == [
        ["abcd"],
        [],
        ["b%d%"],
        [],
    ]
