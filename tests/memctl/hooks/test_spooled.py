"""up, backup and hooks uninstall send what hooks spooled while the daemon was down, and say how many calls."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_daemon import Memctl

from configs import NO_JOBS, NO_MODEL
from hosting import Agent
from memoryd.client import Client
from memoryd.client.programs.hooks import spool
from workbench import Process

SAID = ["Deploys of the api are on Tuesdays at 10:00", "Noted: Tuesdays at 10:00."]


@pytest.fixture
def spooled(memctl: Memctl, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two calls wait in a folder whose daemon is stopped, also by the end of the test."""
    monkeypatch.setenv("HOME", str(folder))
    (folder / "config.toml").write_text(NO_MODEL + NO_JOBS)
    agent = Agent("claude-code", folder, folder)
    agent.hook("prompt", prompt=SAID[0])
    agent.hook("stop", last_assistant_message=SAID[1])
    assert spool.count_waiting() == 2
    yield
    memctl("down")


def list_said(folder: Path) -> list[str]:
    with Client(socket=folder / "s", autostart=False) as client:
        return [turn.content for turn in reversed(list(client.turns()))]


@pytest.mark.usefixtures("spooled")
@pytest.mark.parametrize("command", ["up", "backup", "hooks uninstall claude-code"])
def test_what_waits_is_sent_first_and_that_is_said_once(command: str, memctl: Memctl, folder: Path) -> None:
    if command.startswith("hooks"):
        spool.append({"method": "no_call_of_hooks"})  # dropped, not sent
        os.rename(spool.path(), folder / "kept")
        memctl("up")
        os.rename(folder / "kept", spool.path())
    done = memctl(*command.split())
    assert (done.code, done.err) == (0, "memctl: sent 2 calls of hooks that waited for the daemon.\n")
    assert list_said(folder) == SAID
    assert "2 turns" in done.out or command != "backup"
    assert "calls" not in memctl(*command.split()).err


@pytest.mark.usefixtures("spooled")
def test_what_cannot_be_sent_is_said(memctl: Memctl) -> None:
    told = "memctl: 2 calls of hooks wait for the daemon; `memctl up` sends them.\n"
    assert told not in memctl("hooks", "uninstall", "claude-code", "--dry-run").err
    assert told in memctl("hooks", "uninstall", "claude-code").err
    assert told in memctl("backup", "--no-autostart").err


def test_another_memory_is_sent_nothing(
    process: Process, memctl: Memctl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "other"))
    call = {"role": "user", "content": SAID[0], "created_at": time.time()}
    spool.append({"method": "observe", "namespace": "", "session": "s", "turns": [call]})
    assert memctl("up").err == ""
    assert memctl("up", "--socket", str(process.socket)).err == ""
    assert (list_said(folder), spool.count_waiting()) == ([], 1)
