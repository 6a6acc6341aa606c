"""Facts of conversations as memories beside their turns: known ones are evidence, contradictions are linked."""

from pathlib import Path
from typing import Any

import pytest

from conversing import Model, resting
from memoryd.client.protocol import EndSession, Get, List, NewTurn, Observe, Tiers
from memoryd.daemon.conversations import extracting, judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import caps
from memoryd.daemon.llm.provider import RULES, Fact
from memoryd.daemon.memories import reading
from memoryd.daemon.store import turns
from workbench import LIMIT_S, CountingEmbedder, add, ask, found, running, search, undo

DECIDED = "We decided to use Postgres 16 for the ledger."


@pytest.fixture
def core(core: Core) -> Core:
    core.cognition.provider = Model()
    return core


def talk(core: Core, *said: str, session: str = "s", namespace: str = "", role: str = "user") -> list[str]:
    """Observe turns and think about them at once."""
    given = [NewTurn(role=role, content=text) for text in said]
    call = Observe(namespace=namespace, session=session, turns=given)
    ids = ask(core, call).ids
    while judging.step(core):
        pass
    ask(core, EndSession(namespace=namespace, session=session))
    while extracting.step(core):
        pass
    return ids


def facts(core: Core, **options: Any) -> list[Any]:
    return list(ask(core, List(source=["extraction"], sort="created", ascending=True, **options)))


def flows(core: Core) -> dict[str, int]:
    return ask(core, Tiers()).flows


def test_a_fact_has_its_type_its_confidence_and_where_it_comes_from(core: Core) -> None:
    [id] = talk(core, DECIDED, namespace="acme")
    [fact] = facts(core)
    assert (fact.content, fact.type, fact.namespace) == (DECIDED, "decision", "acme")
    assert fact.importance == fact.metadata["confidence"] == 0.9
    assert (fact.metadata["turns"], fact.metadata["session"], fact.metadata["by"]) == ([id], "s", "model")
    assert flows(core)["facts: kept"] == 1


def test_undo_takes_the_facts_back_and_leaves_the_turns(core: Core) -> None:
    [id] = talk(core, DECIDED)
    [operation] = [one.id for one in ask(core, _operations()) if one.kind == "job:extract"]
    undo(core, operation)
    assert facts(core) == []
    assert [turn.key for turn in core.active.list_turns(None)] == [id]
    assert core.store.find_problems() == []
    with core.store.reading() as connection:
        assert turns.check_conservation(connection) == []


def _operations() -> Any:
    from memoryd.client.protocol import Operations

    return Operations()


def test_a_promoted_turn_stays_beside_its_fact(core: Core) -> None:
    given = [NewTurn(role="user", content=DECIDED)]
    ask(core, Observe(session="s", turns=given))
    many = [NewTurn(role="user", content=f"Plain remark number {number} about nothing") for number in range(25)]
    ask(core, Observe(session="t", turns=many))
    assert [one.type for one in ask(core, List(type=["turn"])) if one.content == DECIDED] == ["turn"]
    ask(core, EndSession(session="s"))
    extracting.step(core)
    kinds = [one.type for one in ask(core, List(limit=100)) if one.content == DECIDED]
    assert sorted(kinds) == ["decision", "turn"]
    with core.store.reading() as connection:
        assert turns.check_conservation(connection) == []


def test_what_is_known_is_evidence_whatever_its_type(core: Core, clock: Any) -> None:
    known = add(core, "We decided to use Postgres 16 for the  ledger", type="codebase-knowledge").id
    clock.advance(5)
    talk(core, f"{DECIDED} ")
    assert facts(core) == []
    memory = reading.get(core, Get(id=known))
    assert (memory.content, memory.access_count) == ("We decided to use Postgres 16 for the  ledger", 1)
    assert flows(core)["facts: known"] == 1


def test_a_near_repetition_is_evidence_and_what_disagrees_is_linked(core: Core) -> None:
    decided = "we have decided to use nothing but Postgres"
    old = add(core, f"For the new ledger of the whole company {decided} 16", type="note").id
    core.cognition.provider = Model(
        Fact(f"For a new ledger of the whole company {decided} 16", "decision", 0.9, (0,)),
        Fact(f"For the new ledger of the whole company {decided} 17", "decision", 0.9, (0,)),
    )
    talk(core, "Something about the databases of the ledger, and more words")
    [fact] = facts(core)
    assert "17" in fact.content
    assert fact.contradicts == [old]


