"""Summaries of sessions: made when a session rests or ends, replaced by the next; here without a language model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Get, List, NewTurn, Observe, Operations
from memoryd.daemon.config import CognitionConfig, Config
from memoryd.daemon.conversations import extracting, summarising
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import rating
from memoryd.daemon.memories import reading
from memoryd.daemon.store import extraction, turns
from workbench import LIMIT_S, CountingEmbedder, ask, running, undo

SAID = [
    "Why are some customers charged twice?",
    "We decided to use Postgres 16 for the ledger.",
    "The double charges were caused by the retry middleware.",
    "Thanks a lot, that was great!",
]


@pytest.fixture
def core(folder: Path, clock: Any) -> Iterator[Core]:
    with running(
        folder, CountingEmbedder(), clock=clock, config=Config(cognition=CognitionConfig(extract=False))
    ) as made:
        yield made


ASKED = f"Asked: {SAID[0]}"
ANSWERS = [
    "I moved the ledger to Postgres 16, and the retry middleware checks the id of a charge first.",
    "The tests of the ledger run against Postgres 16 as well, and all of them pass on the new server.",
]


def observe(core: Core, *said: str, session: str = "work-1", namespace: str = "") -> None:
    said_now = [NewTurn(role="user", content=text) for text in said]
    ask(core, Observe(namespace=namespace, session=session, turns=said_now))


def answer(core: Core, text: str, *files: str, namespace: str = "") -> str:
    turn = NewTurn(role="assistant", content=text, files=list(files))
    return str(ask(core, Observe(namespace=namespace, session="work-1", turns=[turn])).turns[0].id)


def think(core: Core) -> None:
    while extracting.step(core):
        pass


def notes(core: Core, **options: Any) -> list[Any]:
    return list(ask(core, List(source=["session_summary"], sort="created", ascending=True, **options)))


def test_a_session_is_summed_up_once_it_was_quiet_for_long(core: Core, clock: Any) -> None:
    observe(core, *SAID, namespace="acme")
    answer(core, ANSWERS[0], "/shop/ledger.py", "/shop/retry.py", namespace="acme")
    clock.advance(599)
    think(core)
    assert notes(core) == []
    clock.advance(2)
    think(core)
    [note] = notes(core)
    assert note.content.splitlines() == [
        "Session work-1, 2027-01-15:",
        ASKED,
        f"Answer: {ANSWERS[0]}",
        "Files: /shop/ledger.py, /shop/retry.py",
    ]
    assert (note.type, note.namespace) == ("note", "acme")
    assert note.metadata == {"session": "work-1", "by": "rules", "turns": 5}
    assert note.expires_at is None


def test_a_summary_has_the_date_of_its_session_however_late_it_is_made(core: Core, clock: Any) -> None:
    began = clock()
    observe(core, *SAID)
    clock.advance(40 * 86_400.0)
    think(core)
    [note] = notes(core)
    assert (note.created_at, note.content.splitlines()[0]) == (began, "Session work-1, 2027-01-15:")
    observe(core, "From now on Priya Nair reviews all changes to payments.")
    said_at = clock()
    clock.advance(86_400.0)
    think(core)
    [note] = notes(core)
    assert (note.created_at, note.content.splitlines()[0]) == (said_at, "Session work-1, 2027-02-24:")


def test_the_next_summary_of_a_session_replaces_the_first_and_keeps_what_was_asked(core: Core, clock: Any) -> None:
    observe(core, *SAID)
    answer(core, ANSWERS[0], "/shop/ledger.py")
    clock.advance(601)
    think(core)
    first = [ASKED, f"Answer: {ANSWERS[0]}", "Files: /shop/ledger.py"]
    assert notes(core)[0].content.splitlines()[1:] == first
    observe(core, "From now on Priya Nair reviews all changes to payments.")
    answer(core, ANSWERS[1], "/shop/test_ledger.py", "/shop/ledger.py")
    clock.advance(601)
    think(core)
    [note] = notes(core)
    assert note.content.splitlines()[1:] == [
        ASKED,
        f"Answer: {ANSWERS[1]}",
        "Files: /shop/ledger.py, /shop/test_ledger.py",
    ]
    assert len(notes(core, all_states=True)) == 2
    [latest, *_] = [one for one in ask(core, Operations()) if one.kind == "job:summary"]
    undo(core, latest.id)
    [note] = notes(core)
    assert note.content.splitlines()[1:] == first
    assert reading.get(core, Get(id=note.id)).superseded_by is None


def test_what_an_agent_answered_to_a_program_is_in_no_summary(core: Core, clock: Any) -> None:
    observe(core, *SAID)
    answer(core, ANSWERS[0])
    to_program = answer(core, ANSWERS[1])
    core.store.write(lambda transaction: turns.rate(transaction.connection, to_program, rating.SMALL_TALK)).result(
        LIMIT_S
    )
    clock.advance(601)
    think(core)
    assert notes(core)[0].content.splitlines()[1:] == [ASKED, f"Answer: {ANSWERS[0]}"]


def test_a_session_of_few_turns_has_no_summary(core: Core, clock: Any) -> None:
    observe(core, *SAID[1:3])
    clock.advance(601)
    think(core)
    assert notes(core) == []


def test_what_was_deleted_while_it_was_summed_up_is_in_no_summary(core: Core, clock: Any) -> None:
    observe(core, *SAID)
    with core.store.reading() as connection:
        due = extraction.find_next(connection, core.clock(), 0.0)
        assert due is not None
        said = extraction.read_turns(connection, due.conversation, 10_000)
    finish = summarising.summarise(core, due.conversation, said)
    with pytest.raises(Conflict):
        core.store.write(lambda transaction: finish(transaction, said[1:])).result(LIMIT_S)
    assert notes(core) == []
