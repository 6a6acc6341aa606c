"""What tests of conversations share: observing on a core, judging at once, jobs in one slice, what is where."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from memoryd.client.protocol import NewTurn, Observe, Observed, TierReport
from memoryd.daemon.conversations import judging, promoting
from memoryd.daemon.conversations.promoting import PROMOTE
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.llm.provider import Fact, RulesProvider, Spoken
from memoryd.daemon.store import history, rows, turns
from memoryd.daemon.store.rows import Row
from workbench import LIMIT_S, ask, wait_until

HOUR_S, DAY_S = 3600.0, 86400.0

# Sentences of which each is important enough, and none like another.
FACTS = tuple(
    f"We decided that the {thing} of the {place} is {number}."
    for number, (thing, place) in enumerate(
        [(thing, place) for thing in ("port", "owner", "limit", "colour", "budget", "name") for place in
         ("gateway", "ledger", "crawler", "archive", "mailer", "parser", "router", "cache", "index", "forum")],
        start=100,
    )
)  # fmt: skip


class Model(RulesProvider):
    """Stands for a language model: it gives the facts it is told to, by default each turn of a user as a decision."""

    name = "model"

    def __init__(self, *facts: Fact) -> None:
        self.facts = list(facts)

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        said = [Fact(content, "decision", 0.9, (at,)) for at, (role, content) in enumerate(turns) if role == "user"]
        return self.facts or said


def observe(core: Core, *said: str | NewTurn, namespace: str = "", session: str = "", role: str = "user") -> Observed:
    given = [turn if isinstance(turn, NewTurn) else NewTurn(role=role, content=turn) for turn in said]
    call = Observe(turns=given, namespace=namespace, session=session)
    return ask(core, call)


def talk(core: Core, question: str, answer: str, **options: Any) -> Observed:
    return observe(core, NewTurn(role="user", content=question), NewTurn(role="assistant", content=answer), **options)


def judge(core: Core) -> None:
    """Judge all that can be judged now."""
    while judging.step(core):
        pass


def run(
    core: Core, work: Work, planned: Iterable[Step] | None = None, kind: str = "sweep"
) -> tuple[str, dict[str, int]]:
    """Apply a plan, by default that of now, in one slice; return the operation and the counts."""
    steps = list(work.plan(core, core.clock()) if planned is None else planned)

    def job(transaction: Any) -> tuple[str, dict[str, int]]:
        operation = history.begin(transaction.connection, history.JOB + kind, "", core.clock())
        return operation, dict(work.apply(core, transaction, steps, operation))

    return core.store.write(job).result(LIMIT_S)


in_each_place = pytest.mark.parametrize("place", ["L0", "stored"])


def settle(core: Core, place: str) -> None:
    """Judge all that was said; bring it to one of these places, and wait until it can be found."""
    judge(core)
    if place == "stored":
        run(core, PROMOTE, promoting.plan_steps(core, core.active.fill(), "asked for"), kind="promote")
    wait_until(lambda: core.embedding.count_pending() == 0)


def ring(core: Core, namespace: str = "") -> list[str]:
    """Return the contents of L0, oldest first; what RAM holds must be what is on disk."""
    number = core.store.namespaces.find_number(namespace)
    with core.store.reading() as connection:
        stored = turns.read_ring(connection, number if number is not None else -1)
    held = [turn for turn in reversed(core.active.list_turns(None)) if turn.namespace == number]
    assert held == stored
    return [turn.content for turn in stored]


def memories(core: Core, tier: str | None = None) -> list[Row]:
    with core.store.reading() as connection:
        return rows.select(connection, "?1 IS NULL OR m.tier = ?1 ORDER BY m.row", (tier,))


def contents(core: Core, tier: str | None = None) -> list[str]:
    return [row.content for row in memories(core, tier)]


def flows(core: Core, namespace: str = "") -> dict[str, int]:
    number = core.store.namespaces.find_number(namespace)
    assert number is not None
    with core.store.reading() as connection:
        return turns.read_flows(connection, f"m.namespace = {number}").get(number, {})


def skips(core: Core) -> list[tuple[str, str]]:
    with core.store.reading() as connection:
        return [(skip.content, skip.reason) for skip in turns.read_skipped(connection, "TRUE", 1000)]


def problems(core: Core) -> list[str]:
    with core.store.reading() as connection:
        return turns.check_conservation(connection)


def everything(core: Core) -> tuple[list[Any], list[Any], list[Any]]:
    """Return all of `memories`, `turns` and `links`, to compare the states before and after an undo."""
    with core.store.reading() as connection:
        return (
            rows.select(connection, "TRUE ORDER BY m.row", ()),
            turns.read_all(connection),
            connection.execute("SELECT * FROM links ORDER BY 1, 2, 3").fetchall(),
        )


def resting(report: TierReport) -> dict[str, int]:
    """Return how many turns wait for their conversation to rest, by task."""
    return report.resting
