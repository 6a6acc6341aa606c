"""What comes up though nobody asked: only what is surely about a prompt."""

import pytest

from conversing import judge, observe, run
from memoryd.client.protocol import GetContext
from memoryd.daemon.context import preparing
from memoryd.daemon.context.unasked import names_of
from memoryd.daemon.conversations import promoting
from memoryd.daemon.conversations.promoting import PROMOTE
from memoryd.daemon.core.core import Core
from workbench import LIMIT_S, add, wait_until

FIXES = "PR #421 fixes the paging bug in the portal."
MINOR = "What is the weather like in Porto today?"


def context(core: Core, task: str, **options: bool) -> list[str]:
    made = preparing.context(core, core.sources, GetContext(task=task, **options)).result(LIMIT_S)
    return [line.split("] ", 1)[-1] for line in made.text.splitlines() if "] " in line]


def test_what_a_short_prompt_names_must_be_in_a_memory(core: Core) -> None:
    add(core, FIXES)
    assert context(core, "What does PR #421 fix in the portal?", unasked=True) == [FIXES]
    assert context(core, "What does PR #414 fix in the portal?", unasked=True) == []
    assert context(core, "What does PR #414 fix in the portal?") == [FIXES]
    long = "what does it fix in the portal, and is it the paging bug, " * 2
    assert context(core, f"{long} is it PR #414?", unasked=True) == [FIXES]


@pytest.mark.parametrize("asked", ["unasked", "opening"])
def test_a_turn_of_low_importance_does_not_come_up_unasked(core: Core, asked: str) -> None:
    observe(core, MINOR, session="s")
    judge(core)
    run(core, PROMOTE, promoting.steps(core, core.active.fill(), "asked for"), kind="promote")
    wait_until(lambda: core.embedding.pending() == 0)
    assert context(core, MINOR) == [MINOR]
    assert context(core, MINOR, **{asked: True}) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Which bug does PR #441 fix?", ["pr", "441"]),
        ("When did importer 4.2.2 go? Ask Tom.", ["4.2.2", "tom"]),
        ("does shop.acme.example expire, or src/read_me?", ["shop.acme.example", "src/read_me"]),
        ("who owns the reports service", []),
        ("Done. Now the next one", []),
        ("", []),
    ],
)
def test_names_are_figures_identifiers_and_capitalised_words_within_a_sentence(text: str, names: list[str]) -> None:
    assert list(names_of(text)) == names
