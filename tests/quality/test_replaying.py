"""`unasked.py` on a small month, with a fake embedder, by the hooks' own functions; all is worked out by hand."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from judging import judge_all
from replaying import Rest, play, set_hooks_environment
from temporary import EvaluatedDaemon
from timeline import TimelineRow, read_rows
from unasked import judge_file

from memoryd.client.errors import Invalid
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
    remember("m5", "04T09:00", CARPENTER),
    point("prompt", "p3", "05T08:01", session="s3", content=ROOF, wanted=["m5"], nothing=False),
    say("t6", "05T08:02", "user", ROOF, "s3"),
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


def replay(start_daemon: Callable[..., Any], clock: Any, folder: Path, rows: list[TimelineRow]) -> list[Any]:
    """Replay a month on a new daemon and judge what came up."""
    daemon = start_daemon()
    worker = Worker(daemon.core)
    worker.start()
    clock.now = 0.0
    try:
        place = EvaluatedDaemon(daemon.client, lambda seconds: setattr(clock, "now", seconds))
        with set_hooks_environment(daemon.socket, folder / "hooks"):
            given = play(place, rows, RESTS)
    finally:
        worker.close()
    return judge_all(rows, given)


@pytest.mark.slow
def test_a_month_is_replayed_and_judged(
    start_daemon: Callable[..., Any], clock: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "PAUSE_S", 0.01)
    rows = read_rows(write(folder / "month.jsonl", MONTH))
    before = dict(os.environ)
    judged = replay(start_daemon, clock, folder, rows)
    assert os.environ == before
    lines = [[(line.text, line.refs, line.harms, line.helps) for line in one.lines] for one in judged]
    assert lines == [
        [
            (PLUMS, ["m1"], [], True),
            (MOVED, ["m4"], [], True),
            (f"{ROOF} (asked first)", ["t1"], [], False),
            (CARPENTER, ["t2"], [], False),
        ],
        [],  # the session was given it at its start
        [],
        [(CARPENTER, ["m5", "t2"], [], True)],
    ]
    assert [(one.got, one.had) for one in judged] == [(True, True), (False, True), (False, False), (True, True)]
    assert msgspec.to_builtins(replay(start_daemon, clock, folder, rows)) == msgspec.to_builtins(judged)


def test_what_is_no_line_of_this_data_is_refused(folder: Path) -> None:
    turn = say("t9", "06T08:00", "user", "violin", "s3")
    for row in ({**turn, "mood": "good"}, point("start", "st9", "06T08:00", harms=[{"ref": "m1"}])):
        with pytest.raises(Invalid, match="line 20 is not a line of this data"):
            read_rows(write(folder / "month.jsonl", [*MONTH, row]))
    with pytest.raises(Invalid, match="holds no test point"):
        read_rows(write(folder / "month.jsonl", MONTH[:4]))


def test_lines_that_are_not_to_be_read_are_not_printed(folder: Path) -> None:
    path = write(folder / "unseen-month.jsonl", MONTH)
    (folder / "month.jsonl").symlink_to(path)
    for named in (path, folder / "month.jsonl"):
        with pytest.raises(Invalid, match="is not to be read"):
            judge_file(named, show_lines=True)


@pytest.mark.slow
def test_a_month_runs_on_a_daemon_of_its_own(folder: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir))
    path = write(folder / "month.jsonl", MONTH)
    first, second = (judge_file(path, show_lines) for show_lines in (False, True))
    assert first == {name: value for name, value in second.items() if name != "shown"}
    assert (first["figures"]["start"].points, first["figures"]["prompt"].points) == (1, 3)
    assert PLUMS not in f"{first}"
    assert PLUMS in f"{second['shown']}"
