"""The extraction queue: due after quiet, coalesced, bounded, finished by one transaction, kept at a stop."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conversing import Model, resting
from memoryd.client.protocol import EndSession, List, NewTurn, Observe, Progress, Tiers
from memoryd.daemon.conversations import extracting, judging, learning
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import Fact, Spoken
from memoryd.daemon.store import extraction
from memoryd.daemon.store.extraction import Conversation
from workbench import LIMIT_S, CountingEmbedder, ask, delete, running, wait_until

DECIDED = "We decided to use Postgres 16 for the ledger."
RULE = "Backups must never leave the building 7."


class Recorder(Model):
    """A language model's stand-in with a record of what it was given; may be told to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.closed = False

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        self.given.append([content for _, content in turns])
        self.asked.set()
        assert self.gate.wait(LIMIT_S)
        if self.closed:
            raise RuntimeError("it is closed")
        return super().extract(turns)

    def close(self) -> None:
        self.closed = True
        self.gate.set()


@pytest.fixture
def recorder(core: Core) -> Recorder:
    made = Recorder()
    core.cognition.provider = made
    return made


@pytest.fixture
def core(core: Core) -> Core:
    core.cognition.provider = Model()
    return core


@contextmanager
def while_it_thinks(core: Core, recorder: Recorder) -> Iterator[None]:
    """Let a thread think; its provider answers when the block ends."""
    recorder.gate.clear()
    recorder.asked.clear()
    thread = threading.Thread(target=think, args=(core,))
    thread.start()
    assert recorder.asked.wait(LIMIT_S)
    try:
        yield
    finally:
        recorder.gate.set()
        thread.join(LIMIT_S)


def observe(core: Core, *said: str, session: str = "", namespace: str = "", role: str = "user") -> list[str]:
    turns = [NewTurn(role=role, content=text) for text in said]
    return ask(core, Observe(namespace=namespace, session=session, turns=turns)).ids


def think(core: Core) -> int:
    steps = 0
    while extracting.step(core):
        steps += 1
    return steps


def extracted(core: Core) -> list[str]:
    return [memory.content for memory in ask(core, List(source=["extraction"], sort="created", ascending=True))]


def waiting(core: Core) -> dict[str, int]:
    return resting(ask(core, Tiers()))


def test_a_conversation_is_thought_about_once_after_it_rests(core: Core, clock: Any, recorder: Recorder) -> None:
    observe(core, DECIDED)
    clock.advance(29)
    observe(core, RULE)
    clock.advance(29)
    assert think(core) == 0
    clock.advance(1)
    assert think(core) == 1
    assert recorder.given == [[DECIDED, RULE]]
    assert extracted(core) == [DECIDED, RULE]
    clock.advance(1000)
    assert think(core) == 0


def test_what_was_said_under_a_clock_that_was_ahead_is_thought_about_when_it_is_right(core: Core, clock: Any) -> None:
    clock.jump(400 * 86_400.0)
    observe(core, DECIDED, session="s")
    clock.jump(-400 * 86_400.0)
    assert think(core) >= 1
    assert extracted(core) == [DECIDED]


def test_turns_that_come_while_it_thinks_are_thought_about_next(core: Core, clock: Any, recorder: Recorder) -> None:
    observe(core, DECIDED)
    clock.advance(31)
    with while_it_thinks(core, recorder):
        observe(core, RULE)
    assert waiting(core) == {"extract": 1}
    assert think(core) == 0
    clock.advance(31)
    assert think(core) == 1
    assert recorder.given == [[DECIDED], [RULE]]


def test_what_is_deleted_while_it_thinks_is_not_kept(core: Core, clock: Any, recorder: Recorder) -> None:
    [id] = observe(core, DECIDED)
    clock.advance(31)
    with while_it_thinks(core, recorder):
        delete(core, id)
    assert (extracted(core), waiting(core)) == ([], {})


