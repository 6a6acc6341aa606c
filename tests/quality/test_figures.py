"""The figures of an evaluation, against numbers worked out by hand, and the data of each kind as memories and turns."""

import gzip
import json
from math import inf, log2
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evaluate import drop_neutral
from pairs import JudgedPair, Pair, count_figures
from scoring import (
    ContextScore,
    RankingFigures,
    Score,
    count_right,
    ndcg_at,
    percentile,
    rank_answers,
    rank_figures,
    summarise,
    summarise_unanswerable,
)
from sets import TURN_S, GoldQuestion, Material, read_material

from memoryd.client.errors import Invalid
from memoryd.client.protocol import NewTurn

A, B = frozenset({"a"}), frozenset({"b"})

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


def test_the_rank_of_gold_is_that_of_the_first_hit_that_gives_it() -> None:
    assert rank_answers([{"x"}, {"b"}, {"a", "b"}], [A, B]) == [3, 2]
    assert rank_answers([{"x"}], [A]) == [inf]
    assert rank_answers([{"x"}, {"other"}], [frozenset({"a", "other"})]) == [2], "an alternative answers as well"


def test_the_gain_is_discounted_by_rank_and_set_against_a_perfect_ranking() -> None:
    assert ndcg_at(10, [1, 2]) == pytest.approx(1.0)
    assert ndcg_at(10, [3, 2]) == pytest.approx((1 / log2(3) + 1 / 2) / (1 + 1 / log2(3)))
    assert ndcg_at(1, [1, inf]) == 1.0
    assert ndcg_at(10, [inf, inf]) == 0.0


def test_a_hit_that_gives_two_right_answers_is_no_better_than_perfect() -> None:
    assert ndcg_at(10, [1, 1]) == pytest.approx(1.0)
    assert ndcg_at(10, [3, 3]) == pytest.approx(1 / (1 + 1 / log2(3)))


def test_a_ranking_has_all_figures_and_only_zeros_where_nothing_is_right() -> None:
    found = rank_figures([{"a"}, {"x"}, {"b"}], [A, B])
    assert (found["recall_1"], found["recall_5"], found["all_5"], found["mrr"]) == (0.5, 1, 1, 1)
    assert (found["hit_1"], found["hit_5"]) == (1, 1)
    assert set(rank_figures([{"x"}], []).values()) == {0.0}


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert percentile([float(n) for n in range(100)], 0.95) == 95.0


@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz"])
def test_questions_are_read_plain_or_compressed(tmp_path: Path, name: str) -> None:
    data = msgspec.json.encode(LINE) + b"\n\n" + msgspec.json.encode(LINE) + b"\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert [found.name for found in read_material(path, "turn")] == ["q1", "q1"]


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(msgspec.json.encode(LINE) + b'\n\n{"id": 3}\n')
    with pytest.raises(Invalid, match="line 3 is not a question"):
        read_material(path, "turn")
    path.write_bytes(msgspec.json.encode(LINE) + b"\nnonsense\n")
    with pytest.raises(Invalid, match="line 2 is not a JSON object"):
        read_material(path, "turn")
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(b"nothing compressed")
    with pytest.raises(Invalid, match="not a whole gzip file"):
        read_material(packed, "turn")


def test_turns_are_observed_session_after_session_by_their_dates(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(msgspec.json.encode({**LINE, "sessions": LINE["sessions"][::-1]}))
    (made,) = read_material(path, "observe")
    assert made.way == "observe"
    assert [(item.session, item.what.content, item.text) for item in made.items] == [
        ("s1", "Hello", "Hello"),
        ("s2", "In Rome", "In Rome"),
        ("s2", "Thanks", "Thanks"),
    ]
    assert [item.what.role for item in made.items if isinstance(item.what, NewTurn)] == ["assistant", "user", "user"]
    began = 1684638000.0
    assert [item.what.created_at for item in made.items[1:]] == [began, began + 2 * TURN_S]
    assert made.questions[0].gold == (frozenset([made.items[1].key]),)


# Sets as they are published ------------------------------------------------------------------------------------------

PUBLISHED_CHAT = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "Which tea do I drink?",
    "answer": "green tea",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "I drink green tea", "has_answer": True}],
        [{"role": "user", "content": "It rains"}],
    ],
    "answer_session_ids": ["s1"],
}
PUBLISHED_CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat"}],
        "session_2_date_time": "2:00 pm on 9 May, 2023",
    },
    "qa": [{"question": "What did Ada adopt?", "answer": "a cat", "evidence": ["D1:1"], "category": 4}],
}


def publish(folder: Path, published: Any, way: str) -> Material:
    path = folder / "set.json"
    path.write_text(json.dumps([published]))
    (material,) = read_material(path, way)
    return material


