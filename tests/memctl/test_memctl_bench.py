"""`bench eval` and `bench pairs` on small data of each kind, with a fake embedder; figures are worked out by hand."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import Memctl

from memoryd.client import Client
from memoryd.client.bench.evaluation import EvaluationStore
from memoryd.client.bench.material import EvalItem
from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations.worker import Worker

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(autouse=True)
def plain(start_daemon: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A daemon that keeps each turn as it is: figures depend on no rule about what matters."""
    daemon = start_daemon(cognition={"extract": False}, tiers={"promote_from": 0.0})
    monkeypatch.setenv("MEMORYD_SOCKET", str(daemon.socket))
    worker = Worker(daemon.core)
    worker.start()
    yield daemon
    worker.close()


def write(path: Path, rows: Sequence[Any]) -> str:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return str(path)


def timeless(value: Any) -> Any:
    """Return a report without what differs from run to run: times, and the namespace with its date."""
    if isinstance(value, list):
        return [timeless(one) for one in value]
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if not name.endswith(("_ms", "_s", "store"))}
    return value


def run_twice(memctl: Memctl, *words: str) -> Any:
    """Run a command twice; the figures are the same."""
    first, second = (timeless(memctl("bench", *words, "--here", "--json").json) for _ in range(2))
    assert first == second
    assert memctl("list", "--json").json == []
    assert memctl("tiers", "--json").json["tiers"][0]["count"] == 0
    return first


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
def test_a_conversation_is_scored_by_hand_worked_figures(memctl: Memctl, folder: Path, way: str) -> None:
    report = run_twice(memctl, "eval", write(folder / "c.jsonl", [CONVERSATION]), "--way", way)
    part = report["ways"][way]
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
    assert part["unanswerable"]["contexts"]["400"] == {
        **dict.fromkeys(("hit", "recall", "share", "tokens", "disputed"), 0.0),
        "kinds": dict.fromkeys(("answer", "neighbours", "heads", "rest"), 0.0),
        "median_tokens": 0,
        "small": 1.0,
    }


def test_conversations_may_share_a_namespace(memctl: Memctl, folder: Path) -> None:
    other = {**CONVERSATION, "id": "d", "questions": [asked("single-hop", "violin", "S3:1")]}
    other["sessions"] = [turns("S3", ("Ada", "Ben plays the violin"))]
    path = write(folder / "c.jsonl", [CONVERSATION, other])
    report = run_twice(memctl, "eval", path, "--way", "add", "--together")
    assert report["ways"]["add"]["total"]["memories"] == 5
    assert report["ways"]["add"]["by_type"]["single-hop"]["recall_1"] == 1.0
    assert {score["memories"] for score in report["questions"]} == {5}


def test_a_teams_set_is_added_and_observed(memctl: Memctl, folder: Path) -> None:
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
    unseen = [{"id": "q9", "category": "lexical", "question": "label printers", "gold": ["m2"], "language": "de"}]
    write(folder / "team" / "memories.jsonl", memories)
    write(folder / "team" / "turns.jsonl", said)
    write(folder / "team" / "questions-seen.jsonl", [{**general, **one} for one in seen])
    write(folder / "team" / "questions-unseen.jsonl", [{**general, **one} for one in unseen])
    part = run_twice(memctl, "eval", str(folder / "team"))["ways"]["team"]
    figures = [(name, one["recall_1"], one["all_5"]) for name, one in part["by_type"].items()]
    assert figures == [("multi-hop", 0.5, 1.0), ("name", 1.0, 1.0), ("short-answer", 1.0, 1.0)]
    assert list(part["by_language"]) == ["en"]
    assert part["total"]["kept"] == 1.0
    assert part["unanswerable"]["empty"] == 0.0
    other = memctl("bench", "eval", str(folder / "team"), "--half", "unseen", "--here", "--json").json
    assert [score["question"] for score in other["questions"]] == ["q9"]
    assert "--half needs" in memctl("bench", "eval", write(folder / "c", [CONVERSATION]), "--half", "seen").err