def test_a_failure_puts_it_off_and_after_several_it_is_given_up_and_counted(
    core: Core, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setitem(extracting.KINDS, "extract", extracting.KINDS["extract"]._replace(run=fails))
    observe(core, DECIDED)
    clock.advance(31)
    for attempt in range(4):
        assert think(core) == 1
        assert think(core) == 0
        observe(core, f"This is the remark number {attempt} about it")  # does not bring it forward
        clock.advance(59 * 2**attempt)
        assert think(core) == 0
        clock.advance(2**attempt)
    assert waiting(core) == {"extract": 5}
    assert think(core) == 1
    assert waiting(core) == {}
    with core.store.reading() as connection:
        [[gone]] = connection.execute("SELECT count FROM flows WHERE kind = 'extract: given up'").fetchall()
    assert gone == 5


def test_a_conversation_keeps_its_newest_turns_and_counts_the_others(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "MAX_TURNS", 20)
    keys = [
        key for number in range(25) for key in observe(core, f"We decided on the colour number {number}", session="s")
    ]
    with core.store.reading() as connection:
        number = core.store.namespaces.find_number("")
        assert number is not None
        left = extraction.read_turns(connection, Conversation("extract", number, "s"), 10**9)
        flows = dict(connection.execute("SELECT kind, count FROM flows").fetchall())  # type: ignore[call-overload]
    assert [one.key for one in left] == keys[5:]
    assert (flows["extract: given up"], flows["summary: given up"]) == (5, 5)


def test_all_conversations_together_are_bounded(core: Core, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "MAX_WAITING", 10)
    for number in range(25):
        observe(core, f"We decided on the colour number {number}", namespace=f"n{number}")
    assert waiting(core) == {"extract": 10}
    with core.store.reading() as connection:
        [[rows]] = connection.execute("SELECT count(*) FROM extraction WHERE namespace IS NOT NULL").fetchall()
        [[gone]] = connection.execute("SELECT sum(count) FROM flows WHERE kind = 'extract: given up'").fetchall()
    assert (rows, gone) == (10, 15)


def test_the_queue_outlives_a_restart(folder: Path, clock: Any) -> None:
    with running(folder, CountingEmbedder(), clock=clock) as core:
        core.cognition.provider = Model()
        observe(core, DECIDED)
    clock.advance(31)
    with running(folder, CountingEmbedder(), clock=clock) as core:
        core.cognition.provider = Model()
        assert think(core) == 1
        assert extracted(core) == [DECIDED]


def test_a_thread_works_it_off_and_a_stop_leaves_what_is_not_due(core: Core, clock: Any) -> None:
    worker = Worker(core)
    worker.start()
    observe(core, DECIDED)
    clock.advance(31)
    core.cognition.wake.set()
    wait_until(lambda: extracted(core) == [DECIDED])
    observe(core, RULE, session="s")
    worker.close()
    assert extracted(core) == [DECIDED]
    assert waiting(core) == {"extract": 1, "summary": 1}


def test_a_stop_does_not_wait_for_a_provider_that_hangs_and_counts_no_failure(
    core: Core, clock: Any, recorder: Recorder
) -> None:
    recorder.gate.clear()
    observe(core, DECIDED)
    clock.advance(31)
    worker = Worker(core)
    worker.start()
    assert recorder.asked.wait(LIMIT_S)
    observe(core, RULE)
    core.end_calls()
    worker.close()
    assert (extracted(core), waiting(core)) == ([], {"extract": 2})
    with core.store.reading() as connection:
        due = extraction.find_next(connection, clock(), 1e9)
    assert due is not None
    assert due.attempts == 0


def test_an_ended_session_is_thought_about_at_once(core: Core) -> None:
    observe(core, DECIDED, RULE, "Our staging database listens on port 5433.", session="s")
    assert think(core) == 0
    assert ask(core, EndSession(session="s")).waiting == ["extract", "summary"]
    assert think(core) == 2
    assert ask(core, EndSession(session="s")).waiting == []
    assert ask(core, EndSession(session="s", namespace="nowhere")).waiting == []


def test_who_waits_for_the_end_of_a_session_finds_its_facts(core: Core) -> None:
    observe(core, DECIDED, RULE, session="s")
    told = list[Progress]()
    ended = extracting.end(core, EndSession(session="s", wait=True), told.append)
    wait_until(lambda: bool(told))
    assert not ended.done()
    assert think(core) == 2
    assert ended.result(LIMIT_S).waiting == []
    assert len(extracted(core)) == 2
    assert (told[0].done, told[0].total) == (0, 4)


def test_a_long_conversation_is_thought_about_in_portions(core: Core, clock: Any, recorder: Recorder) -> None:
    said = [f"We decided on colour {number}. " + "It is so. " * 400 for number in range(8)]
    observe(core, *said)
    clock.advance(31)
    assert think(core) > 1
    assert [text for given in recorder.given for text in given] == said
    assert waiting(core) == {}
    assert learning.KIND in extracting.KINDS


def test_facts_have_their_turn_while_turns_come_without_end(core: Core, clock: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(judging, "step_with_model", lambda core: True)
    observe(core, DECIDED)
    clock.advance(31)
    worker = Worker(core)
    worker.start()
    wait_until(lambda: bool(extracted(core)))
    worker.close()
    assert extracted(core) == [DECIDED]
