"""Facts that a former memoryd made by rules go before anybody is served them, and come back by undo."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from absent import needs
from configs import NO_JOBS, NO_MODEL
from conversing import Model, observe, run
from memoryd.client.protocol import EndSession, List
from memoryd.daemon.conversations import thinking
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.rule_facts import RULE_FACTS, are_left
from memoryd.daemon.store.store import FILE_NAME
from workbench import CountingEmbedder, Process, add, ask, found, running, undo

# Made by the version before this one: what was said in `acme` and in `team`, and six facts of it in each.
FORMER = Path(__file__).parents[2] / "data" / "databases" / "facts_by_rules.sqlite"
PINNED, CHANGED, VOTED_FOR = (
    "We decided to use Postgres 16 for the ledger.",
    "Backups must never leave the building 8.",
    "I prefer British spelling in all comments.",
)
LEFT_ALONE = {
    "The invoice export is due on 14 March.",
    "Our staging database listens on port 5433.",
    "We agreed to drop the old importer in May.",
}


def copy_former(data: Path) -> None:
    data.mkdir(exist_ok=True)
    shutil.copy(FORMER, data / FILE_NAME)
    (data / FILE_NAME).chmod(0o600)


@pytest.fixture
def former(folder: Path) -> Iterator[Core]:
    copy_former(folder / "data")
    with running(folder, CountingEmbedder()) as core:
        yield core


def facts(core: Core, namespace: str = "acme") -> set[str]:
    listed = ask(core, List(source=["extraction"], namespace=namespace, reach="exact", limit=100))
    return {memory.content for memory in listed}


@needs()
def test_what_nobody_has_touched_is_deleted_and_its_turn_is_found(former: Core) -> None:
    assert facts(former) == {PINNED, CHANGED, VOTED_FOR, *LEFT_ALONE}
    assert are_left(former)
    _, counts = run(former, RULE_FACTS, kind="rule-facts")
    assert counts == {"deleted": 3 + 6}
    assert facts(former) == {PINNED, CHANGED, VOTED_FOR}
    assert facts(former, "team") == set()
    assert "The harbour has three cranes." in found(former, "harbour cranes", namespace="acme")
    assert [text for text in found(former, "staging port", namespace="acme") if "5433" in text] == [
        "Our staging database listens on port 5433."
    ]
    assert former.store.find_problems() == []


def test_undo_brings_them_back_for_good(former: Core) -> None:
    operation, _ = run(former, RULE_FACTS, kind="rule-facts")
    undo(former, operation)
    assert facts(former) == {PINNED, CHANGED, VOTED_FOR, *LEFT_ALONE}
    assert not are_left(former)
    assert list(RULE_FACTS.plan(former, 0.0)) == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, 1203])
def test_any_number_of_them_goes_and_what_a_language_model_made_stays(core: Core, count: int) -> None:
    core.cognition.provider = Model()
    observe(core, "We decided to paint it green in 2027", session="s")
    ask(core, EndSession(session="s"))
    while thinking.step(core):
        pass
    for number in range(count):
        add(core, f"Fact {number}", source="extraction", metadata={"by": "rules"}, dedup=False, created_at=5.0)
    planned = list(RULE_FACTS.plan(core, 0.0))
    assert [step.action for step in planned] == ["delete"] * count + ["note"] * (count > 0)
    run(core, RULE_FACTS, planned, kind="rule-facts")
    assert facts(core, "") == {"We decided to paint it green in 2027"}


def test_the_daemon_deletes_them_before_it_serves_anybody(folder: Path) -> None:
    process: Any = Process(folder, NO_MODEL + NO_JOBS)
    copy_former(process.data)
    process.start()
    with process.client("acme") as client:
        left = {memory.content for memory in client.list(source="extraction", reach="exact")}
        assert left == {PINNED, CHANGED, VOTED_FOR}
        [job] = [job for job in client.jobs().jobs if job.name == "rule-facts"]
        assert job.last is not None
        assert (job.last.outcome, job.last.counts) == ("done", {"deleted": 9})
        assert job.last.operation is not None
        client.undo(job.last.operation, reach="all")
    assert process.stop() == 0
    process.start()
    with process.client("acme") as client:
        assert {memory.content for memory in client.list(source="extraction", reach="exact")} > LEFT_ALONE
    assert process.stop() == 0
