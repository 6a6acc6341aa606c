"""`memctl` by itself: the state of the daemon and of the project or of all, and the common commands."""

from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted, healthy

from memoryd.client import Client, protocol


@pytest.fixture(autouse=True)
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a checkout of the name `api`."""
    monkeypatch.setenv("HOME", str(folder))
    (folder / "api" / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder / "api")
    return folder / "api"


def test_it_says_what_is_known_of_the_project(memctl: Memctl, fake: FakeDaemon) -> None:
    session = protocol.LoggedSession(
        namespace="api", session="s1", began_at=0.0, ended_at=60.0, turns=4, asked="Which cache do we use?"
    )
    fake.replies |= {protocol.GetStats: counted(memories=3, turns=1), protocol.GetStatus: healthy()}
    fake.replies[protocol.GetLog] = protocol.SessionLog(sessions=[session])
    fake.replies[protocol.ListChanges] = protocol.ChangedMemories(memories=[], total=2)
    fake.replies[protocol.Links] = protocol.Disagreements(links=[])
    lines = memctl().out.splitlines()
    assert lines[:5] == [
        "api (~/api): 3 memories, 1 turn.",
        "  daemon        up 1 s; model mini, ready",
        "  to settle     2 changes (memctl changes)",
        "  recorded      no sessions: memctl hooks install AGENT",
        "  last session  1970-01-01T00:01:00Z, 4 turns: Which cache do we use?",
    ]
    assert lines[-1] == "All commands: memctl help --all. One with its options: memctl COMMAND --help"
    asked = [call for call in fake.calls if not isinstance(call, protocol.GetStatus)]
    assert {(call.namespace, call.reach) for call in asked} == {("api", "subtree")}
    shown = memctl("--json").json
    assert (shown["memories"], shown["latest_session"]["ended_at"]) == (3, "1970-01-01T00:01:00Z")


def answer_nothing(fake: FakeDaemon) -> None:
    fake.replies |= {
        protocol.GetStats: counted(),
        protocol.GetLog: protocol.SessionLog(sessions=[]),
        protocol.GetStatus: healthy(),
        protocol.ListChanges: protocol.ChangedMemories(memories=[], total=0),
        protocol.Links: protocol.Disagreements(links=[]),
    }


def test_it_says_which_agents_have_hooks_and_where_nothing_is_kept(memctl: Memctl, fake: FakeDaemon) -> None:
    answer_nothing(fake)
    memctl("hooks", "install", "codex", "--no-backfill")
    lines = memctl().out.splitlines()
    assert lines[0] == "api (~/api): no memories yet."
    assert lines[2:5] == ["  to settle     nothing", "  recorded      sessions of codex", "  last session  none yet"]


def test_changes_says_that_nothing_is_compared_until_the_model_is_there(memctl: Memctl, fake: FakeDaemon) -> None:
    answer_nothing(fake)
    assert memctl("changes").err == ""
    fetching = protocol.ModelState(name="mini", state="fetching")
    fake.replies[protocol.GetStatus] = healthy(model=fetching)
    assert memctl("changes").err.startswith("memctl: nothing is compared until the embedding model is there")


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


def test_without_a_daemon_it_says_so_and_none_is_started(memctl: Memctl, folder: Path) -> None:
    assert memctl().out.startswith("api (~/api)\n  daemon  not running: memctl up\n\n  add ")
    assert memctl("--json").json == {"namespace": "api", "daemon": False}
    assert not (folder / "s").exists()
