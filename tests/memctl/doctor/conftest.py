"""Fixtures of doctor's tests: `doctor` asks for checks, `alive` is a real daemon for all tests of a module."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted
from findings import Doctor

import memoryd
from memoryd.client.programs.doctor import patient
from memoryd.client.protocol import (
    GetStats,
    GetStatus,
    JobList,
    Jobs,
    ListTokens,
    ModelState,
    Status,
    TokenList,
    Verification,
    Verify,
)
from memoryd.client.protocol.workspaces import WorkspaceList, Workspaces


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which no agent is configured."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    (folder / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder / "home"))
    return folder / "home"


@pytest.fixture
def doctor(memctl: Memctl) -> Doctor:
    """Ask for checks; the outcome is their findings by name."""

    def ask(*words: str) -> dict[str, Any]:
        return {finding["name"]: finding for finding in memctl("doctor", "--json", *words).json}

    return ask


@pytest.fixture
def proc(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that doctor takes for /proc."""
    (folder / "proc").mkdir()
    monkeypatch.setattr(patient, "PROC", folder / "proc")
    return folder / "proc"


@pytest.fixture
def alive(module_process: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real daemon of this module, without a model; memctl finds it."""
    for name in ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG"):
        monkeypatch.setenv(name, module_process.environment[name])
    return module_process


@pytest.fixture
def told(fake: FakeDaemon, folder: Path) -> FakeDaemon:
    """A daemon that says that all is well; a test changes what it says."""
    status = Status(
        version=memoryd.__version__,
        protocol=1,
        pid=1,
        uptime_s=1e6,
        socket=str(folder / "s"),
        data_dir=str(folder / "data"),
        memories=3,
        pending_embeddings=0,
        model=ModelState(name="mini", state="ready", dimensions=384),
    )
    fake.replies |= {
        GetStatus: status,
        GetStats: counted(memories=3, embedded=3),
        Verify: Verification(memories=3, pending_embeddings=0),
        Jobs: JobList(jobs=[], at=0.0),
        Workspaces: WorkspaceList(workspaces=[]),
        ListTokens: TokenList(tokens=[]),
    }
    return fake
