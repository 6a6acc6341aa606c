"""`memctl` by itself: in a project what is known of it, without a daemon one sentence, elsewhere the help."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted

from memoryd.client import Client, protocol


@pytest.fixture(autouse=True)
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a checkout of the name `api`."""
    monkeypatch.setenv("HOME", str(folder))
    (folder / "api" / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder / "api")
    return folder / "api"


HEALTHY = protocol.Status(
    version="0.1.0",
    protocol=1,
    pid=1,
    uptime_s=1.0,
    socket="",
    data_dir="",
    memories=0,
    pending_embeddings=0,
    model=protocol.ModelState(name="mini", state="ready"),
)


def test_it_says_what_is_known_of_the_project(memctl: Memctl, fake: FakeDaemon) -> None:
    session = protocol.LoggedSession(
        namespace="api", session="s1", began_at=0.0, ended_at=60.0, turns=4, asked="Which cache do we use?"
    )
    fake.replies |= {protocol.GetStats: counted(memories=3, turns=1), protocol.GetStatus: HEALTHY}
    fake.replies[protocol.GetLog] = protocol.SessionLog(sessions=[session])
    fake.replies[protocol.ListChanges] = protocol.ChangedMemories(memories=[], total=2)
    assert memctl().out.splitlines() == [
        "api (~/api): 3 memories, 1 turn.",
        "  latest session  1970-01-01T00:01:00Z, 4 turns: Which cache do we use?",
        "  changes         2 saved memories to settle: memctl changes",
        "  hooks           none; `memctl hooks install AGENT` adds them",
        'Next: memctl search "…", memctl log, memctl list. All commands: memctl --help',
    ]
    asked = [call for call in fake.calls if not isinstance(call, protocol.GetStatus)]
    assert {(call.namespace, call.reach) for call in asked} == {("api", "subtree")}
    shown = memctl("--json").json
    assert (shown["memories"], shown["latest_session"]["ended_at"]) == (3, "1970-01-01T00:01:00Z")


def test_it_says_which_agents_have_hooks_and_what_to_do_where_nothing_is_kept(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies |= {protocol.GetStats: counted(), protocol.GetLog: protocol.SessionLog(sessions=[])}
    fake.replies |= {protocol.GetStatus: HEALTHY, protocol.ListChanges: protocol.ChangedMemories(memories=[], total=0)}
    memctl("hooks", "install", "codex", "--no-backfill")
    lines = memctl().out.splitlines()
    assert lines[0] == "api (~/api): nothing is kept yet."
    assert lines[1:3] == ["  latest session  none yet", "  hooks           codex"]
    assert lines[3].startswith('Next: memctl add "…"')


def test_a_pause_is_shown(memctl: Memctl, client: Client, folder: Path) -> None:
    for command in (("observe", "off", "--folder", str(folder)), ("observe", "off")):
        memctl(*command)
    for command in ((), ("status",), ("hooks", "status")):
        assert "paused everywhere since 20" in memctl(*command).out, command
    memctl("observe", "on")
    for command in ((), ("status",), ("hooks", "status")):
        assert f"paused in {folder}; see `memctl observe status`" in memctl(*command).out, command
    memctl("observe", "on", "--folder", str(folder))
    assert "paused" not in memctl().out


def test_without_a_daemon_it_is_one_sentence_and_none_is_started(memctl: Memctl, folder: Path) -> None:
    assert memctl().out == "No daemon runs; start one with `memctl up`, and `memctl` says what it knows of api.\n"
    assert memctl("--json").json == {"namespace": "api", "daemon": False}
    assert not (folder / "s").exists()


def test_outside_a_project_it_is_the_help(memctl: Memctl, fake: FakeDaemon, monkeypatch: Any) -> None:
    monkeypatch.chdir("/")
    assert memctl().out.startswith("usage: memctl COMMAND")
    assert memctl("--json").code == 2
    assert fake.calls == []
