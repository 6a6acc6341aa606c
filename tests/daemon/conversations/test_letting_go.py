"""Turns that hold nothing lasting fade once they were thought about, wherever they are; undo brings them back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversing import contents, judge, observe, problems, ring, skips
from memoryd.client.protocol import Consolidate, EndSession, Operations, Update
from memoryd.daemon.conversations import judging, promoting, thinking
from memoryd.daemon.conversations.letting_go import FADED, NOTHING_LASTING
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import consolidating
from memoryd.daemon.memories import changing, reading
from memoryd.daemon.store import history, turns
from workbench import LIMIT_S, Clock, CountingEmbedder, running, undo

CHAT = "Three people called in sick, the usual chaos."
ANSWER = "Oh no, that is a pity for them."
DECIDED = "We decided to use Postgres 16 for the ledger."


@pytest.fixture
def clock() -> Any:
    return Clock()


@pytest.fixture
def core(folder: Path, clock: Any) -> Iterator[Core]:
    with running(folder, CountingEmbedder(), clock=clock) as made:
        yield made


def think(core: Core) -> None:
    thinking.end(core, EndSession(namespace="", session="s")).result(LIMIT_S)
    while thinking.step(core):
        pass


def promote(core: Core) -> None:
    """Empty L0 as it is when it overflows."""

    def job(transaction: Any) -> None:
        promoting.leave(core, transaction, turns.everything(transaction.connection))

    core.store.write(job).result(LIMIT_S)


def importances(core: Core) -> list[float]:
    return [turn.importance for turn in reversed(core.active.of(None))]


def turns_kept(core: Core) -> list[str]:
    return [content for content in contents(core) if "Session" not in content]


def talk(core: Core) -> list[str]:
    ids = observe(core, CHAT, session="s").ids
    ids += observe(core, ANSWER, session="s", role="assistant").ids
    judge(core)
    return ids


def test_in_l0_such_a_turn_loses_its_importance_and_stays_until_it_is_pushed_out(core: Core) -> None:
    talk(core)
    assert min(importances(core)) >= 0.5
    think(core)
    assert ring(core) == [CHAT, ANSWER]
    assert importances(core) == [FADED, FADED]
    promote(core)
    assert turns_kept(core) == []
    assert problems(core) == []


def test_a_rating_that_comes_after_the_thought_does_not_lift_it(core: Core) -> None:
    observe(core, CHAT, session="s")
    think(core)
    judge(core)
    assert importances(core) == [FADED]


def test_one_that_was_promoted_before_leaves_and_is_listed(core: Core) -> None:
    talk(core)
    promote(core)
    assert turns_kept(core) == [CHAT, ANSWER]
    think(core)
    assert turns_kept(core) == []
    assert sorted(skips(core), reverse=True) == [(CHAT, NOTHING_LASTING), (ANSWER, NOTHING_LASTING)]
    assert problems(core) == []


def test_a_question_and_its_answer_that_became_one_memory_leave_together(core: Core) -> None:
    talk(core)
    tools = consolidating.Tools(lambda _: None, lambda: None)
    consolidating.consolidate(core, Consolidate(), tools)
    assert turns_kept(core) == [f"User: {CHAT}\nAssistant: {ANSWER}"]
    while thinking.step(core):  # a consolidation makes it due
        pass
    assert turns_kept(core) == []
    assert problems(core) == []


def test_undo_brings_promoted_ones_back_as_they_were(core: Core) -> None:
    talk(core)
    promote(core)
    think(core)
    [operation] = [one.id for one in reading.operations(core, Operations()) if one.kind == f"{history.JOB}extract"]
    undo(core, operation)
    assert turns_kept(core) == [CHAT, ANSWER]
    assert problems(core) == []


@pytest.mark.parametrize("change", [{"pinned": True}, {"content": "Three people called in sick on 4 May."}])
def test_what_somebody_pinned_or_rewrote_stays(core: Core, clock: Any, change: dict[str, Any]) -> None:
    [id, _] = talk(core)
    promote(core)
    clock.advance(5)
    changing.update(core, Update(id=id, **change)).result(LIMIT_S)
    think(core)
    assert [content[:12] for content in turns_kept(core)] == [CHAT[:12]]


def test_without_a_model_nothing_fades(folder: Path) -> None:
    with running(folder, CountingEmbedder(), clock=Clock()) as core:
        talk(core)
        core.embedding.text_vectors = lambda texts: [None] * len(texts)  # type: ignore[method-assign]
        think(core)
        assert min(importances(core)) >= 0.5


def test_a_turn_with_a_fact_and_small_talk_is_not_promoted_beside_its_fact(core: Core) -> None:
    observe(core, f"{DECIDED} {CHAT}", session="s")
    judge(core)
    think(core)
    assert turns_kept(core) == [DECIDED]
    promote(core)
    assert turns_kept(core) == [DECIDED]
    while judging.step(core):
        pass
    assert problems(core) == []
