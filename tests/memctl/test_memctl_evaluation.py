"""The figures of `bench eval`, against numbers worked out by hand, and the data as memories."""

import gzip
from math import log2
from pathlib import Path

import msgspec
import pytest

from memoryd.client.errors import Invalid
from memoryd.client.memctl.bench.dataset import Question, by_session, by_turn, questions
from memoryd.client.memctl.bench.evaluation import Score, summary
from memoryd.client.memctl.bench.metrics import hit_at, ndcg_at, percentile, recall_at, reciprocal_rank

GOLD = frozenset({"a", "b"})

LINE = {
    "id": "q1",
    "type": "single",
    "question": "Where?",
    "question_date": "2023/05/22 (Mon) 10:00",
    "gold_sessions": ["s2"],
    "sessions": [
        {"id": "s1", "date": "2023/05/20 (Sat) 02:21", "turns": [{"role": "assistant", "content": "Hello"}]},
        {
            "id": "s2",
            "date": "2023/05/21 (Sun) 03:00",
            "turns": [
                {"role": "user", "content": "In Rome", "has_answer": True},
                {"role": "assistant", "content": " "},
                {"role": "user", "content": "Thanks"},
            ],
        },
    ],
}


@pytest.fixture
def question() -> Question:
    return msgspec.convert(LINE, Question)


def test_recall_counts_the_share_of_right_answers_found() -> None:
    assert recall_at(1, ["a", "x", "b"], GOLD) == 0.5
    assert recall_at(3, ["a", "x", "b"], GOLD) == 1.0
    assert recall_at(3, [], GOLD) == 0.0


def test_a_hit_is_any_right_answer() -> None:
    assert hit_at(2, ["x", "b"], GOLD) == 1.0
    assert hit_at(1, ["x", "b"], GOLD) == 0.0


def test_the_gain_is_discounted_by_rank_and_set_against_a_perfect_ranking() -> None:
    assert ndcg_at(10, ["a", "b"], GOLD) == pytest.approx(1.0)
    assert ndcg_at(10, ["x", "a", "b"], GOLD) == pytest.approx((1 / log2(3) + 1 / 2) / (1 + 1 / log2(3)))
    assert ndcg_at(1, ["a"], GOLD) == 1.0
    assert ndcg_at(10, [], GOLD) == 0.0


def test_the_reciprocal_rank_is_of_the_first_right_answer() -> None:
    assert reciprocal_rank(["x", "b", "a"], GOLD) == 0.5
    assert reciprocal_rank(["x"], GOLD) == 0.0


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert percentile([float(n) for n in range(100)], 0.95) == 95.0


def test_a_session_is_what_the_user_said_and_its_date_stays_out_of_the_text(question: Question) -> None:
    material = by_session(question)
    assert [item.key for item in material.items] == ["s2"]
    memory = material.items[0].memory
    assert memory.content == "In Rome\nThanks"
    assert memory.created_at == 1684638000.0
    assert material.gold == {"s2"}


def test_a_turn_keeps_its_speaker_and_knows_where_it_stood(question: Question) -> None:
    material = by_turn(question)
    assert [item.memory.content for item in material.items] == ["assistant: Hello", "user: In Rome", "user: Thanks"]
    assert material.items[1].memory.metadata == {"session": "s2", "turn": 0, "role": "user"}
    assert material.gold == {material.items[1].key}


@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz"])
def test_questions_are_read_plain_or_compressed(tmp_path: Path, name: str) -> None:
    data = msgspec.json.encode(LINE) + b"\n\n" + msgspec.json.encode(LINE) + b"\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert [found.id for found in questions(path)] == ["q1", "q1"]


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(msgspec.json.encode(LINE) + b'\n{"id": 3}\n')
    with pytest.raises(Invalid, match="line 2 is not a question"):
        list(questions(path))
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(b"nothing compressed")
    with pytest.raises(Invalid, match="not a whole gzip file"):
        list(questions(packed))


def test_a_date_that_is_none_is_named(question: Question) -> None:
    question.sessions[1].date = "yesterday"
    with pytest.raises(Invalid, match="yesterday"):
        by_turn(question)


def test_a_summary_holds_the_means() -> None:
    one = Score("a", "t", "turn", 10, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0)
    two = Score("b", "t", "turn", 20, 0.0, 0.5, 1.0, 1.0, 0.5, 0.25, 4.0)
    total = summary([one, two])
    assert (total.questions, total.memories) == (2, 30)
    assert (total.recall_1, total.recall_5, total.ndcg_10, total.mrr) == (0.5, 0.75, 0.75, 0.625)
    assert (total.p50_ms, total.p95_ms) == (4.0, 4.0)
