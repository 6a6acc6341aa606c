"""Evaluations of small data of each kind, with a fake embedder; figures are worked out by hand."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evaluate import EvaluationStore, evaluate
from pairs import Pair, count_figures, judge
from run import compare, list_sets
from scoring import make_report
from sets import HALVES, SMALL, EvalItem, read_material
from temporary import EvaluatedDaemon

from each import each
from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations.worker import Worker

HERE = Path(__file__).parent
DATA = HERE.parent / "data"


@pytest.fixture
def plain(start_daemon: Callable[..., Any]) -> Iterator[Any]:
    """A daemon that keeps each turn as it is: figures depend on no rule about what matters."""
    daemon = start_daemon(cognition={"extract": False}, tiers={"promote_from": 0.0})
    worker = Worker(daemon.core)
    worker.start()
    yield daemon
    worker.close()


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


def report_on(daemon: Any, path: Path, way: str) -> dict[str, Any]:
    """Return the report as it is, and as JSON without what differs from run to run: times."""
    scores = evaluate(EvaluatedDaemon(daemon.client), read_material(path, way))
    return make_report(path, "words", [way], scores, 1.0)


def plainly(report: Any) -> Any:
    return json.loads(msgspec.json.encode(report))


@each("half", HALVES)
def test_small_stores_are_asked_for_what_they_hold_or_for_nothing(half: str) -> None:
    for made in read_material(DATA / "projects" / f"{half}.jsonl", "saved"):
        keys = {item.key for item in made.items}
        assert len(keys) == SMALL
        assert all(keys.issuperset(chain(*asked.gold)) for asked in made.questions)
        assert {bool(asked.gold) for asked in made.questions} == {False, True}


def turns(session: str, *said: tuple[str, str]) -> dict[str, Any]:
    """A session whose turns are named by its number and theirs."""
    numbered = enumerate(said, 1)
    turns = [{"id": f"{session}:{number}", "speaker": speaker, "text": text} for number, (speaker, text) in numbered]
    return {"id": session, "date": f"1:56 pm on {session[-1]} May, 2023", "turns": turns}


def asked(category: str, question: str, *gold: str) -> dict[str, Any]:
    return {"id": question, "category": category, "question": question, "gold_turns": gold}


CONVERSATION = {
    "id": "c",
    "speakers": ["Ada", "Ben"],
    "sessions": [
        turns(
            "S1",
            ("Ada", "I planted three plum trees behind the barn"),
            ("Ben", "My sailing boat needs another mast before summer"),
        ),
        turns(
            "S2",
            ("Ada", "Since last winter the barn roof leaks badly"),
            ("Ben", "Carpenters from Lund repaired it yesterday"),
        ),
    ],
    "questions": [
        asked("single-hop", "sailing boat mast", "S1:2"),
        asked("multi-hop", "barn", "S1:1", "S2:1"),
        asked("temporal", "sailing boat summer", "S1:2", "S9:9"),  # nobody ever said S9:9
        asked("adversarial", "violin concert", "S1:1"),
    ],
}


@pytest.mark.parametrize("way", ["add", "neighbours", "observe"])
def test_a_conversation_is_scored_by_hand_worked_figures(plain: Any, folder: Path, way: str) -> None:
    part = plainly(report_on(plain, write(folder / "c.jsonl", [CONVERSATION]), way))["ways"][way]
    figures = {name: part["by_type"][name] for name in ("single-hop", "multi-hop", "temporal")}
    assert [one["recall_1"] for one in figures.values()] == [1.0, 0.5, 0.5]
    assert [one["recall_5"] for one in figures.values()] == [1.0, 1.0, 0.5]
    assert [one["all_5"] for one in figures.values()] == [1.0, 1.0, 0.0]
    assert [one["kept"] for one in figures.values()] == [1.0, 1.0, 0.5]
    assert [one["mrr"] for one in figures.values()] == [1.0, 1.0, 1.0]
    assert (part["total"]["questions"], part["total"]["memories"]) == (3, 4)
    assert part["total"]["recall_10"] == pytest.approx(2.5 / 3)
    large = part["total"]["contexts"]["2000"]
    if way != "observe":  # which vector a question and its answer have is not the matter here
        assert (large["hit"], large["recall"]) == (1.0, pytest.approx(2.5 / 3))
    assert part["unanswerable"]["questions"] == 1
    nothing = part["unanswerable"]["contexts"]["400"]
    assert {name: value for name, value in nothing.items() if name != "p50_ms"} == {
        **dict.fromkeys(("hit", "recall", "share", "tokens", "disputed"), 0.0),
        "kinds": dict.fromkeys(("answer", "neighbours", "heads", "rest"), 0.0),
        "median_tokens": 0,
        "small": 1.0,
    }


def test_a_teams_set_is_added_and_observed(plain: Any, folder: Path) -> None:
    at = "2026-05-0{}T10:00:00Z"
    (folder / "team").mkdir()
    spoken = {"session": "s", "role": "user"}
    memories = [
        {"id": "m1", "type": "fact", "created_at": at.format(1), "content": "Priya owns the billing service"},
        {"id": "m2", "type": "fact", "created_at": at.format(4), "content": "Nagoya has nine label printers"},
    ]
    said = [
        {
            "id": "t1",
            "speaker": "Tom",
            "created_at": at.format(2),
            "content": "The invoices in Porto are paid late",
            **spoken,
        },
        {"id": "t2", "created_at": at.format(3), "content": "Ling was told", "session": "s", "role": "assistant"},
    ]
    general = {"asked_at": "2026-05-29T07:01:00Z", "language": "en"}
    seen = [
        {"id": "q1", "category": "name", "question": "who owns billing", "gold": ["m2"], "alternatives": ["m1"]},
        {"id": "q2", "category": "multi-hop", "question": "billing service label printers", "gold": ["m1", "m2"]},
        {"id": "q3", "category": "short-answer", "question": "invoices in Porto", "gold": ["t1"]},
        {"id": "q4", "category": "unanswerable", "question": "violin", "gold": []},
    ]
    write(folder / "team" / "memories.jsonl", memories)
    write(folder / "team" / "turns.jsonl", said)
    write(folder / "team" / "questions-seen.jsonl", [{**general, **one} for one in seen])
    part = plainly(report_on(plain, folder / "team", "team"))["ways"]["team"]
    figures = [(name, one["recall_1"], one["all_5"]) for name, one in part["by_type"].items()]
    assert figures == [("multi-hop", 0.5, 1.0), ("name", 1.0, 1.0), ("short-answer", 1.0, 1.0)]
    assert list(part["by_language"]) == ["en"]
    assert part["total"]["kept"] == 1.0
    assert part["unanswerable"]["empty"] == 0.0


@pytest.mark.parametrize("way", ["session", "turn"])
def test_questions_have_figures_of_contexts_too(plain: Any, folder: Path, way: str) -> None:
    answer, other = "my bicycle is green", "the weather in Lund was fine"
    said = [{"role": "user", "content": answer, "has_answer": True}, {"role": "user", "content": other}]
    session = {"id": "s1", "date": "2023/05/20 (Sat) 02:21", "turns": said}
    line = {"id": "q", "type": "single", "question": "green bicycle", "gold_sessions": ["s1"], "sessions": [session]}
    part = plainly(report_on(plain, write(folder / "q.jsonl", [line]), way))["ways"][way]
    assert (part["total"]["recall_1"], part["total"]["kept"]) == (1.0, 1.0)
    assert part["total"]["contexts"]["400"]["hit"] == 1.0
    assert "unanswerable" not in part


def test_pairs_are_added_and_their_links_counted(plain: Any) -> None:
    long = "In the staging cluster of Porto the nightly upload of all invoices into the large archive"
    pairs = [
        Pair("p1", f"{long} is enabled", f"{long} is disabled", "contradicts"),
        Pair("p2", "Anna owns billing", "The owner is Tom", "contradicts"),
        Pair("p3", "Boats need masts", "Carpenters live in Lund", "compatible"),
        Pair("p4", "Plums are ripe", "plums are  ripe", "compatible"),
    ]
    judged = judge(EvaluatedDaemon(plain.client), pairs)
    assert [one.pair.id for one in judged if one.wrong] == ["p2"]
    total = count_figures(judged)
    assert (total.pairs, total.contradicts, total.linked, total.merged) == (4, 2, 1, 1)
    assert (total.precision, total.recall) == (1.0, 0.5)


def test_what_a_memory_stands_for_is_known_by_id_by_named_turns_and_by_text(plain: Any) -> None:
    store = EvaluationStore("n")
    with plain.client("n") as client:
        texts = ["Ada: a boat", "Ben: I planted three plum trees", "Ada: the roof leaks since the last winter"]
        items = [EvalItem(f"t{number}", NewTurn(role="user", content=text)) for number, text in enumerate(texts)]
        ids = [client.add(texts[0]).id, store.next_id(), None]
        for item, id in zip(items, ids, strict=True):
            store.note(item, id)
        fact = client.add("plum trees", metadata={"turns": [ids[1]]}).id
        note = client.add(f"Session s:\n{texts[2].upper()}\nand more", metadata={"turns": 3}).id
        other = client.add("Ada: a boat was sold").id  # holds a text too short to tell
        store.survey(client)
    assert store.held == {
        ids[0]: frozenset({"t0"}),
        fact: frozenset({"t1"}),
        note: frozenset({"t2"}),
        other: frozenset(),
    }
    assert store.kept == {"t0", "t1", "t2"}
    assert store.find_quoted([note]) == {"t0", "t1", "t2"}, "a summary may have sentences of all its session"
    assert store.find_quoted([fact]) == {"t1"}


def test_a_change_since_a_saved_run_is_printed_with_its_questions(plain: Any, folder: Path) -> None:
    report = plainly(report_on(plain, write(folder / "c.jsonl", [CONVERSATION]), "add"))
    assert compare(report, report)[-1] == "  0 of 4 questions changed"
    assert "questions changed" not in "".join(compare(report, None))
    before = plainly(report)
    before["ways"]["add"]["total"]["recall_10"] = 0.5
    before["questions"][2]["recall_10"] = 0.25
    lines = compare(report, before)
    assert "  recall@10                 83.3  (was 50.0, +33.3)" in lines
    assert lines[-2:] == [
        "  1 of 4 questions changed",
        "    sailing boat summer: nDCG@10 61.3, recall@10 25.0, contexts 100 · 100 · 100 · 100"
        " → nDCG@10 61.3, recall@10 50.0, contexts 100 · 100 · 100 · 100",
    ]


def test_changed_pairs_and_test_points_are_named_as_well() -> None:
    now = {"total": {"precision": None, "recall": 0.5}, "linked": {"p1": True, "p2": False}}
    then = {"total": {"precision": None, "recall": 1.0}, "linked": {"p1": True, "p2": True}}
    assert compare(now, then) == [
        "  precision                    –",
        "  recall                    50.0  (was 100.0, -50.0)",
        "  1 of 2 questions changed",
        "    p2: linked → not linked",
    ]
    point = {"id": "s1", "lines": 3, "helping": 2, "harmful": 1, "there": 1}
    figures = dict.fromkeys(("helping", "harmful", "wanted"), 0.5) | dict.fromkeys(("got", "silent"), None)
    at_start = {"points": [point], "figures": {"start": figures}}
    calmer = {**at_start, "points": [{**point, "lines": 2, "harmful": 0}]}
    lines = compare(calmer, at_start)
    assert lines[0] == "  starts helping            50.0  (was 50.0, +0.0)"
    assert lines[-2:] == [
        "  1 of 1 questions changed",
        "    s1: 3 lines, 2 helping, 1 harmful, 1 there → 2 lines, 2 helping, 0 harmful, 1 there",
    ]


def test_public_sets_that_are_not_there_are_known_and_skipped(folder: Path) -> None:
    (folder / "locomo10.json").write_text("[]")
    there = {name: measure is not None for name, measure in list_sets(folder)}
    assert (there["team"], there["locomo.observe"], there["locomo.add"]) == (True, True, True)
    assert (there["realtalk.observe"], there["longmemeval.session"]) == (False, False)
    assert not any(measure for name, measure in list_sets(None) if "." in name)


@pytest.mark.slow
def test_the_projects_own_sets_run_on_a_daemon_of_their_own(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir))

    def run(program: str, *words: str) -> Any:
        command = [sys.executable, str(HERE / program), *words, "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    part = run("evaluate.py", str(DATA / "team"), "--limit", "12")["ways"]["team"]
    assert part["total"]["questions"] + part["unanswerable"]["questions"] == 12
    assert part["total"]["memories"] > 144, "memories and what was made of sessions"
    assert part["total"]["recall_10"] > 0.5
    judged = run("pairs.py", str(DATA / "pairs" / "pairs-seen.jsonl"))
    assert (judged["total"]["pairs"], judged["total"]["contradicts"]) == (200, 90)
    assert judged["total"]["precision"] > 0.5
