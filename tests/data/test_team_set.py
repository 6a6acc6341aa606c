"""The evaluation data in `team/` and `pairs/`: valid, consistent, and made up as their README files say."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

from each import each

HERE = Path(__file__).parent
HALVES = ("seen", "unseen")
FILES = sorted([*HERE.glob("team/*.jsonl"), *HERE.glob("pairs/*.jsonl")])
LANGUAGES = {"en", "de", "ja", "zh"}
MEMORY = {"id", "type", "created_at", "language", "content"}
TURN = {"id", "session", "role", "created_at", "language", "content"}
QUESTION = {"id", "question", "asked_at", "language", "category", "gold"}
PAIR = {"id", "older", "newer", "label", "kind", "language", "manner"}


@cache
def read(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def items():
    return read("team/memories.jsonl") + read("team/turns.jsonl")


def questions():
    return [question for half in HALVES for question in read(f"team/questions-{half}.jsonl")]


def pairs():
    return [pair for half in HALVES for pair in read(f"pairs/pairs-{half}.jsonl")]


def table(folder, first):
    """Rows of the README's table whose first column is `first`, without the two lines of its head."""
    lines = (HERE / folder / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    body = lines[start + 2 :]
    end = next((number for number, line in enumerate(body) if not line.startswith("|")), len(body))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body[:end]]


