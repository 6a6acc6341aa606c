"""top: pictures that fit, what they show, keys, a daemon that ends and comes back, a real terminal."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_daemon import Memctl
from figures import counted
from hypothesis import given
from hypothesis import strategies as some

from memoryd.client.memctl import run
from memoryd.client.memctl.table import width
from memoryd.client.memctl.top import screen
from memoryd.client.memctl.top.picture import Sample, draw_frame
from memoryd.client.memctl.top.screen import Line, Section, share_rows, text_of
from memoryd.client.protocol import (
    AddToken,
    Connected,
    Job,
    JobRun,
    MethodStats,
    ModelState,
    Recent,
    Runtime,
    Stats,
    TierState,
)
from waiting import wait_until

if TYPE_CHECKING:
    from conftest import Daemon, Process

NOW = 1_800_000_000.0
FOOT = "q quit · s sort (calls) · p pause   every 2 s"


def method(calls: int, recent: int = 0, errors: int = 0, ms: float = 1.5) -> MethodStats:
    late = Recent(over_s=45.0, calls=recent, p50_ms=ms, p95_ms=3 * ms, p99_ms=9 * ms)
    return MethodStats(calls=calls, errors=errors, p50_ms=ms, p95_ms=2 * ms, p99_ms=4 * ms, total_s=1.0, recent=late)


def job(name: str, state: Any = "waiting", failures: int = 0, ago_s: float = 60.0) -> Job:
    last = JobRun(job=name, outcome="done", by="scheduler", started_at=NOW - ago_s, took_ms=12.3)
    return Job(
        name=name,
        about="",
        state=state,
        every_s=300.0,
        deadline_s=60.0,
        failures=failures,
        last_run_at=NOW - ago_s,
        next_run_at=NOW + 300.0 - ago_s,
        last=last,
    )


def stats(methods: dict[str, MethodStats], clients: int = 3, jobs: Sequence[Job] = (), **daemon: Any) -> Stats:
    runtime = Runtime(
        **{
            "version": "0.1.0",
            "pid": 4711,
            "at": NOW,
            "uptime_s": 8000.0,
            "cpu_s": 40.0,
            "rss_bytes": 161_000_000,
            "index_bytes": 422_000,
            "wal_bytes": 1_100_000,
            "model": ModelState(name="all-MiniLM-L6-v2", state="ready", dimensions=384),
            "queues": {"interactive": 1, "writes": 0, "vectors": 12},
            "tiers": [
                TierState(name="L0", count=12, ram_bytes=5000),
                TierState(name="hot", count=40, ram_bytes=4000),
                TierState(name="L1", count=1234, ram_bytes=540_000),
                TierState(name="L2", count=56_789, ram_bytes=24_000_000),
                TierState(name="documents", count=300, ram_bytes=130_000),
            ],
            "jobs": list(jobs),
            "clients": [
                Connected(pid=1000 + number, name=f"agent-{number}.py", since=NOW - 90, calls=number * 10)
                for number in range(clients)
            ],
            **daemon,
        }
    )
    return counted(memories=58_323, pending_embeddings=12, database_bytes=3_200_000, methods=methods, daemon=runtime)


MANY = {f"method_{number}": method(1000 - number, recent=100 - number) for number in range(30)}
JOBS = [job(f"job-{number}", ago_s=number) for number in range(10)] + [job("cluster", "quarantined", 5, 100.0)]


def drawn(now: Stats, size: tuple[int, int], before: Stats | None = None, order: str = "calls") -> list[str]:
    former = Sample(before, 0.0) if before else None
    return text_of(draw_frame(Sample(now, 2.0), former, order, size, FOOT)).split("\n")


# Pictures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (100, 30), (40, 10), (200, 60)])
def test_a_picture_fills_the_terminal_and_no_line_is_too_long(columns: int, rows: int) -> None:
    for clients in (0, 1, 200):
        lines = drawn(stats(MANY, clients, JOBS), (columns, rows))
        assert len(lines) == rows
        assert max(map(width, lines)) <= columns
        assert lines[0].startswith("memoryd 0.1.0  up 2.2 h")
        assert lines[-1].startswith("q quit")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_all_parts_are_on_the_screen(size: tuple[int, int]) -> None:
    text = "\n".join(drawn(stats(MANY, 50, JOBS), size))
    for part in ("RSS 161 MB", "database 3.2 MB (log 1.1 MB)", "L2 56,789 (24.0 MB)", "12 texts without a vector"):
        assert part in text
    for part in ("all-MiniLM-L6-v2, ready", "quarantined: cluster", "CALL ", "JOB ", "CLIENT ", "50 clients"):
        assert part in text


def test_a_picture_of_80_columns() -> None:
    methods = {"search": method(12_000, 900, 3, 2.7), "add": method(300, 90, 0, 17.0), "get": method(9, 0, 9, 0.26)}
    jobs = [job("sweep", "running"), job("caps"), job("cluster", "quarantined", 5)]
    assert drawn(stats(methods, 2, jobs), (80, 24)) == [
        "memoryd 0.1.0  up 2.2 h, RSS 161 MB, database 3.2 MB (log 1.1 MB), pid 4711",
        "calls    22/s from 2 clients",
        "tiers    L0 12 · hot 40 · L1 1,234 (540 kB) · L2 56,789 (24.0 MB) · documents 3…",
        "model    all-MiniLM-L6-v2, ready, 384 dimensions",
        "waiting  12 texts without a vector",
        "jobs     running: sweep; quarantined: cluster; next: caps in 4.0 min",
        "",
        "CALL       /S  P50 MS  P95 MS  P99 MS   CALLS  ERRORS",
        "search     20    2.70    8.10    24.3  12,000       3",
        "add       2.0    17.0    51.0     153     300       0",
        "get              0.26    0.52    1.04       9       9",
        "",
        "JOB       STATE           LAST RAN     TOOK  NEXT IN",
        "sweep     running      1.0 min ago  12.3 ms  4.0 min",
        "cluster   quarantined  1.0 min ago  12.3 ms  4.0 min",
        "caps      waiting      1.0 min ago  12.3 ms  4.0 min",
        "",
        "CLIENT       PID  THERE FOR  CALLS  /S  UNDER WAY",
        "agent-1.py  1001    1.5 min     10              0",
        "agent-0.py  1000    1.5 min      0              0",
        "",
        "",
        "",
        FOOT,
    ]


def test_rates_are_those_since_the_picture_before_unless_it_was_another_daemon() -> None:
    before, now = stats({"search": method(100, 5)}), stats({"search": method(160, 5), "add": method(4)}, cpu_s=41.0)
    lines = drawn(now, (80, 24), before)
    assert "CPU 50%" in lines[0]
    assert lines[1].startswith("calls    32/s")
    assert next(line for line in lines if line.startswith("search")).split()[1] == "30"
    other = drawn(stats({"search": method(160, 45)}, pid=9), (80, 24), before)
    assert "CPU" not in other[0]
    assert other[1].startswith("calls    1.0/s")


@pytest.mark.parametrize(
    ("order", "first"), [("calls", "often"), ("p95", "slow"), ("errors", "wrong"), ("time", "often")]
)
def test_calls_are_ordered_by_what_was_asked_for(order: str, first: str) -> None:
    methods = {
        "often": method(500, 400),
        "slow": method(3, 3, ms=900.0),
        "wrong": method(9, 1, errors=9),
    }
    lines = drawn(stats(methods), (80, 24), order=order)
    assert lines[lines.index(next(line for line in lines if line.startswith("CALL"))) + 1].startswith(first)


def test_what_needs_somebody_comes_first_among_jobs() -> None:
    lines = drawn(stats({}, 0, JOBS), (80, 24))
    place = next(number for number, line in enumerate(lines) if line.startswith("JOB"))
    assert lines[place + 1].startswith("cluster")
    assert "no calls yet" in lines
    assert "nobody" in lines


def test_without_a_daemon_the_last_picture_stays_under_the_reason() -> None:
    gone = Sample(stats(MANY, 3, JOBS), 5.0, "no daemon answers at /run/s")
    lines = text_of(draw_frame(gone, None, "calls", (80, 24), FOOT)).split("\n")
    assert lines[0] == "no daemon answers at /run/s"
    assert lines[1].startswith("memoryd 0.1.0")
    assert len(lines) == 24
    nothing = text_of(draw_frame(Sample(None, 0.0, "no daemon answers at /run/s"), None, "calls", (80, 24), FOOT))
    assert nothing.split("\n")[0] == "no daemon answers at /run/s"
    assert len(nothing.split("\n")) == 24


counts = some.integers(0, 30)


@given(some.lists(some.tuples(counts, some.integers(1, 8)), min_size=1, max_size=4), some.integers(1, 60))
def test_rows_are_shared_within_the_room_and_the_least_come_first(given_rows: list[tuple[int, int]], room: int) -> None:
    sections = [Section(("A",), [["x"]] * rows, [()] * rows, least) for rows, least in given_rows]
    shown = share_rows(sections, room)
    free = room - 2 * len(sections) + 1
    assert all(got <= max(len(section.rows), 1) for got, section in zip(shown, sections, strict=True))
    assert sum(shown) == max(0, min(free, sum(max(len(section.rows), 1) for section in sections)))
    if sum(min(max(rows, 1), least) for rows, least in given_rows) <= free:
        assert all(got >= min(max(rows, 1), least) for got, (rows, least) in zip(shown, given_rows, strict=True))


def test_names_that_would_steer_a_terminal_do_not() -> None:
    client = Connected(pid=1, name="\x1b[2J\nevil" + "記" * 100, since=NOW, calls=1)
    lines = drawn(_with_client(client), (80, 24))
    assert max(map(width, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def _with_client(client: Connected) -> Stats:
    found = stats({}, 0)
    assert found.daemon is not None
    found.daemon.clients = [client]
    return found


# The command ---------------------------------------------------------------------------------------------------------


def test_once_prints_one_picture_of_the_daemon(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client() as client:
        client.add("A fact")
        out = memctl("top", "--once").out
    assert out.startswith("memoryd ")
    assert "\nadd " in out
    assert " · L1 1 · " in out
    assert "\x1b" not in out
    assert "q quit" not in out


def test_json_is_one_document(memctl: Memctl, daemon: "Daemon") -> None:
    found = memctl("top", "--json").json
    assert found["daemon"]["pid"] == os.getpid()
    assert {"methods", "memories"} <= set(found)


def test_without_a_daemon_once_fails_and_starts_none(memctl: Memctl, folder: Path) -> None:
    found = memctl("top", "--once")
    assert found.code == 3
    assert "memctl up" in found.err
    assert not (folder / "s").exists()


def test_an_agent_is_told_that_top_is_not_for_it(
    memctl: Memctl, daemon: "Daemon", monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon.client() as client:
        monkeypatch.setenv("MEMORYD_TOKEN", client.call(AddToken(name="alpha", namespace="a")).token)
    found = memctl("top", "--once")
    assert found.code == 1
    assert "machine's user" in found.err


@pytest.mark.parametrize("words", [["--interval", "0"], ["--interval", "often"], ["--sort", "name"]])
def test_a_wrong_option_is_a_sentence(memctl: Memctl, words: list[str]) -> None:
    assert memctl("top", *words).code == 2


class Shown:
    """A screen that keeps its pictures and presses the keys that a test gives it."""

    live = True

    def __init__(self, keys: Sequence[Callable[[], str]]) -> None:
        self.pictures: list[list[str]] = []
        self._keys = iter(keys)

    def draw(self, lines: Sequence[Line]) -> None:
        self.pictures.append(text_of(lines).split("\n"))

    def key(self, seconds: float) -> str:
        return next(self._keys)()

    def __enter__(self) -> "Shown":
        return self

    def __exit__(self, *failure: object) -> None:
        pass


def watched(monkeypatch: pytest.MonkeyPatch, *keys: Callable[[], str]) -> list[list[str]]:
    shown = Shown([*keys, lambda: "q"])
    monkeypatch.setattr(screen, "open_screen", lambda: shown)
    monkeypatch.setattr(screen, "wait_for_key", shown.key)
    monkeypatch.setattr(screen, "terminal_size", lambda: (80, 24))
    assert run(["top", "--interval", "0.1"]) == 0
    return shown.pictures


def _wait() -> str:
    time.sleep(0.11)
    return ""


def test_keys_sort_pause_and_quit(monkeypatch: pytest.MonkeyPatch, daemon: "Daemon") -> None:
    pictures = watched(monkeypatch, lambda: "s", lambda: "p", _wait, lambda: "p", _wait)
    feet = [lines[-1] for lines in pictures]
    assert feet[0] == "q quit · s sort (calls) · p pause   every 0.1 s"
    assert "sort (p95)" in feet[1]
    assert feet[2].endswith("paused")
    assert pictures[2][0] == pictures[3][0]  # nothing was asked meanwhile
    assert len(pictures) == 6


def test_top_outlives_a_restart_of_the_daemon(monkeypatch: pytest.MonkeyPatch, process: "Process") -> None:
    def stop() -> str:
        process.stop()
        return _wait()

    def start() -> str:
        process.start()
        return _wait()

    pictures = watched(monkeypatch, _wait, stop, _wait, start, _wait)
    starts = [lines[0].partition(" at ")[0] for lines in pictures]
    assert starts[0].startswith("memoryd ")
    assert "no daemon answers" in starts
    assert starts[-1].startswith("memoryd ")
    assert starts.index("no daemon answers") > 0


def test_a_terminal_is_drawn_on_in_place_and_is_as_before_afterwards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    with screen.open_screen() as shown:
        shown.draw(draw_frame(Sample(stats(MANY, 3, JOBS), 0.0), None, "calls", (80, 24), FOOT))
    out = capsys.readouterr().out
    assert "all-MiniLM-L6-v2" in out
    assert out.index("\x1b[?1049h") < out.index("all-MiniLM-L6-v2") < out.rindex("\x1b[?1049l")
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h") > 0


# A real terminal -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tmux(folder: Path) -> Iterator[Callable[..., str]]:
    """Run tmux on a server of its own."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: apt-get install tmux")

    def call(*words: str) -> str:
        command = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    yield call
    subprocess.run(["tmux", "-S", str(folder / "tmux"), "kill-server"], check=False, capture_output=True, timeout=20)


def test_top_in_a_real_terminal_follows_its_size_and_ends_with_q(process: "Process", tmux: Callable[..., str]) -> None:
    command = f"{sys.executable} -m memoryd.client.memctl top --interval 0.2"
    settings = [f"{name}={value}" for name, value in process.environment.items() if name.startswith("MEMORYD_")]
    shell = f"env -u COLUMNS -u LINES {' '.join(settings)} {command}; echo ended; sleep 60"
    tmux("new-session", "-d", "-s", "t", "-x", "80", "-y", "24", shell)

    def shown() -> list[str]:
        return tmux("capture-pane", "-p", "-t", "t").rstrip("\n").split("\n")

    wait_until(lambda: shown()[-1].startswith("q quit"))
    assert len(shown()) == 24
    assert any(line.startswith("CALL") for line in shown())
    tmux("resize-window", "-t", "t", "-x", "120", "-y", "40")
    wait_until(lambda: len(shown()) == 40 and any("CALL" in line and "JOB" in line for line in shown()))
    tmux("send-keys", "-t", "t", "q")
    wait_until(lambda: "ended" in shown() and not any("CALL" in line for line in shown()))
