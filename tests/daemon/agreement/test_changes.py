"""Whether a later text changes a saved memory, on examples made for it; `tests/quality` has others."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from memoryd.daemon.agreement import changes

EXAMPLES = Path(__file__).parents[2] / "data" / "later" / "examples.txt"
LEAST = {"old-value": 0.9, "other-value": 0.75, "other-words": 0.3}  # of these kinds are found
ROLES = {"u": "user", "a": "assistant"}
OLD = "Payments: we use Stripe Checkout, cards only for now."


def read_examples() -> list[tuple[str, float, str, list[str], str, str]]:
    lines = [line for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    examples = []
    for kind, near, saved, *said in (line.split(" | ") for line in lines):
        role, _, text = said[-1].partition(": ")
        examples.append((kind, float(near), saved, [one.partition(": ")[2] for one in said[:-1]], ROLES[role], text))
    return examples


def test_most_changes_are_found_and_hardly_anything_else() -> None:
    found, of, false = Counter[str](), Counter[str](), defaultdict[str, list[str]](list)
    for kind, near, saved, before, role, text in read_examples():
        change = changes.find_change(saved, text, before, near, role)
        of[kind] += 1
        found[kind] += change is not None
        if kind not in LEAST and change:
            false[kind].append(f"{saved} / {text}")
    assert {kind: found[kind] / of[kind] for kind in LEAST if found[kind] < LEAST[kind] * of[kind]} == {}
    assert sum(map(len, false.values())) <= 4, dict(false)


def test_the_sentence_that_tells_of_the_change_is_named() -> None:
    text = 'The bank wrote "no SEPA before autumn, sorry". Stripe is out, we go to Mollie! Start with the tests.'
    change = changes.find_change(OLD, text, near=0.6, role="user")
    assert change is not None
    assert text[change.start : change.start + change.size] == "Stripe is out, we go to Mollie!"


@pytest.mark.parametrize(
    "text",
    [
        "would it help if Stripe were out and we went to Mollie?",
        'their blog says "Stripe is out, we go to Mollie"',
        "> Stripe is out, we go to Mollie",
        "at my last company we dropped Stripe for Mollie",
        "use Mollie instead of Stripe just this once",
        "Stripe stays, we do not move to Mollie",
    ],
)
def test_what_asks_quotes_tells_of_the_past_or_of_once_changes_nothing(text: str) -> None:
    assert changes.find_change(OLD, text, near=0.6, role="user") is None


def test_a_word_that_many_memories_have_says_little() -> None:
    saved = [f"The shop's {what} is made by hand." for what in ("menu", "bread", "logo", "flyer")]
    common = changes.find_common(saved)
    assert "shop" in common
    assert changes.find_change(saved[0], "the shop is closed down", near=0.3, role="user", common=common) is None
    assert changes.find_change(saved[0], "the menu is abolished", near=0.3, role="user", common=common) is not None


@pytest.mark.parametrize("text", ["no, leave it", "nope", "costs 4x. nope", "we stay with R", "nein, lieber nicht"])
def test_a_refusal(text: str) -> None:
    assert changes.is_refusal(text)


@pytest.mark.parametrize("text", ["no problem, go ahead", "no need to ask", "yes", "do it"])
def test_no_refusal(text: str) -> None:
    assert not changes.is_refusal(text)
