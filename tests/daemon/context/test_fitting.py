"""A context keeps its budget whatever is in it, and is the same for the same input."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.client.prompt_text import make_inert
from memoryd.daemon.context.counting import Counter
from memoryd.daemon.context.fitting import (
    ALWAYS,
    GROUPS,
    SAID,
    STANDING_SHARE,
    ContextNote,
    Layout,
    Quote,
    arrange,
    fit,
    group_of,
)
from memoryd.models import load

LAYOUT = Layout({}, 2.0)
WORDS = Counter("words", lambda text: len(text.split()))


@dataclass
class Store:
    standing: list[ContextNote]
    relevant: list[ContextNote]


def note(number: int, group: str, text: str, below: int = 0, speaker: str = "", day: str = "") -> ContextNote:
    older = tuple(
        ContextNote(f"{number}-{n}", 0, b"", "", 0.0, 0.0, "1 May 2022", (Quote("", f"{n} {text}"),))
        for n in range(below)
    )
    lines, day = (Quote(speaker, text),), day or f"{1 + number % 3} May 2022"
    return ContextNote(str(number), number, b"", group, float(number % 7), 1 / (number + 1), day, lines, older)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=400).map(make_inert)


@st.composite
def stores(draw: st.DrawFn) -> Store:
    texts = draw(st.lists(TEXTS, max_size=30))
    groups = [heading for heading in GROUPS if heading != ALWAYS]
    cut = draw(st.integers(0, len(texts)))
    standing = [note(number, ALWAYS, text) for number, text in enumerate(texts[:cut])]
    relevant = [
        note(
            number,
            draw(st.sampled_from(groups)),
            text,
            draw(st.integers(0, 2)),
            draw(st.sampled_from(["", "Ada", "Bo"])),
        )
        for number, text in enumerate(texts[cut:], start=cut)
    ]
    return Store(standing, relevant)


@pytest.fixture(scope="module")
def real(model_dir) -> Counter:
    embedder = load("all-MiniLM-L6-v2", model_dir)
    return Counter(embedder.name, embedder.count_tokens)


@settings(max_examples=50)
@given(store=stores(), budget=st.integers(16, 4000))
def test_no_budget_is_exceeded_by_the_models_own_tokenizer(real: Counter, store: Store, budget: int) -> None:
    made = fit(store.standing, store.relevant, budget, LAYOUT, real)
    assert made.tokens == real.count(made.text) <= budget


STORES = 1000
ODD = [
    *("</memory>", "<|im_end|>", "[INST]", "```", "# heading", "ignore previous instructions", "--", "naïve", "ﷺ"),
    *("日本語のメモ", "🚀🚀", "\u202e\u200b", "e\u0301\u0301", "\t\r\n", "https://example.org/a/b?c=d", "x" * 300),
]


def random_store(dice: random.Random) -> Store:
    """Make up to 40 notes of words and oddities; some have older ones below them."""

    def text() -> str:
        words = (
            dice.choice(ODD) if dice.random() < 0.15 else f"w{dice.randrange(500)}" for _ in range(dice.randrange(60))
        )
        return make_inert(" ".join(words))

    groups = [heading for heading in GROUPS if heading != ALWAYS]
    cut, count = dice.randrange(12), dice.randrange(41)
    standing = [note(number, ALWAYS, text()) for number in range(min(cut, count))]
    relevant = [note(n, dice.choice(groups), text(), dice.randrange(3)) for n in range(len(standing), count)]
    return Store(standing, relevant)


@pytest.mark.slow
@pytest.mark.parametrize("portion", range(4))
def test_a_thousand_stores_keep_every_budget_and_come_out_alike(real: Counter, portion: int) -> None:
    for number in range(portion, STORES, 4):
        dice = random.Random(number)
        store = random_store(dice)
        for budget in (16, 100, 400, dice.randrange(16, 4001), 4000):
            made = fit(store.standing, store.relevant, budget, LAYOUT, real)
            assert made.tokens == real.count(made.text) <= budget
            assert made == fit(store.standing, store.relevant, budget, LAYOUT, real)


def pair(number: int, spare: bool) -> ContextNote:
    lines = Quote("Ada", "one two three", f"q{number}", spare=spare), Quote("Bo", "four five six", str(number))
    return note(number, SAID, "", day="1 May 2022")._replace(lines=lines)


def test_the_best_notes_have_their_spare_lines_and_others_where_there_is_room() -> None:
    def show(count: int, budget: int) -> list[str]:
        made = fit([], [pair(number, True) for number in range(count)], budget, LAYOUT, WORDS)
        return [id for one in made.notes for id in (one.id, *one.related)]

    assert show(0, 100) == []
    assert show(1, 11) == ["0", "q0"]
    assert show(1, 10) == ["0"]
    assert show(2, 19) == ["0", "q0", "1", "q1"]
    assert show(2, 15) == ["0", "q0", "1"]
    assert show(9, 40) == ["0", "q0", "1", "q1", *map(str, range(2, 7))]


def test_what_is_not_spare_comes_with_its_note_or_the_note_does_not() -> None:
    made = fit([], [pair(number, False) for number in range(9)], 40, LAYOUT, WORDS)
    assert [(one.id, one.related) for one in made.notes] == [(str(number), [f"q{number}"]) for number in range(4)]


def test_a_smaller_note_fits_where_a_larger_one_does_not() -> None:
    notes = [note(1, "Facts", "one two"), note(2, "Facts", "word " * 50), note(3, "Facts", "three four")]
    made = fit([], notes, 20, LAYOUT, WORDS)
    assert [one.id for one in made.notes] == ["1", "3"]


def test_standing_notes_have_a_share_to_themselves_and_no_more() -> None:
    day = "1 May 2022"
    standing = [note(n, ALWAYS, "a rule of five words", day=day) for n in range(100)]
    relevant = [note(n, "Facts", "a fact of five words", day=day) for n in range(100, 200)]
    made = fit(standing, relevant, 600, LAYOUT, WORDS)
    kept = [one for one in made.notes if one.group == ALWAYS]
    assert 6 * len(kept) <= 600 * STANDING_SHARE < 6 * (len(kept) + 2)
    assert made.tokens > 590


@pytest.mark.parametrize("budget", [16, 20, 99])
def test_a_small_budget_is_not_spent_on_the_frame(budget: int) -> None:
    assert not fit([], [note(1, "Facts", "a b c")], budget, LAYOUT, WORDS).text.startswith("<")


def show_said(*said: tuple[str, str], by: Counter = WORDS) -> list[str]:
    """Return the lines of a context of what was said, each a day and a speaker, in this order."""
    notes = [note(1, SAID, f"text {number}", speaker=who, day=day) for number, (day, who) in enumerate(said)]
    notes = [one._replace(id=str(n), created_at=float(n), score=1.0 / (1 + n)) for n, one in enumerate(notes)]
    return fit([], notes, 99, LAYOUT, by).text.splitlines()  # no more: without the frame


def test_a_date_stands_once_above_a_day_and_each_line_says_who_said_it() -> None:
    day, later = "2 May 2022", "1 May 2022"
    said = [(day, "Ada"), (day, "Bo"), (day, "Ada"), (later, "Ada"), (later, "Ada"), ("31 December 2021", "")]
    assert show_said(*said) == [
        "2 May 2022",
        "Ada: text 0",
        "Bo: text 1",
        "Ada: text 2",
        "1st",
        "Ada: text 3",
        "Ada: text 4",
        "31 December 2021",
        "- text 5",
    ]


def test_a_date_leaves_out_its_month_and_year_where_the_dates_before_tell() -> None:
    days = ["2 May 2022", "13 May 2022", "3 June 2022", "4 June 2023", "22 May 2022", "23 June 2023", "1 May 2023"]
    assert show_said(*((day, "Ada") for day in days))[::2] == [
        *("2 May 2022", "13th", "3 June", "4 June 2023", "22 May", "23 June", "1 May 2023"),
    ]
    numbers = (30, 1, 2, 3, 4, 10, 11, 12, 13, 20, 21, 22, 23, 31)
    assert show_said(*((f"{number} May 2022", "Ada") for number in numbers))[2::2] == (
        "1st 2nd 3rd 4th 10th 11th 12th 13th 20th 21st 22nd 23rd 31st".split()
    )


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [("Ada", "Bo", ["A", "B"]), ("Ada Lim", "Ada Lund", ["Ada Li", "Ada Lu"]), ("Ada", "Adam", ["Ada", "Adam"])],
)
def test_who_was_named_is_named_by_as_many_letters_as_tell_the_speakers_apart(
    first: str, second: str, again: list[str]
) -> None:
    day, letters = "2 May 2022", Counter("letters", len)
    said = show_said((day, first), (day, second), (day, first), (day, second), by=letters)
    assert [line.partition(":")[0] for line in said[1:]] == [first, second, *again]
    if " " not in first:
        said = show_said((day, first), (day, second), (day, first), (day, second))
        assert [line.partition(":")[0] for line in said[1:]] == [first, second] * 2, "it saves no token"


def test_notes_that_cost_less_beside_others_take_the_room_that_is_left() -> None:
    day, letters = "2 May 2022", Counter("letters", len)
    notes = [note(n, SAID, "text", speaker="Adalbert von Chamisso", day=day) for n in range(9)]
    assert [len(fit([], notes[:count], 99, LAYOUT, letters).notes) for count in (0, 1, 9)] == [0, 1, 4]


@pytest.mark.parametrize(
    ("standing", "groups", "headings"),
    [(0, [], 0), (0, ["Facts"], 0), (0, ["Facts", SAID], 2), (1, [], 1), (1, ["Facts"], 2), (1, ["Facts", SAID], 3)],
)
def test_one_group_alone_has_no_heading_unless_it_always_stands_there(
    standing: int, groups: list[str], headings: int
) -> None:
    found = [note(number, group, "text") for number, group in enumerate(groups)]
    made = fit([note(9, ALWAYS, "rule")] * standing, found, 100, LAYOUT, WORDS)
    assert sum(line.endswith(":") for line in made.text.splitlines()) == headings


def test_the_group_with_the_best_note_is_first() -> None:
    notes = [note(5, "Decisions", "a"), note(1, "Lessons", "b"), note(9, "Facts", "c")]
    made = fit([note(20, ALWAYS, "d")], notes, 100, LAYOUT, WORDS)
    assert [line for line in made.text.splitlines() if line.endswith(":")] == [
        "Always:",
        "Lessons:",
        "Decisions:",
        "Facts:",
    ]


def test_subjects_stand_by_their_best_note_and_within_by_date() -> None:
    east, north = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    notes = [
        ContextNote("a", 1, b"", "Facts", 10.0, 0.9, "1 May 2022", (Quote("", "a"),)),
        ContextNote("b", 2, b"", "Facts", 99.0, 0.8, "1 May 2022", (Quote("", "b"),)),
        ContextNote("c", 3, b"", "Facts", 20.0, 0.1, "1 May 2022", (Quote("", "c"),)),
    ]
    order = arrange(notes, {1: east, 2: north, 3: east}, 0.5)
    assert [one.id for one in order] == ["c", "a", "b"]
    assert [one.id for one in arrange(notes, {}, 0.5)] == ["a", "b", "c"]


@pytest.mark.parametrize("tier", ["L1", "L2"])
@pytest.mark.parametrize(
    ("kind", "heading"), [("decision", "Decisions"), ("mistake-pattern", "Lessons"), ("whatever", "Facts")]
)
def test_a_type_has_its_heading_in_either_tier(kind: str, tier: str, heading: str) -> None:
    assert group_of(kind, tier) == heading


@pytest.mark.parametrize(
    ("kind", "tier", "heading"),
    [("note", "documents", "Notes"), ("decision", "L0", SAID), ("turn", "L1", SAID), ("turn", "L2", SAID)],
)
def test_chunks_and_turns_have_a_heading_of_their_own(kind: str, tier: str, heading: str) -> None:
    assert group_of(kind, tier) == heading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a\r\n\tb\u2029c\u0085d", "a b c d"),
        ("a\x00b\x1b[31mc\u200b\u2066d\U000e0041e", "ab[31mcde"),
        ("<system>do</system>", "&lt;system>do&lt;/system>"),
        ("[/INST] [ system ] [x]", "(/INST) ( system ) [x]"),
        ("👩‍💻 naïve 日本", "👩‍💻 naïve 日本"),
    ],
)
def test_text_is_made_inert(text: str, expected: str) -> None:
    assert make_inert(text) == expected


@given(st.text())
def test_inert_text_is_one_line_that_closes_nothing_and_stays_so(text: str) -> None:
    made = make_inert(text)
    assert len(made.splitlines()) <= 1
    assert "<" not in made
    assert make_inert(made) == made
