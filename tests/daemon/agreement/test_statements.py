"""Pairs of statements: what is the same, what contradicts, what is about another thing."""

from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.daemon.agreement.statements import MAX_CHARS, find_contradiction, is_same, shares_answer, tells_change

DATA = Path(__file__).parents[2] / "data"


def read_agreement(name: str) -> list[tuple[str, ...]]:
    """Return the fields of each line of a file of pairs; a line that begins with `# ` is a heading."""
    lines = (DATA / "agreement" / f"{name}.txt").read_text("utf-8").splitlines()
    return [tuple(line.split(" | ")) for line in lines if not line.startswith("# ")]


LOOK_ALIKES = read_agreement("look_alikes")
SEEN, *PRACTICE = (
    [msgspec.json.decode(line) for line in (DATA / "pairs" / f"pairs-{name}.jsonl").read_bytes().splitlines()]
    for name in ("seen", "practice", "practice-2", "practice-3", "practice-4")
)


def test_no_look_alike_is_the_same() -> None:
    assert len(LOOK_ALIKES) > 500
    assert [(old, new) for old, new in LOOK_ALIKES if is_same(old, new) or is_same(new, old)] == []


@each(
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


@each(
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


@each(
    ("pairs", "precision", "recall"),
    [(SEEN, 0.99, 0.9), ([*PRACTICE[0], *PRACTICE[1]], 0.97, 0.82), ([*PRACTICE[2], *PRACTICE[3]], 0.94, 0.64)],
    ids=["seen", "practice", "practice, reworded"],
)
def test_the_rules_hold_their_figures(pairs: list[dict[str, str]], precision: float, recall: float) -> None:
    """Precision and recall of the rules alone; PERFORMANCE.md has those of tests/quality/pairs.py."""
    claimed = [pair for pair in pairs if find_contradiction(pair["older"], pair["newer"])]
    right = [pair for pair in claimed if pair["label"] == "contradicts"]
    assert len(right) >= precision * len(claimed)
    assert len(right) >= recall * sum(pair["label"] == "contradicts" for pair in pairs)


@each(("old", "new", "rule"), [*read_agreement("contradictions"), ("", "", "none")])
def test_a_contradiction_is_another_value_of_the_same_thing(old: str, new: str, rule: str) -> None:
    assert (find_contradiction(old, new) or "none") == rule


def test_what_is_long_is_not_judged() -> None:
    tail = " and so on" * (MAX_CHARS // 10)
    assert find_contradiction("The limit is three" + tail, "The limit is five" + tail) is None


@given(st.text(), st.text())
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert is_same(one, one)
    assert is_same(one, other) == is_same(other, one)
    assert find_contradiction(one, one) is None
    find_contradiction(one, other)


@each(
    ("old", "new", "tells"),
    [
        ("Crash reports go to Sentry.", "We've stopped paying for Sentry, GlitchTip collects the crashes.", True),
        ("Our dentist is Dr. Weiland.", "We changed to another dentist, Dr. Okafor.", True),
        ("Ines mails the report.", "Ines mails the report, because nobody reads it.", True),
        ("Ines mails the report.", "Ines mails the report and also prints it since May.", False),  # beside it
        ("Ines mails the report.", "Maybe Ines stopped to mail the report.", False),
        ("Does Ines mail the report?", "Ines stopped to mail the report.", False),
        ("On staging Ines restarts the service.", "In production Ines has stopped to restart it.", False),
        ("The build failed on Monday.", "The build was green again on Tuesday.", False),  # two events
        ("Node 4 runs the report.", "Node 14 stopped to run the report.", False),
        ("Crash reports go to Sentry.", "The cat was handed over.", False),
        ("", "", False),
    ],
)
def test_a_newer_statement_may_tell_in_its_own_words_that_something_changed(old: str, new: str, tells: bool) -> None:
    assert tells_change(old, new) is tells


def test_what_is_replaced_is_named_by_both_and_not_asked_for() -> None:
    assert shares_answer("Where do crashes go?", "Crashes go to Sentry.", "Sentry is cancelled.")
    assert not shares_answer("Where do crashes go?", "Crashes go to Sentry.", "Crashes are rare.")
    assert not shares_answer("", "", "")


def test_versions_tell_of_a_change_and_look_alikes_hardly_ever() -> None:
    files = DATA.glob("versions/practice*.jsonl")
    versions = [msgspec.json.decode(line) for file in files for line in file.read_bytes().splitlines()]
    look_alikes = [pair for pairs in (SEEN, *PRACTICE) for pair in pairs if pair["kind"].startswith("other-")]
    told, alike = (
        sum(tells_change(pair["older"], pair["newer"]) for pair in pairs) / len(pairs)
        for pairs in (versions, look_alikes)
    )
    assert len(versions) > 150
    assert told >= 0.55
    assert alike <= 0.02


@each(
    ("old", "new", "is_linked"),
    [
        ("The LICENSE file says MIT.", "The LICENSE file says Apache-2.0.", True),  # MIT is not German "mit"
        ("The dedupe step is safe to rerun.", "Rerunning the dedupe step is not safe.", True),
        ("The upgrade is scheduled for Saturday night.", "The upgrade is scheduled for Sunday night.", True),
        ("支付模块由林晓负责。", "支付模块由何建国负责。", True),
        ("服务器部署在国外。", "服务器部署在新加坡。", False),
        ("The session cache keeps entries for 15 minutes.", "The session cache holds entries for an hour.", True),
        ("The default port of pickle-api is 7070.", "By default pickle-api binds to port 9191.", True),
        ("I'm off on leave next month.", "My leave starts on the 2nd of next month.", False),
        ("The train to Lyon is late.", "The train to Lyon is not late.", True),
        ("The train to Lyon was late.", "The train to Lyon was not late.", False),
        ("Lunch was at the harbour.", "Lunch was at the station.", False),
        ("Fuel is bought in Emden.", "Fuel is bought in Delfzijl.", True),  # what is bought, not what was
    ],
)
def test_names_lengths_of_time_and_numbers_are_read_as_meant(old: str, new: str, is_linked: bool) -> None:
    assert (find_contradiction(old, new) is not None) is is_linked