def test_a_question_of_longmemeval_keeps_its_sessions_and_which_hold_the_answer(tmp_path: Path) -> None:
    sessions = publish(tmp_path, PUBLISHED_CHAT, "session")
    assert [item.key for item in sessions.items] == [("q1", "s1"), ("q1", "s2")]
    assert sessions.questions[0].gold == (frozenset({("q1", "s1")}),)
    turns = publish(tmp_path, PUBLISHED_CHAT, "turn")
    assert turns.questions[0].gold == (frozenset({("q1", 0, 0)}),)


def test_a_conversation_of_locomo_keeps_turns_and_questions(tmp_path: Path) -> None:
    made = publish(tmp_path, PUBLISHED_CONVERSATION, "add")
    assert [(item.key, item.what.content) for item in made.items] == [("D1:1", "Ada: I adopted a cat")]
    [asked] = made.questions
    assert (asked.id, asked.type, asked.gold) == ("conv-1-0", "single-hop", (frozenset({"D1:1"}),))


# Means ---------------------------------------------------------------------------------------------------------------


def make_score(question: str, **others: Any) -> Score:
    given: dict[str, Any] = {"memories": 1, "latency_ms": 0.0, **dict.fromkeys(RankingFigures.__struct_fields__, 0.0)}
    return Score(question=question, type="t", way="add", **given | others)


def test_a_summary_holds_the_means() -> None:
    whole = {"recall_1": 1.0, "recall_5": 1.0, "ndcg_10": 1.0, "mrr": 1.0}
    part = {"recall_1": 0.0, "recall_5": 0.5, "ndcg_10": 0.5, "mrr": 0.25}
    one = make_score("a", memories=10, latency_ms=2.0, kept=1.0, **whole)
    two = make_score("b", memories=20, latency_ms=4.0, kept=0.5, **part)
    total = summarise([one, two])
    assert total.kept == 0.75
    assert (total.questions, total.memories) == (2, 30)
    assert (total.recall_1, total.recall_5, total.ndcg_10, total.mrr) == (0.5, 0.75, 0.75, 0.625)
    assert (total.p50_ms, total.p95_ms) == (4.0, 4.0)


def test_first_results_are_counted_by_the_word_for_their_confidence() -> None:
    given = [(0.7, 1.0), (0.2, 1.0), (0.3, 0.0), (0.06, 0.0), (0.019, 1.0), (None, 0.0)]
    scores = [make_score("a", confidence=confidence, hit_1=right) for confidence, right in given]
    made = {word: (one.questions, one.right) for word, one in count_right(scores).items()}
    assert made == {"likely": (3, 2 / 3), "maybe": (1, 0.0), "unlikely": (1, 1.0)}


def test_contexts_are_summed_up_by_their_size() -> None:
    one = ContextScore(400, 2.0, 1.0, 0.5, 0.75, 300, {"answer": 60, "heads": 40})
    other = ContextScore(400, 3.0, tokens=50, kinds={"rest": 100}, disputed=True)
    scores = [make_score("a", empty=True, contexts=[made]) for made in (one, other)]
    made = summarise(scores).contexts["400"]
    assert (made.hit, made.recall, made.share, made.tokens) == (0.5, 0.25, 0.375, 175.0)
    assert (made.median_tokens, made.small, made.disputed) == (50, 0.5, 0.5)
    assert made.kinds == {"answer": 0.3, "neighbours": 0.0, "heads": 0.2, "rest": 0.5}
    assert summarise_unanswerable(scores).empty == 1.0


def test_links_are_set_against_the_labels_of_pairs() -> None:
    def judged(label: str, linked: bool, merged: bool = False) -> JudgedPair:
        return JudgedPair(Pair("p", "older", "newer", label), linked, merged)  # type: ignore[arg-type]

    given = [
        judged("contradicts", True),
        judged("contradicts", False),
        judged("contradicts", False),
        judged("compatible", True),
        judged("compatible", False, merged=True),
    ]
    made = count_figures(given)
    assert (made.pairs, made.contradicts, made.linked, made.merged) == (5, 3, 2, 1)
    assert (made.precision, made.recall) == (1 / 2, 1 / 3)
    assert [one.wrong for one in given] == [False, True, True, True, False]
    none = count_figures([judged("compatible", False)])
    assert (none.precision, none.recall) == (None, None)


def test_what_a_gold_turn_replies_to_takes_no_place_in_the_ranking() -> None:
    neutral, with_answer, unknown = frozenset({"t1"}), frozenset({"t1", "t2"}), frozenset[str]()
    hits: list[Any] = [("1st", neutral), ("2nd", with_answer), ("3rd", unknown)]
    for context, left in ((neutral, hits[1:]), (frozenset[str](), hits)):
        assert drop_neutral(hits, GoldQuestion("q", "name", "Who?", (with_answer,), neutral=context)) == left
