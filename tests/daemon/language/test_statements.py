"""Pairs of statements: what is the same, what contradicts, what is about another thing."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.language.reading import stem
from memoryd.daemon.language.statements import MAX_CHARS, find_contradiction, is_same

DATA = Path(__file__).parents[2] / "data"
LOOK_ALIKES = [
    tuple(line.split(" | "))
    for line in (DATA / "agreement" / "look_alikes.txt").read_text("utf-8").splitlines()
    if not line.startswith("# ")
]
SEEN, *PRACTICE = (
    [msgspec.json.decode(line) for line in (DATA / "pairs" / f"pairs-{name}.jsonl").read_bytes().splitlines()]
    for name in ("seen", "practice", "practice-2", "practice-3")
)


def test_no_look_alike_is_the_same() -> None:
    assert len(LOOK_ALIKES) > 500
    assert [(old, new) for old, new in LOOK_ALIKES if is_same(old, new) or is_same(new, old)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The user prefers dark mode.", "User prefers dark mode"),
        ("The user prefers dark mode", "the user prefers dark mode!"),
        ("The config file is `settings.toml`", 'The config file is "settings.toml"'),
        ("You can't deploy on Fridays", "You cannot deploy on Fridays"),
        ("It's the default branch for releases", "It is the default branch for releases"),
        ("Встреча  в понедельник", "Встреча в понедельник"),
        ("re\u0301sume\u0301 hier", "résumé hier"),
        ("", " "),
    ],
)
def test_articles_contractions_and_marks_change_nothing(old: str, new: str) -> None:
    assert is_same(old, new)
    assert is_same(new, old)
    assert find_contradiction(old, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Sie kommen morgen", "sie kommen morgen"),
        ("No, funciona bien", "No funciona bien"),
        ("The operator is .", "The operator is .."),
        ("Kim's the boss", "Kim's boss"),
        ("", "The office is closed"),
    ],
)
def test_what_may_change_the_meaning_keeps_texts_apart(old: str, new: str) -> None:
    assert not is_same(old, new)


@pytest.mark.parametrize(
    ("pairs", "precision", "recall"),
    [(SEEN, 0.99, 0.9), ([*PRACTICE[0], *PRACTICE[1]], 0.95, 0.78)],
    ids=["seen", "practice"],
)
def test_the_rules_hold_their_figures(pairs: list[dict[str, str]], precision: float, recall: float) -> None:
    """Precision and recall of the rules alone; PERFORMANCE.md has those of `memctl bench pairs`."""
    claimed = [pair for pair in pairs if find_contradiction(pair["older"], pair["newer"])]
    right = [pair for pair in claimed if pair["label"] == "contradicts"]
    assert len(right) >= precision * len(claimed)
    assert len(right) >= recall * sum(pair["label"] == "contradicts" for pair in pairs)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("We use Terraform.", "We don't use Terraform any more.", "polarity"),
        ("The retry limit is three", "The retry limit is five", "value"),
        ("We install with npm", "We install with pnpm", "value"),
        ("Alice owns billing", "Bob owns billing", "value"),
        ("PR #123 fixes the login bug.", "PR #129 fixes the login bug.", None),
        ("Alice likes tea", "Bob likes tea", None),
        ("The backup runs in staging", "The backup runs in production", None),
        ("I went to the beach in May", "I went to the beach in June", None),
        ("See you!", "See you soon!", None),
        ("Is the limit three?", "The limit is five", None),
        ("We meet in room Oak, as always.", "From now on we meet in room Maple.", "value"),
        ("We agreed to meet in room Oak", "The team moved, we meet in the garden room now", "change"),
        ("we own a dog", "we also own a cat now", None),
        ("Nadia signs off our expenses", "our expenses are signed off by Gareth, Nadia's left", "value"),
        ("Swim practice starts at 17:30.", "Swim practice has been pushed back to 18:15.", "value"),
        ("The nightly export of invoices runs at 02:30.", "Invoice export is scheduled for 04:15 each night.", "value"),
        ("Our rate limit is 100 a minute.", "The rate limit of the search is 30 a minute.", None),
        ("In the EU region data is kept for 30 days.", "In the US region data is kept for 90 days.", None),
        ("The budget is about 3000 euros.", "The budget for training is 2,980 euros.", None),
        ("Push messages arrive instantly on Android.", "Push messages are delayed by a minute on iOS.", None),
        ("The roof is being repaired.", "The repair of the roof was completed.", "change"),
        ("the router config is Ben's", "the router config is Clara's, not Ben's", "value"),
        ("everyone in the band reads music", "only half the band reads music", "quantity"),
        ("our flight leaves from terminal 2", "just got a text, our flight leaves from terminal 4", "value"),
        ("The night bus stops at the hospital.", "The night bus doesn't stop at the hospital any more.", "polarity"),
        ("Der Keller ist feucht.", "Der Keller ist seit der Sanierung trocken.", "value"),
        ("the shop's closed on Mondays", "they're not open on Mondays, the shop", None),
        ("Ticket OPS-31 is assigned to Nora.", "Ticket OPS-13 is assigned to Pavel.", None),
        ("In debug builds assertions are active.", "In release builds assertions are inactive.", None),
        ("The server is in Scandinavia.", "The server is in Bergen, Norway.", None),
        ("The payments API is rate limited.", "The catalogue API is not rate limited.", None),
        ("The retry limit of the importer is five", "The retry limit of the exporter is five", None),
        ("Server a1 has 16 GB of memory", "Server a2 has 16 GB of memory", None),
        ("We use Postgres for billing", "We use Postgres for search", None),
        ("Tag v2.1.0 has the fix", "Tag v2.0.9 has the bug", None),
        ("Test case TC-20 fails on ARM", "Test case TC-21 passes on ARM", None),
        ("The tasks are run by cron", "The tasks are run by systemd, no cron is left", "value"),
        ("Logs go to Loki", "Elastic has replaced Loki for logs", "change"),
        ("the tram comes at nine", "the tram won't come before ten", "value"),
        ("The exporter encrypts the files", "The exporter writes the files unencrypted", "value"),
        ("The files are encrypted", "The files on the server are unencrypted", "value"),
        ("I weigh 70 kilos", "I weigh 68 kilos by now", "value"),
        ("Nobody but Ada can merge here", "Only Ada can merge here", None),
        ("In live mode, cards are charged", "In test mode, cards are simulated", None),
        ("窗口由王芳负责", "窗口已从王芳移交给李雷", "change"),
        ("", "", None),
    ],
)
def test_a_contradiction_is_another_value_of_the_same_thing(old: str, new: str, rule: str | None) -> None:
    assert find_contradiction(old, new) == rule


def test_what_is_long_is_not_judged() -> None:
    tail = " and so on" * (MAX_CHARS // 10)
    assert find_contradiction("The limit is three" + tail, "The limit is five" + tail) is None


@given(st.text(), st.text())
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert is_same(one, one)
    assert is_same(one, other) == is_same(other, one)
    assert find_contradiction(one, one) is None
    find_contradiction(one, other)


@pytest.mark.parametrize(("word", "root"), [("reviews", "review"), ("moved", "mov"), ("class", "class"), ("is", "is")])
def test_stems(word: str, root: str) -> None:
    assert stem(word) == root
