"""The judge: importance is set where the turn is, promoted turns get a summary; without a model too."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from conversing import FACTS, contents, judge, memories, observe, problems, ring
from memoryd.client.protocol import Operations
from memoryd.daemon.conversations import judging
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import Spoken
from workbench import LIMIT_S, Clock, CountingEmbedder, add, ask, found, no_model, running, undo, wait_until

LONG = (
    "The crawler stops at the first redirect. "
    "We decided to follow up to five redirects in the crawler from now on. "
    "That was asked for by the archive team, which loses pages otherwise. "
    "The redirects of the crawler are written to its log, so that the archive team can look at them later."
)


def test_a_judged_turn_in_l0_has_the_importance_of_the_rules(core: Core) -> None:
    observe(core, FACTS[0], "What is the weather like today?")
    judge(core)
    question, fact = core.active.list_turns(None)
    assert fact.importance >= 0.8
    assert question.importance < 0.5
    assert judging.count_waiting(core) == {}
    ring(core)


def test_a_judgement_lands_in_the_memory_that_the_turn_has_become(core: Core) -> None:
    observe(core, *FACTS[:21])
    [row] = memories(core)
    assert row.importance == 0.5
    judge(core)
    [row] = memories(core)
    assert row.importance >= 0.8


def test_a_turn_that_rephrases_a_memory_stays_beside_it(core: Core) -> None:
    add(core, "On Fridays we do not deploy the gateway.", "acme")
    observe(core, "We do not deploy the gateway on Fridays.", namespace="acme")
    judge(core)
    assert len(ring(core, "acme")) == 1
    assert problems(core) == []


def test_a_promoted_turn_has_its_vector_from_the_judge(folder: Path, clock: Clock) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder, clock=clock) as core:
        observe(core, *FACTS[:20])
        judge(core)
        assert sorted(embedder.texts) == sorted(FACTS[:20])
        observe(core, FACTS[20])
        assert core.embedding.active is not None
        assert not core.embedding.active.pending
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert embedder.texts.count(FACTS[0]) == 1
        assert embedder.texts[20:] == ["\n".join(FACTS[:3])]  # within its context: two vectors a turn in all
        assert FACTS[0] in found(core, FACTS[0])


def test_without_a_model_turns_are_rated_and_embedded_once_there_is_one(folder: Path, clock: Clock) -> None:
    said = ["We do not deploy the gateway on Fridays.", *FACTS[:59]]
    with running(folder, no_model, clock=clock, ready=False) as core:
        observe(core, *said)
        judge(core)
        assert judging.count_waiting(core) == {"embed": 20}  # those of L0: memories without a vector wait by themselves
        assert all(turn.importance != 0.5 for turn in core.active.list_turns(None))
        assert found(core, "gateway on Fridays")[0] == said[0]
        [promoted] = ask(core, Operations())
        undo(core, promoted.id)  # turns are in L0 again
        assert judging.count_waiting(core)["embed"] > 20
    with running(folder, CountingEmbedder(), clock=clock) as core:
        judge(core)
        wait_until(lambda: core.embedding.count_pending() == 0)
        for text in said:
            assert found(core, text, mode="dense")[0] == text
        assert judging.count_waiting(core) == {}


def test_a_text_that_cannot_be_embedded_does_not_hold_up_the_others(folder: Path, clock: Clock) -> None:
    with running(folder, CountingEmbedder(), clock=clock) as core:
        observe(core, "The poison of the dart frog is a decision of nature.", FACTS[0])
        judge(core)
        assert judging.count_waiting(core) == {}
        assert len(ring(core)) == 2


def test_a_promoted_turn_gets_its_most_central_sentence_as_summary_and_keeps_its_text(core: Core) -> None:
    observe(core, LONG, *FACTS[:20])
    judge(core)
    [row] = memories(core)
    assert row.content == LONG
    assert row.summary in LONG
    assert row.summary.count(".") == 1
    assert "five redirects" in row.summary


def test_a_summary_needs_no_model(folder: Path, clock: Clock) -> None:
    with running(folder, no_model, clock=clock, ready=False) as core:
        core.embedding.wait_settled(LIMIT_S)
        observe(core, "Sure, thanks! " + LONG, *FACTS[:20])
        judge(core)
        assert "five redirects" in memories(core)[0].summary


def test_a_summary_that_somebody_wrote_stays(core: Core) -> None:
    from workbench import update

    observe(core, LONG, *FACTS[:20])
    update(core, memories(core)[0].id, summary="Redirects.")
    judge(core)
    assert memories(core)[0].summary == "Redirects."


class Broken:
    """A provider that fails, as one over the network may."""

    name = "broken"

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        raise TimeoutError("no answer")

    def condense(self, content: str) -> str:
        raise TimeoutError("no answer")


def test_a_provider_that_fails_is_followed_by_the_rules(core: Core) -> None:
    core.cognition.provider = Broken()
    observe(core, LONG, *FACTS[:20])
    judge(core)
    assert memories(core)[0].importance > 0.5
    assert memories(core)[0].summary


def test_the_thread_judges_soon_after_an_observe_and_what_an_earlier_run_left(core: Core) -> None:
    observe(core, FACTS[0])
    judge_thread = Worker(core, extracts=False)
    judge_thread.start()
    try:
        wait_until(lambda: judging.count_waiting(core) == {})
        observe(core, FACTS[1])
        wait_until(lambda: judging.count_waiting(core) == {})
        assert all(turn.importance >= 0.8 for turn in core.active.list_turns(None))
    finally:
        judge_thread.close()


def test_the_thread_survives_an_error(core: Core, monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    calls: list[int] = []
    real = judging.step

    def fails_once(given: Core) -> bool:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("the disk hesitates")
        return real(given)

    monkeypatch.setattr(judging, "step", fails_once)
    observe(core, FACTS[0])
    judge_thread = Worker(core, extracts=False)
    judge_thread.start()
    try:
        wait_until(lambda: judging.count_waiting(core) == {})
    finally:
        judge_thread.close()


def test_each_turn_is_judged_once_whoever_asks(folder: Path, clock: Clock) -> None:
    import threading

    embedder = CountingEmbedder()
    with running(folder, embedder, clock=clock) as core:
        observe(core, *FACTS[:40])
        threads = [threading.Thread(target=judge, args=(core,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert judging.count_waiting(core) == {}
        assert len(contents(core)) == 20
        assert problems(core) == []