def test_a_correction_is_linked_with_what_it_corrects(core: Core) -> None:
    old = add(core, "The invoice export is due on 14 March for finance", type="deadline").id
    core.cognition.provider = Model(
        Fact("The invoice export is moved on to 21 March for finance", "correction", 0.9, (0,))
    )
    talk(core, "Something about the export of the invoices, and more words")
    [fact] = facts(core)
    assert fact.contradicts == [old]


def test_what_a_session_was_told_is_no_news(core: Core) -> None:
    add(core, DECIDED, namespace="acme")
    search(core, "ledger database", namespace="acme/api", session="s")
    core.effects.flush()
    core.cognition.provider = Model(Fact(DECIDED, "decision", 0.9, (0,)))
    talk(core, f"As you told me: great. {DECIDED}", namespace="acme/api")
    assert facts(core) == []


def test_below_the_threshold_nothing_is_kept(core: Core) -> None:
    core.cognition.provider = Model(
        Fact("The sky over the harbour was red", "fact", 0.69, (0,)),
        Fact("The harbour has three cranes", "fact", 0.7, (0,)),
        Fact("A nul \0 byte", "fact", 0.9, (0,)),
        Fact("long " * 400, "fact", 0.9, (0,)),
    )
    talk(core, "Something about the harbour and its three cranes")
    assert [fact.content for fact in facts(core)] == ["The harbour has three cranes"]


def test_without_a_language_model_turns_become_no_facts_and_are_found(core: Core) -> None:
    core.cognition.provider = RULES
    talk(core, DECIDED, "Backups must never leave the building.", "I prefer British spelling in comments.")
    assert facts(core) == []
    assert "facts: kept" not in flows(core)
    assert DECIDED in found(core, "which database for the ledger")


def test_turns_that_waited_for_a_language_model_that_is_gone_wait_no_longer(core: Core) -> None:
    ask(core, Observe(session="s", turns=[NewTurn(role="user", content=DECIDED)]))
    core.cognition.provider = RULES
    ask(core, EndSession(session="s"))
    while extracting.step(core):
        pass
    assert (facts(core), resting(ask(core, Tiers()))) == ([], {})


def test_facts_over_the_limit_go_the_weakest_first_and_corrections_last(
    folder: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "MAX_FACTS", 3)
    with running(folder, CountingEmbedder(), clock=clock) as core:
        add(core, "Said on purpose", importance=0.0)
        for number, (kind, confidence) in enumerate(
            [("correction", 0.7), ("fact", 0.9), ("fact", 0.8), ("fact", 0.95), ("fact", 0.75)]
        ):
            add(core, f"Extracted number {number}", type=kind, source="extraction", metadata={"confidence": confidence})
        planned = list(caps.plan(core, clock()))
        assert [(step.action, step.reason.split(";")[0]) for step in planned] == [
            ("delete", "the root has 5 extracted facts, its limit is 3")
        ] * 2
        from memoryd.daemon.store import history

        def job(transaction: Any) -> Any:
            operation = history.begin(transaction.connection, "job:caps", "", clock())
            return operation, caps.apply(core, transaction, planned, operation)

        operation, counts = core.store.write(job).result(LIMIT_S)
        assert counts == {"deleted": 2}
        assert sorted(fact.content[-1] for fact in facts(core)) == ["0", "1", "3"]
        undo(core, operation)
        assert len(facts(core)) == 5


def test_old_facts_fade_before_new_ones_of_the_same_confidence(
    folder: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "MAX_FACTS", 1)
    with running(folder, CountingEmbedder(), clock=clock) as core:
        add(core, "The old one", source="extraction", metadata={"confidence": 0.9})
        clock.advance(90 * 86_400)
        new = add(core, "Another fact entirely", source="extraction", metadata={"confidence": 0.8}).id
        [step] = caps.plan(core, clock())
        assert step.target != new
