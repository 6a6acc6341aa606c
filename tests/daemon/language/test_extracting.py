"""The rules that draw facts out of conversations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.language import extracting, marks
from memoryd.daemon.language.extracting import Fact, extract_by_marks, extract_from_turn, merge

KEPT = 0.7


def kept(text: str, role: str = "user") -> list[tuple[str, str]]:
    return [
        (fact.type, fact.text) for fact in extract_by_marks(extract_from_turn(role, text, 0)) if fact.confidence >= KEPT
    ]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("We decided to use Postgres 16 for the ledger.", "decision"),
        ("Let's go with the blue theme for version 2.", "decision"),
        ("I prefer British spelling in comments.", "preference"),
        ("Please always answer in German.", "preference"),
        ("Please stop using print for logging, use structlog 24.", "correction"),
        ("The report is due on 14 March.", "deadline"),
        ("Amounts must never be stored as floats.", "rule"),
        ("No glass bottles are allowed on the square.", "rule"),
        ("The outage was caused by the expired certificate.", "lesson"),
        ("Our staging database listens on port 5433.", "fact"),
        ("Priya Nair reviews the payment module.", "fact"),
        ("Please remember that the release branch is cut every second Thursday.", "deadline"),
        ("Please note that the key of the billing API rotates weekly.", "fact"),
        ("Don't forget that the exporter drops rows without an id.", "fact"),
        ("Please keep in mind that the runner is short of memory.", "fact"),
        ("No, don't use tabs in the SQL files.", "correction"),
        ("Correction: the report is due on 21 March.", "correction"),
    ],
)
def test_each_kind_of_fact_is_known_by_its_marks(said: str, kind: str) -> None:
    assert [found for found, _ in kept(said)] == [kind]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "ok",
        "Thanks a lot, see you on Monday!",
        "Which database did we decide to use in 2024?",
        "Can you please use Postgres 16 in the example?",
        "can a person be allergic to Postgres 16",
        "who uploads 40 MB pictures in this century",
        "what rhymes with Postgres 16",
        "Maybe we should switch to Postgres 16 one day.",
        "I think we might be going with Postgres 16.",
        "My lunch is here, back in half an hour!",
        "The weather is so nice in Lisbon today.",
        "```\nWe decided to use Postgres 16.\n```",
    ],
)
def test_questions_requests_doubts_and_small_talk_are_no_facts(said: str) -> None:
    assert kept(said) == []


@pytest.mark.parametrize("said", ["Understood, I'll use Postgres 16 for the ledger.", "Got it, no floats, never."])
def test_an_assistant_that_echoes_or_tells_what_it_does_states_nothing(said: str) -> None:
    assert kept(said, "assistant") == []


def test_an_assistant_may_teach_but_neither_corrects_nor_prefers() -> None:
    assert kept("The root cause was the cache: version 2.1 drops the key.", "assistant")[0][0] == "lesson"
    found = extracting.extract_from_turn("assistant", "I found the cause: port 5433 closes when the radio starts.", 0)
    assert [one.kind and one.kind.type for one in found] == ["lesson"]
    assert all(kind not in ("correction", "preference") for kind, _ in kept("No, the port is 5433.", "assistant"))
    assert kept("I prefer British spelling in 2026.", "assistant") == []


@pytest.mark.parametrize("role", ["tool", "system", "function"])
def test_nothing_is_taken_from_tools(role: str) -> None:
    assert kept("We decided to use Postgres 16 for the ledger.", role) == []


def extract_facts(turns: list[tuple[str, str]]) -> list[Fact]:
    """Return the facts of turns by their marks alone; what several say is one fact."""
    found = [one for index, (role, content) in enumerate(turns) for one in extract_from_turn(role, content, index)]
    return merge(extract_by_marks(found))


def test_a_fact_stands_alone() -> None:
    assert kept("Okay, so, by the way, we decided to use Postgres 16.") == [
        ("decision", "We decided to use Postgres 16.")
    ]
    said = "The new scanner stands in room 3. It must never be switched off."
    assert kept(said)[-1] == ("rule", said)
    assert kept("It must never be.") == []


def test_what_several_turns_say_is_one_fact_with_all_of_them() -> None:
    [fact] = extract_facts(
        [
            ("user", "We decided to use Postgres 16 for the ledger."),
            ("assistant", "Which one?"),
            ("user", "For the ledger we decided to use Postgres 16."),
        ]
    )
    assert fact.turns == (0, 2)


def test_facts_with_other_figures_are_two() -> None:
    said = [("user", f"The report is due on {day} March.") for day in (14, 21)]
    assert len(extract_facts(said)) == 2


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=300)), max_size=6))
def test_any_text_gives_facts_of_its_turns_within_bounds(turns: list[tuple[str, str]]) -> None:
    for fact in extract_facts(turns):
        assert 0 <= fact.confidence <= 1
        assert fact.type in marks.TYPES
        assert 0 < len(fact.text) <= extracting.MAX_CHARS
        assert fact.turns
        assert all(turns[index][0] != "tool" for index in fact.turns)


@given(st.lists(st.sampled_from(["The crane is red", "The crane has 3 arms", "We use Valkey 8"]), max_size=8))
def test_merging_twice_changes_nothing(texts: list[str]) -> None:
    found = [Fact(text, "fact", 0.8, (index,)) for index, text in enumerate(texts)]
    assert merge(merge(found)) == merge(found)


@pytest.mark.parametrize("piece", ["it is on and ", "no no ", "we we ", "our our our ", "ok, so, ", "aA1 ", "so - "])
def test_a_long_text_of_one_piece_comes_to_an_end(piece: str) -> None:
    assert sum(len(fact.text) for fact in extract_from_turn("user", piece * 1000, 0)) <= 1000 * len(piece)
