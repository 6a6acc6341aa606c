"""Front matter: what is understood, and what is only reported."""

from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.times import seconds
from memoryd.daemon.workspaces.documents.document import Front
from memoryd.daemon.workspaces.documents.front import MAX_DEPTH, parse_front_matter


def front(text: str) -> tuple[Front, str | None]:
    return parse_front_matter(f"---\n{text}\n---\nbody".split("\n"))


@each("text", ["", "body", "---", "---\ntype: decision", "\n---\ntype: x\n---", "body\n---\ntype: x\n---"])
def test_only_lines_between_marks_at_the_very_start_are_front_matter(text: str) -> None:
    assert parse_front_matter(text.split("\n")) == (Front(), None)


def test_all_that_memoryd_knows_is_read_and_the_rest_is_metadata() -> None:
    found, problem = front(
        "type: decision\ntags: [cache, 'two words', 3]\npinned: true\nexpires: 2026-03-31\nowner: Ada"
    )
    assert problem is None
    assert found == Front("decision", ["cache", "two words", "3"], True, seconds("2026-03-31"), {"owner": "Ada"}, 7)


@each("text", ["tags: 'a, b , #c, a'", "tags: [a, b, c]", "tags:\n- a\n- b\n- '#c'\n- a\n-"])
def test_tags_are_a_list_or_words_with_commas(text: str) -> None:
    assert front(text)[0].tags == ["a", "b", "c"]


@each(
    ("text", "when"),
    [
        ("2026-03-31", "2026-03-31"),
        ("2026-03-31 10:00", "2026-03-31T10:00:00"),
        ("2026-03-31T10:00:00+02:00", "2026-03-31T08:00:00"),
        ("'2026-03-31T10:00:00Z'", "2026-03-31T10:00:00"),
    ],
)
def test_expiry_is_a_date_or_a_time_in_utc_unless_it_says_otherwise(text: str, when: str) -> None:
    assert front(f"expires: {text}")[0].expires_at == seconds(when)


@each(
    ("text", "named"),
    [
        ("type: [a]", "`type`"),
        (f"type: {'x' * 200}", "`type`"),
        ("pinned: 7", "`pinned`"),
        ("expires: soon", "`expires`"),
        ("expires: 5", "`expires`"),
        ("tags: [[a], b]", "`tags`"),
    ],
)
def test_a_wrong_value_is_reported_and_left_out(text: str, named: str) -> None:
    found, problem = front(text)
    assert named in str(problem)
    assert found == Front(tags=["b"] if "tags" in text else [], end_line=3)


@each(
    ("text", "reason"),
    [
        ("a: b: c", "line 2"),
        ("\ta: 1", "line 2"),
        ("a: !!python/object:os.system x", "constructor"),
        ("d: 2026-02-30", "day"),
        ("n: " + "9" * 5000, "digits"),
        ("a: &x [1]\nb: *x", "alias"),
        ("a: " + "[" * (MAX_DEPTH + 1), "deeper"),
        ("a: " + "[" * 20_000, "nest"),  # newer parsers have a limit of their own
        ("a: [" + "1, " * 6_000 + "1]", "too many values"),
        ("a: " + "x" * 40_000, "longer"),
    ],
)
def test_what_is_no_front_matter_is_reported_and_stays_text(text: str, reason: str) -> None:
    found, problem = front(text)
    assert found == Front()
    assert "indexed as text" in str(problem)
    assert reason in str(problem)


def test_aliases_cannot_blow_up() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "alias" in str(front("\n".join(["l0: &l0 x", *levels]))[1])


def test_metadata_is_what_json_can_hold() -> None:
    text = "a: 2026-03-31\nb: .nan\nc: 99999999999999999999\nd: {1: yes, null: 2.5}\ne: !!set {y, x}\nf: !!binary aGk="
    assert front(text)[0].metadata == {
        "a": "2026-03-31",
        "b": "nan",
        "c": "99999999999999999999",
        "d": {"1": True, "null": 2.5},
        "e": ["x", "y"],
        "f": "hi",
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    found, _ = front(text)
    assert 0 <= found.end_line <= text.count("\n") + 3


DATES = {
    "created: 2026-03-15": "created_at",
    "created_at: 2026-03-15T00:00:00Z": "created_at",
    "Created: 2026-03-15": "created_at",
    "date created: 2026-03-15": "created_at",
    "Date Created: '[[2026-03-15]]'": "created_at",
    "date: 2026-03-15": "created_at",
    "modified: 2026-03-15": "changed_at",
    "date modified: 2026-03-15": "changed_at",
    "created: soon\ndate: 2026-03-15": "created_at",
    "modified: 2027-01-01\ndate: 2028-01-01\ncreated_at: 2026-03-15": "created_at",
}


def test_a_date_is_read_under_the_names_that_other_programs_give_it() -> None:
    misses = {text: found for text, name in DATES.items() if getattr(found := front(text)[0], name) != AT}
    assert misses == {}


AT = seconds("2026-03-15")
TOML = """+++
title = "Cache"
type = "decision"
tags = ["cache", "#two words"]
created_at = 2026-03-15
at = 10:30:00
[extra]
ids = [1, 2.5]
+++
body"""


def test_toml_between_plus_signs_is_front_matter_too() -> None:
    found, problem = parse_front_matter(TOML.split("\n"))
    assert problem is None
    assert (found.type, found.tags, found.created_at, found.end_line) == ("decision", ["cache", "two words"], AT, 9)
    assert found.metadata["extra"] == {"ids": [1, 2.5]}
    assert (found.metadata["title"], found.metadata["at"]) == ("Cache", "10:30:00")
    assert parse_front_matter(["+++", "+++"]) == (Front(end_line=2), None)


@each(
    ("text", "reason"),
    [
        ("a = 1\nb is 2", "line 3"),
        ("a = " + "[" * 3000 + "]" * 3000, "cannot be read"),
        (f"{'.'.join('a' * (MAX_DEPTH + 2))} = 1", "nested deeper"),
        (f"a = '{'x' * 40_000}'", "longer than"),
        ("a: 1", "line 2"),
    ],
)
def test_toml_that_cannot_be_read_is_text_and_reported(text: str, reason: str) -> None:
    found, problem = parse_front_matter(f"+++\n{text}\n+++\nbody".split("\n"))
    assert found == Front()
    assert reason in str(problem)
