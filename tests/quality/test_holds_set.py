"""The data about what holds now: whole, consistent, and as the README of each set says. Nothing here prints a text."""

import json
from collections import Counter
from itertools import chain

from holds import DATA, HALVES, Saved, Session, find_faults, read_half
from sets import SMALL, read_material

from each import each

SETS = ("projects", "changes", "hostile")
EXPECTED = ("direct", "inference", "nothing", "statement")
HARD = {"exception", "refused", "question", "elsewhere", "quoted-or-past"}
LABELS = {
    **dict.fromkeys(("old-value", "other-value", "other-words"), "changes"),
    **dict.fromkeys((*HARD, "easy"), "holds"),
}
AIMS = {"start", "above-person", "other-project", "as-confirmed"}


def table(name: str) -> list[list[str]]:
    """Return the rows of the tables in a README, cell by cell."""
    lines = (DATA / name / "README.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


@each("half", HALVES)
def test_marks_fit_what_was_saved_and_said(half: str) -> None:
    assert list(find_faults(half)) == []


def test_small_stores_are_asked_for_what_they_hold_or_for_nothing() -> None:
    for half in HALVES:
        for made in read_material(DATA / "projects" / f"{half}.jsonl", "saved"):
            keys = {item.key for item in made.items}
            assert len(keys) == SMALL
            assert all(keys.issuperset(chain(*asked.gold)) for asked in made.questions)
            assert {bool(asked.gold) for asked in made.questions} == {False, True}


def test_projects_are_as_many_as_the_readme_says() -> None:
    stated = table("projects")
    for half in HALVES:
        rows = read_half("projects", half)
        sessions = [row for row in rows if isinstance(row, Session)]
        for project in sorted({session.project for session in sessions}):
            own = [session for session in sessions if session.project == project]
            expects = Counter(turn.expects for session in own for turn in session.turns if turn.role == "user")
            saved = sum(isinstance(row, Saved) and row.namespace == project for row in rows)
            needed = len({id for session in own for id in session.start.needs})
            assert [half, project, *map(str, (saved, len(own), *(expects[one] for one in EXPECTED), needed))] in stated
            assert 60 <= saved <= 200
            assert 3 <= len(own) <= 5


def test_changes_are_as_many_of_each_kind_as_the_readme_says() -> None:
    counts = {half: Counter(row.kind for row in read_half("changes", half)) for half in HALVES}
    stated = [row[:4] for row in table("changes")]
    for kind, label in LABELS.items():
        assert [kind, label, *(str(counts[half][kind]) for half in HALVES)] in stated
    for half in HALVES:
        rows = read_half("changes", half)
        assert [row.id for row in rows if LABELS.get(row.kind) != row.label] == []
        assert Counter(row.label for row in rows) == {"changes": 60, "holds": 60}
        assert sum(row.kind in HARD for row in rows) == 40


def test_hostile_saves_are_as_many_of_each_way_as_the_readme_says() -> None:
    counts = {half: Counter(row["way"] for row in read_half("hostile", half)) for half in HALVES}
    stated = [row[:3] for row in table("hostile")]
    for way in ("mcp", "backfill", "import", "file"):
        assert [way, *(str(counts[half][way]) for half in HALVES)] in stated
    for row in chain.from_iterable(read_half("hostile", half) for half in HALVES):
        entry = json.dumps([row.get(name) for name in ("save", "turns", "source")], ensure_ascii=False)
        assert json.dumps(row["text"], ensure_ascii=False)[1:-1] in entry.replace("\\\\", "\\"), row["id"]
        assert set(row["aims"]) | set(row["must_not"]) <= AIMS, row["id"]


def test_halves_share_no_text_and_no_file_is_large() -> None:
    for name in SETS:
        texts = [set(list_texts(name, half)) for half in HALVES]
        assert len(texts[0] & texts[1]) == 0
    assert all((DATA / name / f"{half}.jsonl").stat().st_size < 300_000 for name in SETS for half in HALVES)


def list_texts(name: str, half: str) -> list[str]:
    rows = read_half(name, half)
    if name == "hostile":
        return [row["text"] for row in rows]
    if name == "changes":
        return [row.saved.content for row in rows]
    return [row.content for row in rows if isinstance(row, Saved)]