def time_of(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def assert_fields(rows, needed, optional=frozenset()):
    for row in rows:
        assert needed <= row.keys() <= needed | optional, row["id"]
        assert row["language"] in LANGUAGES, row["id"]
        assert all(row[name] for name in needed - {"gold"}), row["id"]


def test_each_file_stays_below_150_kilobytes():
    assert len(FILES) == 11
    assert all(path.stat().st_size < 150_000 for path in FILES)


def test_items_have_their_fields():
    assert_fields(read("team/memories.jsonl"), MEMORY, {"family"})
    assert_fields(read("team/turns.jsonl"), TURN, {"speaker", "small_talk", "family"})
    assert {turn["role"] for turn in read("team/turns.jsonl")} == {"user", "assistant"}
    assert all("speaker" in turn for turn in read("team/turns.jsonl") if turn["role"] == "user")


def test_questions_and_pairs_have_their_fields():
    assert_fields(questions(), QUESTION, {"alternatives", "context"})
    assert_fields(pairs(), PAIR)
    assert {pair["label"] for pair in pairs()} == {"contradicts", "compatible"}
    assert {pair["manner"] for pair in pairs()} == {"chat", "note"}


@each(("rows", "letters"), [(items, "mt"), (questions, "q"), (pairs, "p")])
def test_ids_are_unique(rows, letters):
    ids = [row["id"] for row in rows()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(rf"[{letters}]\d{{3}}", id_) for id_ in ids)


def test_no_text_comes_twice():
    for texts in ([item["content"] for item in items()], [question["question"] for question in questions()]):
        assert [text for text, count in Counter(texts).items() if count > 1] == []
    both = Counter((pair["older"], pair["newer"]) for pair in pairs())
    assert [texts for texts, count in both.items() if count > 1 or texts[0] == texts[1]] == []


def test_what_a_question_names_exists_and_nothing_is_named_twice():
    known = {item["id"]: item for item in items()}
    for question in questions():
        named = [*question["gold"], *question.get("alternatives", []), *question.get("context", [])]
        assert set(named) <= known.keys(), question["id"]
        assert len(set(named)) == len(named), question["id"]
        assert not any(known[id_].get("small_talk") for id_ in named), question["id"]


def test_only_unanswerable_questions_have_no_gold_and_multi_hop_has_two():
    wanted = {"unanswerable": 0, "multi-hop": 2}
    for question in questions():
        assert len(question["gold"]) == wanted.get(question["category"], 1), question["id"]
        if len(question["gold"]) != 1:
            assert not question.keys() & {"alternatives", "context"}, question["id"]


def test_context_comes_before_its_gold_in_the_same_session():
    turns = {turn["id"]: turn for turn in read("team/turns.jsonl")}
    for question in questions():
        for id_ in question.get("context", []):
            gold = turns[question["gold"][0]]
            assert turns[id_]["session"] == gold["session"], question["id"]
            assert turns[id_]["created_at"] < gold["created_at"], question["id"]


def test_a_short_answer_has_its_context():
    assert all(question.get("context") for question in questions() if question["category"] == "short-answer")


def test_dates_are_in_the_half_year_and_questions_come_after_it():
    times = [time_of(item["created_at"]) for item in items()]
    assert datetime(2025, 11, 1, tzinfo=UTC) <= min(times)
    assert max(times) < min(time_of(question["asked_at"]) for question in questions())
    assert {question["asked_at"][:10] for question in questions()} == {"2026-05-29"}


def test_files_are_in_the_order_of_time_and_sessions_are_not_mixed():
    memories, turns = read("team/memories.jsonl"), read("team/turns.jsonl")
    assert all(before["created_at"] <= after["created_at"] for before, after in pairwise(memories))
    assert all(before["created_at"] < after["created_at"] for before, after in pairwise(turns))
    changes = sum(before["session"] != after["session"] for before, after in pairwise(turns))
    assert len({turn["session"] for turn in turns}) == 15 == changes + 1


def test_small_talk_is_a_tenth_to_a_seventh_of_the_turns():
    turns = read("team/turns.jsonl")
    small = sum(turn.get("small_talk", False) for turn in turns)
    assert small == 25
    assert 0.10 <= small / len(turns) <= 0.15


def test_each_item_of_a_family_is_asked_for_once():
    families = Counter(item["family"] for item in items() if "family" in item)
    assert len(families) == 14
    assert set(families.values()) == {4, 5}
    asked = [question["gold"][0] for question in questions() if question["category"] == "look-alike"]
    assert sorted(asked) == sorted(item["id"] for item in items() if "family" in item)


@each(("folder", "kinds"), [("team", "category"), ("pairs", "kind")])
def test_halves_are_made_up_as_the_readme_says(folder, kinds):
    stated = {row[0]: row[-3:-1] for row in table(folder, kinds)}
    for half, column in zip(HALVES, (0, 1), strict=True):
        name = "questions" if folder == "team" else "pairs"
        counts = Counter(row[kinds] for row in read(f"{folder}/{name}-{half}.jsonl"))
        assert counts == {kind: int(numbers[column]) for kind, numbers in stated.items()}


def test_languages_are_as_the_readme_says():
    names = ("questions-seen", "questions-unseen", "memories", "turns")
    for language, *numbers in table("team", "language"):
        counted = [sum(row["language"] == language for row in read(f"team/{name}.jsonl")) for name in names]
        assert counted == [int(number) for number in numbers]


def test_files_have_as_many_lines_as_the_readme_says():
    for folder in ("team", "pairs"):
        for name, number, _ in table(folder, "file"):
            assert len(read(f"{folder}/{name.strip('`')}")) == int(number)


def test_each_kind_of_pair_has_one_label():
    stated = {row[0]: row[1] for row in table("pairs", "kind")}
    assert {pair["kind"]: pair["label"] for pair in pairs()} == stated
    assert all(pair["label"] == stated[pair["kind"]] for pair in pairs())


def test_pairs_are_made_up_as_the_readme_says():
    for half in HALVES:
        rows = read(f"pairs/pairs-{half}.jsonl")
        assert Counter(row["label"] for row in rows) == {"contradicts": 90, "compatible": 110}
        assert sum(row["kind"] == "paraphrase" for row in rows) == 10
    assert Counter(pair["language"] for pair in pairs()) == {"en": 286, "de": 41, "zh": 38, "ja": 35}
    assert sum(pair["manner"] == "chat" for pair in pairs()) == 155
