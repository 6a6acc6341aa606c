"""doctor and what the daemon looks after: jobs, workspaces, tokens."""

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from findings import Doctor

from memoryd.client.programs.doctor import work
from memoryd.client.protocol import Job, JobList, JobRun, Jobs, ListTokens, ResumeJob, RunJob, Token, TokenList
from memoryd.client.protocol.workspaces import Workspace, WorkspaceList, Workspaces


def job(name: str, **fields: Any) -> Job:
    return Job(**{"name": name, "about": "", "state": "waiting", "every_s": 60.0, "deadline_s": 60.0, **fields})


def run(name: str, outcome: Any = "done", error: str = "") -> JobRun:
    return JobRun(job=name, outcome=outcome, by="hand", started_at=0.0, took_ms=1.0, error=error)


def test_jobs_that_gave_up_are_resumed(doctor: Doctor, told: FakeDaemon) -> None:
    failed = job("sweep", state="quarantined", failures=5, last=run("sweep", "failed", "The disk is full."))
    told.replies[Jobs] = JobList(jobs=[failed, job("caps", state="paused")], at=0.0)
    found = doctor("jobs")["jobs"]
    assert (found["state"], found["message"]) == ("fail", "sweep failed 5 times in a row: The disk is full.")

    def resumed() -> Job:
        told.replies[Jobs] = JobList(jobs=[job("sweep"), job("caps", state="paused")], at=0.0)
        return job("sweep")

    told.replies[ResumeJob] = resumed
    mended = doctor("jobs", "--fix", "--yes")["jobs"]
    assert (mended["mended"], mended["message"]) == (True, "caps paused, the others in order")
    assert ResumeJob(name="sweep") in told.calls


@pytest.mark.slow
def test_jobs_that_should_have_run_long_ago_are_run(doctor: Doctor, told: FakeDaemon) -> None:
    at = 1e6
    told.replies[Jobs] = JobList(jobs=[job("sweep", next_run_at=at - 7200), job("caps", next_run_at=at - 60)], at=at)
    assert doctor("jobs")["jobs"]["message"] == "sweep should have run long ago"

    def ran() -> JobRun:
        told.replies[Jobs] = JobList(jobs=[job("sweep", next_run_at=at + 60)], at=at)
        return run("sweep")

    told.replies[RunJob] = ran
    assert doctor("jobs", "--fix", "--yes")["jobs"]["mended"] is True


def test_jobs_that_are_switched_off_are_told(doctor: Doctor, alive: Any) -> None:
    found = doctor("jobs")["jobs"]
    assert (found["state"], "`enabled` is false" in found["message"]) == ("warn", True)


def test_a_workspace_whose_folder_is_gone_is_told(doctor: Doctor, memctl: Memctl, alive: Any, folder: Path) -> None:
    assert "workspaces" not in doctor("workspaces"), "there is none"
    (folder / "notes").mkdir()
    (folder / "notes" / "MEMORY.md").write_text("# Notes\n\n- we use Valkey\n")
    try:
        memctl("workspace", "add", str(folder / "notes"))
        memctl("workspace", "index")
        assert doctor("workspaces")["workspaces"]["message"] == "1 workspace in order"
        (folder / "notes" / "MEMORY.md").write_bytes(b"\0\xff\xfe\0" * 100)
        memctl("workspace", "index")
        found = doctor("workspaces")["workspaces"]
        assert (found["state"], found["fix"]) == ("warn", "memctl workspace status notes")
        shutil.rmtree(folder / "notes")
        assert doctor("workspaces")["workspaces"]["fix"] == f"memctl workspace remove {folder / 'notes'}"
    finally:
        memctl("workspace", "remove", str(folder / "notes"))


def test_too_few_watches_are_told(
    doctor: Doctor, told: FakeDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = Workspace(namespace="notes", root=str(folder), globs=[], created_at=0.0, watching="inotify", watches=9)
    told.replies[Workspaces] = WorkspaceList(workspaces=[space])
    monkeypatch.setattr(work, "WATCH_LIMIT", folder / "limit")
    (folder / "limit").write_text("10\n")
    assert doctor("workspaces")["workspaces"]["message"] == "9 of 10 watches are in use"
    (folder / "limit").write_text("100\n")
    assert doctor("workspaces")["workspaces"]["state"] == "ok"
    scanned = msgspec.structs.replace(space, watching="scanning", reason="no watches are left")
    told.replies[Workspaces] = WorkspaceList(workspaces=[scanned])
    found = doctor("workspaces")["workspaces"]
    assert found["message"] == "notes is scanned every few seconds: no watches are left"
    assert found["fix"].startswith("sudo sysctl fs.inotify.max_user_watches=524288")


@pytest.mark.slow
def test_tokens_that_nobody_uses_are_told(doctor: Doctor, told: FakeDaemon, folder: Path) -> None:
    (folder / "config.toml").write_text("[access]\nrequire_token = true\n")
    now, long_ago = time.time(), time.time() - 100 * 86400
    tokens = [
        Token(name="used", namespace="a", role="agent", created_at=long_ago, last_used_at=now),
        Token(name="new", namespace="a", role="agent", created_at=now),
        Token(name="idle", namespace="a", role="agent", created_at=long_ago),
    ]
    told.replies[ListTokens] = TokenList(tokens=tokens[:2])
    found = doctor("tokens-required")["tokens-required"]
    assert (found["state"], found["message"]) == ("ok", "2 tokens, none idle for 90 days")
    told.replies[ListTokens] = TokenList(tokens=tokens)
    found = doctor("tokens-required")["tokens-required"]
    assert (found["message"], found["fix"]) == ("idle: not used for 90 days", "memctl token revoke idle")


@pytest.mark.slow
def test_tokens_that_nobody_has_to_present_are_told(doctor: Doctor, memctl: Memctl, alive: Any) -> None:
    assert "tokens-required" not in doctor("tokens-required")
    memctl("token", "add", "alpha", "--namespace", "acme")
    try:
        assert doctor("tokens-required")["tokens-required"]["state"] == "warn"
        alive.config.write_text(f"{alive.config.read_text()}\n[access]\nrequire_token = true\n")
        assert doctor("tokens-required")["tokens-required"]["state"] == "ok"
    finally:
        alive.config.write_text(alive.config.read_text().replace("[access]\nrequire_token = true\n", ""))
        memctl("token", "revoke", "alpha")
