"""`bench unasked` on a small month, with a fake embedder, by the hooks' own functions; all is worked out by hand."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import Memctl

from configs import NO_MODEL
from memoryd.client.bench import judging, replaying, unasked
from memoryd.client.bench.evaluation import EvaluatedDaemon
from memoryd.client.bench.replaying import Rest
from memoryd.client.errors import Invalid
from memoryd.client.memctl.private import run_private_daemon
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.search import effects

RESTS = {"summary": Rest(600.0, 3600.0)}
PLUMS = "Plum trees are pruned in June only."
BOAT = "The sailing boat lies in the harbour of Lund."
MOVED = "The sailing boat lies in Malmö since Friday."
ROOF = "Which carpenter repaired the leaking barn roof?"
CARPENTER = "The carpenter Anders from Lund repaired the leaking barn roof."
PAY = "The salary of March came on the 28th."


def row(kind: str, at: str, namespace: str = "farm/barn", **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "namespace": namespace, "at": f"2026-05-{at}:00Z", **fields}


def remember(id: str, at: str, content: str, **fields: Any) -> dict[str, Any]:
    return row("memory", at, id=id, content=content, **{"type": "fact", "pinned": False, "supersedes": None, **fields})


def say(id: str, at: str, role: str, content: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    return row("turn", at, id=id, session=session, role=role, content=content, **fields)


def point(kind: str, id: str, at: str, **fields: Any) -> dict[str, Any]:
    return row(kind, at, id=id, **{"session": "s2", "wanted": [], "helps": [], "harms": [], **fields})


MONTH = [
    {"kind": "namespace", "name": "/", "about": "the person"},
    {"kind": "namespace", "name": "farm/barn", "about": "a farm"},
    remember("m1", "01T08:00", PLUMS, pinned=True),
    remember("m2", "01T08:01", BOAT),
    remember("m3", "01T08:02", PAY, namespace="/"),
    say("t1", "02T08:00", "user", ROOF, asks=True, answered_by="t2"),
    say("t2", "02T08:01", "assistant", CARPENTER),
    say("t3", "02T08:02", "tool", "barn roof leaking carpenter: 3 matches"),
    row("end_session", "02T08:03", session="s1"),
    remember("m4", "03T08:00", MOVED, supersedes="m2", type="decision"),
    point("start", "st1", "04T08:00", wanted=["m1", "m4"], harms=[{"ref": "m3", "why": "private"}]),
    point("prompt", "p1", "04T08:01", content=ROOF, wanted=["t2"], nothing=False),
    say("t4", "04T08:02", "user", ROOF, "s2"),
    point("prompt", "p2", "04T08:03", content="violin concert tonight", nothing=True),
    say("t5", "04T08:04", "user", "violin concert tonight", "s2"),
    row("end_session", "04T08:05", session="s2"),
    point("prompt", "p3", "05T08:01", session="s3", content=ROOF, wanted=["t2"], nothing=False),
    say("t6", "05T08:02", "user", ROOF, "s3"),
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


def replay(start_daemon: Callable[..., Any], clock: Any, folder: Path, rows: list[unasked.TimelineRow]) -> list[Any]:
    """Replay a month on a new daemon and judge what came up."""
    daemon = start_daemon()
    worker = Worker(daemon.core)
    worker.start()
    clock.now = 0.0
    try:
        place = EvaluatedDaemon(daemon.client, lambda seconds: setattr(clock, "now", seconds))
        with replaying.set_hooks_environment(daemon.socket, folder / "hooks"):
            given = replaying.replay(place, rows, RESTS)
    finally:
        worker.close()
    return judging.judge_all(rows, given)


@pytest.mark.slow
def test_a_month_is_replayed_and_judged(
    start_daemon: Callable[..., Any], clock: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "PAUSE_S", 0.01)
    rows = unasked.read_rows(write(folder / "month.jsonl", MONTH))
    before = dict(os.environ)
    judged = replay(start_daemon, clock, folder, rows)
    assert os.environ == before
    lines = [[(line.text, line.refs, line.harms, line.helps) for line in one.lines] for one in judged]
    assert lines == [
        [
            (PLUMS, ["m1"], [], True),
            (MOVED, ["m4"], [], True),
            (CARPENTER, ["t2"], [], False),
        ],
        [],  # the session was given it at its start
        [],
        [(CARPENTER, ["t2"], [], True)],
    ]
    assert [(one.got, one.had) for one in judged] == [(True, True), (False, True), (False, False), (True, True)]
    assert msgspec.to_builtins(replay(start_daemon, clock, folder, rows)) == msgspec.to_builtins(judged)


def test_lines_that_do_not_fit_together_are_refused(folder: Path) -> None:
    def problem(*more: dict[str, Any]) -> str:
        with pytest.raises(Invalid) as caught:
            unasked.read_rows(write(folder / "month.jsonl", [*MONTH, *more]))
        return str(caught.value)

    turn = say("t9", "06T08:00", "user", "violin", "s3")
    assert "the id t9 is there twice" in problem(turn, turn)
    assert "t9 is before what precedes it" in problem({**turn, "at": "2026-05-01T08:00:00Z"})
    assert "t9 is in an unknown namespace" in problem({**turn, "namespace": "sea"})
    assert "t9 names t8, which is nowhere" in problem({**turn, "answered_by": "t8"})
    assert "st9 names t9, which is not there yet" in problem(point("start", "st9", "06T08:00", wanted=["t9"]), turn)
    asked = point("prompt", "p9", "06T08:00", content="viola", nothing=True)
    assert "p9 is not followed by its turn" in problem(asked, turn)
    assert "p9 is not followed by its turn" in problem(asked)
    assert "line 19 is not a line of this data" in problem({**turn, "mood": "good"})
    assert "line 19 is not a line of this data" in problem(point("start", "st9", "06T08:00", harms=[{"ref": "m1"}]))
    only = write(folder / "month.jsonl", MONTH[:4])
    with pytest.raises(Invalid, match="holds no test point"):
        unasked.read_rows(only)


def test_lines_of_what_nobody_is_to_read_are_not_printed(memctl: Memctl, folder: Path) -> None:
    path = str(write(folder / "unseen-month.jsonl", MONTH))
    (folder / "month.jsonl").symlink_to(path)
    for words in ([path, "--verbose"], [path, "--show", "st1"], [str(folder / "month.jsonl"), "--verbose"]):
        refused = memctl("bench", "unasked", *words)
        assert (refused.code, "is not to be read" in refused.err) == (2, True)
    unknown = memctl("bench", "unasked", path, "--show", "st7", "--even-unseen")
    assert (unknown.code, "has no test point st7" in unknown.err) == (2, True)
    absent = memctl("bench", "unasked", str(folder / "none.jsonl"))
    assert (absent.code, "is not there" in absent.err) == (2, True)


@pytest.mark.slow
def test_ids_are_those_of_the_seed(folder: Path) -> None:
    def add_two(*options: str) -> list[str]:
        with run_private_daemon(options, config=NO_MODEL) as daemon, daemon.client("farm") as client:
            return [client.add(PLUMS).id, client.add(BOAT).id]

    first = add_two("--seed", "7")
    assert len(set(first)) == 2
    assert add_two("--seed", "7") == first
    assert set(add_two("--seed", "8")).isdisjoint(first)


@pytest.mark.slow
def test_a_month_runs_on_a_daemon_of_its_own(
    memctl: Memctl, folder: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir))
    path = str(write(folder / "unseen-month.jsonl", MONTH))
    first, second = (memctl("bench", "unasked", path, "--json") for _ in range(2))
    assert first.out == second.out
    assert first.json["figures"]["start"]["points"] == 1
    assert first.json["figures"]["prompt"]["points"] == 3
    assert PLUMS not in first.out
    assert PLUMS in memctl("bench", "unasked", path, "--show", "st1", "--even-unseen").out
