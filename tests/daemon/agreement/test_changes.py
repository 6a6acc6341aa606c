"""Whether a later text changes a saved memory, on examples made for it; `tests/quality` has others."""

from collections import Counter
from pathlib import Path

import pytest

from memoryd.daemon.agreement.changes import Said, find_change, list_signs
from memoryd.daemon.store.later import LIKELY, MAYBE

EXAMPLES = Path(__file__).parents[2] / "data" / "later" / "examples.txt"
LEAST = {"old-value": 0.75, "other-value": 0.45}  # of these kinds are found
MOST_LIKELY = 0.1  # of the others
ROLES = {"u": "user", "a": "assistant"}
OLD = "Payments: we use Stripe Checkout, cards only for now."


def read_examples() -> list[tuple[str, float, str, Said]]:
    lines = [line for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    examples = []
    for kind, near, saved, *said in (line.split(" | ") for line in lines):
        *before, (role, _, text) = (one.partition(": ") for one in said)
        examples.append((kind, float(near), saved, Said(text, ROLES[role], tuple(one for _, _, one in before[-2:]))))
    return examples


def test_most_changes_are_found_and_little_else_is_likely() -> None:
    found, likely, of = Counter[str](), Counter[str](), Counter[str]()
    for kind, near, saved, said in read_examples():
        of[kind] += 1
        if change := find_change(saved, said, near, MAYBE):
            found[kind] += 1
            likely[kind] += change.sure >= LIKELY
    assert {kind: found[kind] / of[kind] for kind in LEAST if found[kind] < LEAST[kind] * of[kind]} == {}
    others = [kind for kind in of if kind not in (*LEAST, "other-words")]
    assert sum(likely[kind] for kind in others) <= MOST_LIKELY * sum(of[kind] for kind in others)


def test_the_sentence_that_tells_of_the_change_is_named() -> None:
    text = 'The bank wrote "no SEPA before autumn, sorry". Stripe is out, we go to Mollie! Start with the tests.'
    change = find_change(OLD, Said(text, "user"), 0.6, MAYBE)
    assert change is not None
    assert text[change.start : change.start + change.size] == "Stripe is out, we go to Mollie!"


@pytest.mark.parametrize(
    "text",
    [
        "would it help if Stripe were out and we went to Mollie?",
        'their blog says "Stripe is out, we go to Mollie"',
        "> Stripe is out, we go to Mollie",
        "use Mollie instead of Stripe just this once",
    ],
)
def test_what_asks_quotes_or_is_of_once_is_less_sure(text: str) -> None:
    said = find_change(OLD, Said("Stripe is out, we go to Mollie", "user"), 0.6, 0.0)
    other = find_change(OLD, Said(text, "user"), 0.6, 0.0)
    assert said is not None
    assert said.sure >= LIKELY
    assert other is None or other.sure < LIKELY


@pytest.mark.parametrize("text", ["", "```\nStripe is out\n```", "…", "?"])
def test_where_nothing_is_said_nothing_is_found(text: str) -> None:
    assert find_change(OLD, Said(text, "user"), 0.6, MAYBE) is None


def test_signs_are_named() -> None:
    signs = list_signs("The API limit is 60 requests.", Said("raise the limit to 300 requests", "user"), 0, 0.5)
    assert signs["near"] == 0.5
    assert (signs["other value"], signs["(changed)"], signs["=to #"]) == (1.0, 1.0, 1.0)
    assert "asks" not in signs
