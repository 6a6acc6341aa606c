"""top: what stats prints, again and again, also over a restart of the daemon and in a real terminal."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted

from memoryd.client.programs.memctl import run, top
from memoryd.client.protocol import Connected, GetStats, ModelState, Runtime
from waiting import wait_until
from workbench import Process


def runtime(**fields: Any) -> Runtime:
    model = ModelState(name="mini", state="ready", dimensions=384)
    return Runtime(
        version="0.1.0",
        pid=4711,
        at=1e9,
        uptime_s=8000.0,
        cpu_s=40.0,
        rss_bytes=1,
        index_bytes=1,
        wal_bytes=1,
        model=model,
        **fields,
    )


def watch(monkeypatch: pytest.MonkeyPatch, *between: Callable[[], Any], words: Sequence[str] = ()) -> None:
    """Run top until Ctrl-C, with these done after one look each."""
    steps = iter(between)

    def sleep(seconds: float) -> None:
        assert seconds == 1.0
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(top, "time", SimpleNamespace(sleep=sleep))
    assert run(["top", *words]) == 130


def test_it_prints_what_stats_prints_again_and_again(
    memctl: Memctl, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    client = Connected(pid=1, name="\x1b[2Jevil", since=1e9 - 90, calls=1)
    fake.replies[GetStats] = first = counted(memories=2, daemon=runtime(clients=[client]))
    once = memctl("stats").out
    assert "2Jevil" in once
    second = msgspec.structs.replace(first, memories=3)
    watch(monkeypatch, lambda: fake.replies.update({GetStats: second}))
    out = capfd.readouterr().out
    assert out == f"{once}\n{memctl('stats').out}\n"
    assert "\x1b" not in out
    assert out.count("memoryd 0.1.0 runs, pid 4711") == 2


def test_json_is_a_document_each_time(
    memctl: Memctl, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.replies[GetStats] = counted(memories=2)
    watch(monkeypatch, lambda: None, words=["--json"])
    assert capfd.readouterr().out == memctl("stats", "--json").out * 2


def test_without_a_daemon_it_fails_and_starts_none(memctl: Memctl, folder: Path) -> None:
    found = memctl("top")
    assert (found.code, "memctl up" in found.err, (folder / "s").exists()) == (3, True, False)


@pytest.mark.parametrize("words", [["--interval", "0"], ["--interval", "often"]])
def test_a_wrong_interval_is_a_sentence(memctl: Memctl, words: list[str]) -> None:
    assert memctl("top", *words).code == 2


@pytest.mark.slow
def test_it_outlives_a_restart_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch, process: "Process", capfd: pytest.CaptureFixture[str]
) -> None:
    watch(monkeypatch, process.stop, process.start)
    said = [line for line in capfd.readouterr().out.splitlines() if line.startswith(("memoryd ", "No daemon"))]
    assert [line.partition(" ")[0] for line in said] == ["memoryd", "No", "memoryd", "memoryd"], "the last figures stay"
    assert said[1].startswith("No daemon answers at ")
    assert said[0].split()[4] == said[2].split()[4] != said[3].split()[4], "process ids"


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


@pytest.mark.slow
def test_in_a_real_terminal_it_follows_its_size_and_leaves_it_as_it_was(
    process: "Process", tmux: Callable[..., str]
) -> None:
    command = f"{sys.executable} -m memoryd.client.programs.memctl top --interval 0.2"
    settings = [f"{name}={value}" for name, value in process.environment.items() if name.startswith("MEMORYD_")]
    shell = f"env -u COLUMNS -u LINES {' '.join(settings)} {command}; echo ended; sleep 60"
    tmux("new-session", "-d", "-s", "t", "-x", "80", "-y", "12", shell)

    def shown() -> list[str]:
        return tmux("capture-pane", "-p", "-t", "t").rstrip("\n").split("\n")

    wait_until(lambda: shown()[0].startswith("memoryd ") and len(shown()) == 11)
    tmux("resize-window", "-t", "t", "-x", "120", "-y", "40")
    wait_until(lambda: shown()[0].startswith("memoryd ") and any(line.startswith("CALL") for line in shown()))
    tmux("send-keys", "-t", "t", "C-c")
    wait_until(lambda: "ended" in shown() and not any("memoryd " in line for line in shown()))
