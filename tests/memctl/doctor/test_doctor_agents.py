"""doctor and the ways in for coding agents."""

import os
from pathlib import Path

import pytest
from fake_daemon import Memctl
from findings import Doctor

from configs import NO_MODEL
from memoryd.client.extras import advise
from memoryd.client.programs.doctor import agents
from memoryd.client.programs.hooks import folders, spool
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import project_namespace


def test_hooks_that_call_a_memctl_that_is_gone_are_installed_again(doctor: Doctor, memctl: Memctl, home: Path) -> None:
    assert "hooks" not in doctor("hooks"), "no agent has any"
    memctl("hooks", "install", "claude-code")
    assert doctor("hooks")["hooks"]["message"] == "installed for claude-code"
    settings = home / ".claude" / "settings.json"
    good = settings.read_text()
    settings.write_text(good.replace("/memctl", "/gone/memctl"))
    found = doctor("hooks")["hooks"]
    assert (found["state"], found["fix"]) == ("fail", "memctl hooks install claude-code")
    assert doctor("hooks", "--fix", "--yes")["hooks"]["mended"] is True
    assert settings.read_text() == good


def test_a_file_of_an_agent_that_does_not_parse_is_told(doctor: Doctor, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "hooks.json").write_text("nonsense")
    found = doctor("hooks")["hooks"]
    assert (found["state"], found["fix"]) == ("warn", "memctl hooks status")
    assert found["message"].startswith(f"{home}/.cursor/hooks.json: ")


def test_calls_that_wait_for_the_daemon_are_told(doctor: Doctor, memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    assert "hooks" not in doctor("hooks")
    spool.append({"method": "end_session", "namespace": "", "session": "s"})
    found = doctor("hooks")["hooks"]
    assert (found["message"], found["fix"]) == ("1 call of a hook waits for the daemon", "memctl up")
    try:
        assert doctor("hooks", "--fix", "--yes")["hooks"]["mended"] is True
    finally:
        memctl("down")


def test_a_table_of_projects_that_cannot_be_read_is_told(doctor: Doctor, folder: Path, home: Path) -> None:
    assert "projects" not in doctor("projects"), "none was met"
    (home / "api").mkdir()
    project_namespace(home / "api")
    assert doctor("projects")["projects"]["message"] == "1 project: memctl project list"
    table = folder / "data" / projects.FILE
    table.write_text("{")
    found = doctor("projects")["projects"]
    assert (found["state"], found["fix"]) == ("fail", f"mv {table} {table}.damaged")
    assert found["message"].startswith(f"The table of projects {table} is damaged (")
    table.unlink()
    table.mkdir()
    assert doctor("projects")["projects"]["message"] == f"{table} cannot be read: Is a directory"


def test_a_spool_that_is_nearly_full_is_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append({"method": "status"})
    spool.append({"method": "status"})
    monkeypatch.setattr(spool, "MAX_BYTES", 40)
    assert "2 calls of hooks wait, and there is hardly room" in doctor("hooks")["hooks"]["message"]


def test_a_missing_package_for_the_server_that_agents_start_is_told(
    doctor: Doctor, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "find_spec", lambda name: None)
    assert "mcp" not in doctor("mcp"), "nobody starts it"
    memctl("hooks", "install", "gemini")
    found = doctor("mcp")["mcp"]
    assert (found["state"], found["fix"]) == (
        "fail",
        advise("mcp"),
    )


def test_hooks_in_a_project_are_looked_at_too(doctor: Doctor, memctl: Memctl, home: Path) -> None:
    project = home / "api"
    project.mkdir()
    memctl("hooks", "install", "claude-code", "--project", str(project))
    assert doctor("hooks")["hooks"]["message"] == "installed in 1 project"
    memctl("hooks", "install", "cursor")
    assert doctor("hooks")["hooks"]["message"] == "installed for cursor and in 1 project"
    settings = project / ".claude" / "settings.local.json"
    good = settings.read_text()
    settings.write_text(good.replace("/memctl", "/gone/memctl"))
    found = doctor("hooks")["hooks"]
    assert (found["state"], found["fix"]) == ("fail", f"memctl hooks install claude-code --project {project}")
    assert doctor("hooks", "--fix", "--yes")["hooks"]["mended"] is True
    assert settings.read_text() == good


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user for a moment")
def test_a_current_folder_that_this_user_may_not_enter_is_nobodys_project(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.chdir(closed)
    assert folders.list_current() == [closed]
    os.seteuid(65534)
    try:
        assert folders.list_current() == []
    finally:
        os.seteuid(0)
