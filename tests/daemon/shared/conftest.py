"""Fixtures of shared roots, over a real ssh."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from joined import Shared

from memoryd.daemon.shared import line
from sshd import Sshd
from workbench import Daemon


@pytest.fixture
def sshd(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    server = Sshd(folder / "sshd")
    monkeypatch.setenv("PATH", f"{server.programs}:{os.environ['PATH']}")
    yield server
    server.stop()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a place than a person would: other suites run beside this one."""
    for module in ("remotes", "remote"):
        monkeypatch.setattr(f"memoryd.daemon.search.{module}.WAIT_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.memories.elsewhere.WAIT_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.shared.root.CHANGE_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.shared.sending.CHANGE_S", 60.0)
    monkeypatch.setattr(line, "HUNG_S", 120.0)
    monkeypatch.setattr("memoryd.daemon.shared.shelf.AFTER_S", 0.2)


@pytest.fixture
def shared(start_daemon: Callable[..., "Daemon"], sshd: Sshd, patient: None) -> Iterator[Shared]:
    made = Shared(start_daemon, sshd)
    yield made
    made.close()
