"""What comes up though nobody asked: only what is surely about a prompt."""

import pytest
from msgspec import convert

from conversing import observe, settle
from memoryd.client.protocol import GetContext, Hit
from memoryd.daemon.context import preparing
from memoryd.daemon.context.notes import FEW, FEW_TOKENS, select_worth
from memoryd.daemon.core.core import Core
from workbench import LIMIT_S, add, add_many

FIXES = "PR #421 fixes the paging bug in the portal."
HIT = {
    "id": "a" * 32,
    "namespace": "",
    "type": "fact",
    "content": "x",
    "score": 1.0,
    "created_at": 0.0,
    "updated_at": 0.0,
}
MINOR = "What is the weather like in Porto today?"


def context(core: Core, task: str, **options: bool) -> list[str]:
    made = preparing.context(core, core.sources, GetContext(task=task, **options)).result(LIMIT_S)
    return [line.split("] ", 1)[-1] for line in made.text.splitlines() if "] " in line]


def test_what_a_short_prompt_names_is_missing_from_a_memory_that_does_not_answer_it(core: Core) -> None:
    add(core, FIXES)
    assert context(core, "What does PR #421 fix in the portal?", unasked=True) == [FIXES]
    assert context(core, "What does PR #414 fix?", unasked=True) == []
    assert context(core, "What does PR #414 fix in the portal?") == [FIXES]
    long = "what does it fix in the portal, and is it the paging bug, " * 2
    assert context(core, f"{long} is it PR #414?", unasked=True) == [FIXES]


@pytest.mark.parametrize(
    ("confidences", "kept", "sure"),
    [
        ((), 0, False),
        ((0.04, 0.01), 0, False),
        ((0.07, 0.29, 0.04), 2, False),
        ((0.30, 0.07, 0.06, 0.05), 3, True),
        ((0.5, 0.11, 0.1, 0.09), 3, True),
        ((0.1, 0.1, 0.1, 0.9), 4, False),
    ],
)
def test_hits_are_kept_by_their_own_confidence_and_that_of_the_best(
    confidences: tuple[float, ...], kept: int, sure: bool
) -> None:
    found, is_sure = select_worth([convert({**HIT, "confidence": one}, Hit) for one in confidences])
    assert (len(found), is_sure) == (kept, sure)


def test_a_prompt_that_nothing_is_surely_about_gets_few_tokens(core: Core) -> None:
    add_many(
        core,
        ["The portal has a budget, a port and a log of its own.", "A budget of one portal was cut by half in May."],
    )
    add_many(core, [f"Number {number} of the storks nests on roof {number}." for number in range(30)])
    prompt = "Who reads what the portal writes into the budget?"
    made = preparing.context(core, core.sources, GetContext(task=prompt, unasked=True)).result(LIMIT_S)
    assert 0 < made.tokens <= FEW_TOKENS
    assert 1 <= len(made.ids) <= FEW


@pytest.mark.parametrize("asked", ["unasked", "opening"])
def test_a_turn_of_low_importance_does_not_come_up_unasked(core: Core, asked: str) -> None:
    observe(core, MINOR, session="s")
    settle(core, "stored")
    assert context(core, MINOR) == [MINOR]
    assert context(core, MINOR, **{asked: True}) == []
