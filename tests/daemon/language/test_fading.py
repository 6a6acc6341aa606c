"""Which turns may fade with their conversation: those whose statements are facts or surely pass, never in doubt."""

import pytest

from memoryd.daemon.language.extracting import Fact, Statement, of_turn
from memoryd.daemon.language.fading import DOUBTFUL, fading
from memoryd.daemon.language.marks import ASSISTANT, USER


def stated(role: str, text: str, sure: float) -> list[tuple[Statement, float]]:
    return [(one, sure) for one in of_turn(role, text, 0)]


def fades(role: str, text: str, sure: float = 0.3, *facts: Fact) -> bool:
    return fading([(role, text)], stated(role, text, sure), facts) == {0}


@pytest.mark.parametrize(
    "text",
    [
        "The neighbours were so loud at the party.",
        "haha nice one",
        "I am off to the market now, see you",
        "What a day!",
    ],
)
def test_what_passes_fades(text: str) -> None:
    assert fades(USER, text)


def test_in_doubt_a_turn_stays() -> None:
    text = "The neighbours were so loud at the party."
    assert not fades(USER, text, DOUBTFUL[USER])
    assert fades(USER, text, DOUBTFUL[USER] - 0.01)


def test_a_statement_that_is_a_fact_does_not_keep_its_turn() -> None:
    text = "We decided to use Postgres 16 for the ledger."
    assert fades(USER, text, 0.9, Fact(text, "decision", 0.9, (0,)))
    assert not fades(USER, text, 0.9, Fact("We decided to use Postgres 15 for the ledger.", "decision", 0.9, (0,)))
    assert not fades(USER, text, 0.9, Fact(text, "decision", 0.9, (1,)))


@pytest.mark.parametrize(
    ("role", "text"),
    [
        (USER, "I went to the park with my brother. " * 8),
        (USER, "It fails with:\n```\nexit 1\n```"),
        (USER, "Wir treffen uns ab jetzt jeden Morgen im kleinen Raum neben der Küche."),
        (USER, "会議は毎週月曜日です"),
        (USER, "Мы используем Постгрес"),
        (ASSISTANT, "The answer to that is long. " * 12),
        (ASSISTANT, "You can write to info@example.org about that."),
        (ASSISTANT, "The page is at https://example.org/help for you."),
        (ASSISTANT, "These are the steps:\n1. open the lid\n2. close it"),
        (ASSISTANT, "You can run `make test` for that."),
        ("tool", "The file is there."),
        ("system", "You are a helpful assistant."),
    ],
)
def test_what_rules_cannot_read_or_somebody_may_need_again_stays(role: str, text: str) -> None:
    assert not fades(role, text, 0.0)


def test_no_turns_give_none() -> None:
    assert fading([], [], []) == set()
