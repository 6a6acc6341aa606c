"""Fixtures of shared roots, over a real ssh and in a real PostgreSQL."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from database import Team
from joined import Joined, Shared
from machine import Machine, Pair
from standing import PostgresStanding, SshStanding

from memoryd.daemon.shared import line
from places import make_folder
from postgres_server import PostgresServer
from sshd import Sshd
from workbench import Daemon


@pytest.fixture
def sshd(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    server = Sshd(folder / "sshd")
    monkeypatch.setenv("PATH", f"{server.programs}:{os.environ['PATH']}")
    yield server
    server.stop()


@pytest.fixture
def pair(folder: Path, sshd: Sshd) -> Iterator[Pair]:
    made = Pair(folder)
    yield made
    made.stop()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a place than a person would: other suites run beside this one."""
    for module in ("remotes", "remote"):
        monkeypatch.setattr(f"memoryd.daemon.search.{module}.WAIT_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.memories.elsewhere.WAIT_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.shared.root.CHANGE_S", 60.0)
    monkeypatch.setattr("memoryd.daemon.shared.postgres.line.HUNG_S", 120.0)
    monkeypatch.setattr(line, "HUNG_S", 120.0)
    monkeypatch.setattr("memoryd.daemon.shared.shelf.AFTER_S", 0.2)


@pytest.fixture
def shared(start_daemon: Callable[..., Daemon], sshd: Sshd, patient: None) -> Iterator[Shared]:
    made = Shared(start_daemon, sshd)
    yield made
    made.close()


@pytest.fixture
def home(folder: Path, sshd: Sshd) -> Iterator[Machine]:
    machine = Machine(folder / "home")
    yield machine
    machine.process.stop()


@pytest.fixture
def laptop(folder: Path, home: Machine) -> Iterator[Machine]:
    machine = Machine(folder / "laptop")
    yield machine
    machine.process.stop()


@pytest.fixture(scope="session")
def _postgres() -> Iterator[PostgresServer]:
    folder = make_folder()
    server = PostgresServer(folder / "pg")
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def postgres(_postgres: PostgresServer) -> PostgresServer:
    """The server of the session, started again where a test ended it."""
    if _postgres.child is None:
        _postgres.start()
    return _postgres


@pytest.fixture(params=["shared", "team"])
def joined(request: pytest.FixtureRequest) -> Joined:
    """A daemon whose root lies on another machine, and one whose root lies in a database."""
    made: Joined = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def team(start_daemon: Callable[..., Daemon], postgres: PostgresServer, patient: None) -> Iterator[Team]:
    made = Team(start_daemon, postgres)
    yield made
    made.close()


@pytest.fixture(params=[SshStanding, PostgresStanding], ids=["ssh", "postgres"])
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    """Each kind of place, with a right for each of `MEMBERS`."""
    server = request.getfixturevalue("sshd" if request.param is SshStanding else "postgres")
    made = request.param(folder, server)
    yield made
    made.close()
