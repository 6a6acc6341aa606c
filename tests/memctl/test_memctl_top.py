"""top: what stats prints, again and again, also over a restart of the daemon."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted

from memoryd.client.programs.memctl import top
from memoryd.client.programs.memctl.running import run
from memoryd.client.protocol import Connected, GetStats, ModelState, Runtime
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


@pytest.mark.slow
def test_it_outlives_a_restart_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch, process: "Process", capfd: pytest.CaptureFixture[str]
) -> None:
    watch(monkeypatch, process.stop, process.start)
    said = [line for line in capfd.readouterr().out.splitlines() if line.startswith(("memoryd ", "No daemon"))]
    assert [line.partition(" ")[0] for line in said] == ["memoryd", "No", "memoryd", "memoryd"], "the last figures stay"
    assert said[1].startswith("No daemon answers at ")
    assert said[0].split()[4] == said[2].split()[4] != said[3].split()[4], "process ids"
