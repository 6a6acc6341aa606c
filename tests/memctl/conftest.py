"""Fixtures of memctl's tests: `memctl` runs a command in this process, `fake` answers it with what a test says. The
fixtures `daemon` and `process` of the whole suite listen at the same place."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl, Outcome

from configs import NO_MODEL
from memoryd.client.programs.memctl.link import AGENTS
from memoryd.client.programs.memctl.running import run
from places import make_folder
from workbench import Process


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Keep every test away from the user's daemon, data and configuration."""
    for name in ("MEMORYD_NAMESPACE", "MEMORYD_TOKEN", "NO_COLOR", "COLUMNS", *AGENTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORYD_SOCKET", str(folder / "s"))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("MEMORYD_CONFIG", str(folder / "config.toml"))


@pytest.fixture
def memctl(capfd: pytest.CaptureFixture[str]) -> Memctl:
    """Run one command in this process; no traceback may ever be printed."""

    def call(*words: str) -> Outcome:
        capfd.readouterr()
        code = run(words)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err, out + err
        assert code == 0 or err.startswith("memctl: ") or words[0] == "doctor"
        return Outcome(code, out, err)

    return call


@pytest.fixture(scope="module")
def module_process() -> Iterator[Any]:
    """One real daemon, without a model, for all tests of a module, on a folder of its own."""
    home = make_folder()
    running = Process(home, NO_MODEL).start()
    yield running
    running.stop()
    shutil.rmtree(home)


@pytest.fixture
def fake(folder: Path) -> Iterator[FakeDaemon]:
    """A daemon that says what the test tells it to."""
    os.chmod(folder, 0o700)
    daemon = FakeDaemon(folder / "s")
    os.chmod(folder / "s", 0o600)
    yield daemon
    daemon.close()