def test_questions_have_figures_of_contexts_too(memctl: Memctl, folder: Path) -> None:
    answer, other = "my bicycle is green", "the weather in Lund was fine"
    said = [{"role": "user", "content": answer, "has_answer": True}, {"role": "user", "content": other}]
    session = {"id": "s1", "date": "2023/05/20 (Sat) 02:21", "turns": said}
    line = {"id": "q", "type": "single", "question": "green bicycle", "gold_sessions": ["s1"], "sessions": [session]}
    report = run_twice(memctl, "eval", write(folder / "q.jsonl", [line]))
    assert list(report["ways"]) == ["session", "turn"]
    for way in report["ways"].values():
        assert (way["total"]["recall_1"], way["total"]["kept"]) == (1.0, 1.0)
        assert way["total"]["contexts"]["400"]["hit"] == 1.0
    assert "unanswerable" not in report["ways"]["turn"]


def test_tables_have_a_line_for_contexts_and_for_what_nothing_answers(memctl: Memctl, folder: Path) -> None:
    path = write(folder / "c.jsonl", [CONVERSATION])
    text = memctl("bench", "eval", path, "--way", "observe", "--here").out
    assert "each turn observed, sessions ended, consolidated, 4 memories" in text
    assert "2000 tokens" in text
    assert "no search result: 0.0 of 1 questions that nothing answers, 0.0 of the others" in text
    assert max(map(len, text.splitlines())) <= 100
    wrong = memctl("bench", "eval", path, "--way", "turn", "--here")
    assert (wrong.code, "use add or neighbours or observe" in wrong.err) == (2, True)


def test_pairs_are_added_and_their_links_counted(memctl: Memctl, folder: Path) -> None:
    long = "In the staging cluster of Porto the nightly upload of all invoices into the large archive"
    rows = [
        ("p1", f"{long} is enabled", f"{long} is disabled", "contradicts"),
        ("p2", "Anna owns billing", "The owner is Tom", "contradicts"),
        ("p3", "Boats need masts", "Carpenters live in Lund", "compatible"),
        ("p4", "Plums are ripe", "plums are  ripe", "compatible"),
    ]
    pairs = [dict(zip(("id", "older", "newer", "label"), row, strict=True), kind="k") for row in rows]
    report = run_twice(memctl, "pairs", write(folder / "p.jsonl", pairs), "--wrong")
    assert report["total"] == {
        "pairs": 4,
        "contradicts": 2,
        "linked": 1,
        "merged": 1,
        "precision": 1.0,
        "recall": 0.5,
    }
    assert [one["pair"]["id"] for one in report["wrong"]] == ["p2"]
    text = memctl("bench", "pairs", str(folder / "p.jsonl"), "--here").out
    assert "links: precision 100.0 %, recall 50.0 %; 1 of 4 pairs merged" in text
    assert "p2" not in text
    (folder / "none.jsonl").write_text("")
    assert "holds no pairs" in memctl("bench", "pairs", str(folder / "none.jsonl"), "--here").err


def test_what_a_memory_stands_for_is_known_by_id_by_named_turns_and_by_text(plain: Any) -> None:
    store = EvaluationStore("n")
    with plain.client("n") as client:
        assert isinstance(client, Client)
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


@pytest.mark.slow
def test_the_projects_own_set_runs_on_a_daemon_of_its_own(
    memctl: Memctl, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir))
    report = memctl("bench", "eval", str(DATA / "team"), "--limit", "12", "--json").json
    part = report["ways"]["team"]
    assert part["total"]["questions"] + part["unanswerable"]["questions"] == 12
    assert part["total"]["memories"] > 144, "memories and what was made of sessions"
    assert part["total"]["recall_10"] > 0.5
    judged = memctl("bench", "pairs", str(DATA / "pairs" / "pairs-seen.jsonl"), "--json").json
    assert (judged["total"]["pairs"], judged["total"]["contradicts"]) == (200, 90)
    assert judged["total"]["precision"] > 0.5
