"""What became of what sessions were told: used, said again, corrected; by project and month."""

from typing import Any

import pytest

from memoryd.client.protocol import GetUnasked, ListGiven, MeasureUsefulness, NewTurn, Observe, Turns, UsefulnessMonth
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import finish
from memoryd.daemon.store import later
from memoryd.daemon.unasked import usefulness
from memoryd.daemon.unasked.usefulness import SaidTurn, ToldLine, Verdict, find_common, judge
from workbench import add, ask, delete

RULE = "Migrations of the orders table run in batches of 5000 rows"
PROMPT, ANSWER = "write the migration", "It fills the column in batches of 5000 and pauses between them."


def said(*texts: str, began: float = 10.0) -> list[SaidTurn]:
    """The person and the agent in turn, a second after each other."""
    return [SaidTurn(f"t{at}", ("user", "assistant")[at % 2], began + at, text) for at, text in enumerate(texts)]


def verdict(told_at: float, *texts: str, **changes: Any) -> Verdict | None:
    return judge(ToldLine("m1", told_at, RULE, **changes), said(*texts), frozenset())


@pytest.mark.parametrize(
    ("told_at", "texts", "used"),
    [
        (0.0, [PROMPT, ANSWER], True),
        (0.0, ["hello", "Hello.", PROMPT, ANSWER], True),  # of a start any answer counts
        (10.0, [PROMPT, ANSWER], True),
        (10.0, ["hello", "Hello.", PROMPT, ANSWER], False),  # of a line beside a prompt the answer to that
        (0.0, ["show all", "It takes batches."], False),  # one word is chance
        (10.0, ["show all", "It takes batches."], True),  # not of a line that came with the prompt
        (0.0, ["are rows of the orders copied?", "In batches."], True),  # nor where the prompt is about the line
        (0.0, [f"{PROMPT}, batches of 5000", ANSWER], False),  # the person said it
    ],
)
def test_an_answer_uses_a_line_if_it_brings_its_words(told_at: float, texts: list[str], used: bool) -> None:
    found = verdict(told_at, *texts)
    assert found is not None
    assert found.used is used


def test_nothing_is_known_of_a_line_after_which_nothing_was_said() -> None:
    assert verdict(12.0, PROMPT, ANSWER) is None


def test_what_the_person_says_later_all_the_same_was_told_in_vain() -> None:
    again = "the orders are written in batches, 5000 rows each"
    assert verdict(10.0, PROMPT, "It writes all of it at once.", again) == Verdict(False, True, False)
    assert verdict(12.0, PROMPT, "It writes all of it at once.", again, "Right.") == Verdict(False, False, False)


def test_a_line_is_corrected_if_its_memory_is_changed_while_the_session_goes_on() -> None:
    assert verdict(0.0, PROMPT, ANSWER, changed_at=11.5) == Verdict(True, False, True)
    assert verdict(0.0, PROMPT, ANSWER, changed_at=11.5 + 3600.0) == Verdict(True, False, False)


def test_a_line_is_corrected_by_what_is_said_after_it_or_in_the_prompt_that_it_was_told_beside() -> None:
    for told_at, id, corrected in ((0.0, "t2", True), (12.0, "t2", True), (12.0, "t0", False), (0.0, "t9", False)):
        found = verdict(told_at, "hello", "Hello.", PROMPT, ANSWER, changed_by=frozenset([id]))
        assert found is not None
        assert found.corrected is corrected, (told_at, id)


def test_words_that_many_answers_of_a_project_have_say_nothing() -> None:
    answers = [SaidTurn("t", "assistant", float(at), f"The column is filled, {at}.") for at in range(10, 14)]
    common = find_common([*answers, SaidTurn("t", "user", 20.0, "orders " * 9)])
    assert common == SaidTurn("t", "assistant", 0.0, "the column is filled").words
    assert judge(ToldLine("m1", 0.0, "Each column is filled."), answers, common) == Verdict(False, False, False)


@pytest.fixture
def told(core: Core, clock: Any) -> Core:
    """A rule is told at a start in two projects, and used in one."""
    for place in ("acme/api", "acme/web"):
        add(core, RULE, place, type="rule")
        ask(core, GetUnasked(namespace=place, session="one"))
        clock.advance(60.0)
    turns = [
        NewTurn(role="user", content=PROMPT, created_at=clock.now),
        NewTurn(role="assistant", content=ANSWER, created_at=clock.now + 1.0),
    ]
    ask(core, Observe(namespace="acme/api", session="one", turns=turns))
    return core


def measure(core: Core, namespace: str = "", since: float | None = None) -> list[UsefulnessMonth]:
    return finish(usefulness.measure(core, MeasureUsefulness(namespace=namespace, since=since))).months


def row(**changes: Any) -> UsefulnessMonth:
    counts = {"sessions": 1, "told": 1, "used": 1, "said_again": 0, "corrected": 0, **changes}
    return UsefulnessMonth(**{"namespace": "acme/api", "month": "2026-01", **counts})


def test_lines_are_counted_by_project_and_month_within_reach(told: Core, clock: Any) -> None:
    [found] = measure(told)
    assert found == row(month=found.month)
    assert measure(told, "acme/api") == [found]
    assert measure(told, "acme/web") == measure(told, since=clock.now) == []


def test_a_memory_that_was_deleted_or_replaced_in_the_session_was_corrected(told: Core) -> None:
    [month] = {one.month for one in measure(told)}
    [session] = [one for one in ask(told, ListGiven()).sessions if one.namespace == "acme/api"]
    add(told, "Migrations of the orders table run at night", "acme/api", type="rule", supersedes=session.lines[0].id)
    assert measure(told) == [row(month=month, corrected=1)]
    delete(told, session.lines[0].id)
    assert measure(told) == [row(month=month, used=0, corrected=1)]  # nobody knows its words any more


def test_what_a_turn_changes_was_corrected_unless_both_hold(told: Core) -> None:
    [month] = {one.month for one in measure(told)}
    [session] = [one for one in ask(told, ListGiven()).sessions if one.namespace == "acme/api"]
    memory, turn = session.lines[0].id, ask(told, Turns(namespace="acme/api")).turns[0].id
    pair = later.Pair(memory, turn, 0, 10, 1.0)
    told.store.write(lambda transaction: later.add(transaction.connection, [pair])).result()
    assert measure(told) == [row(month=month, corrected=1)]
    told.store.write(lambda transaction: later.settle(transaction.connection, memory, later.BOTH)).result()
    assert measure(told) == [row(month=month)]
