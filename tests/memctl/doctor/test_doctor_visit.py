"""doctor as a command: what it asks, shows and returns."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl
from findings import Doctor

from memoryd.client.errors import StorageFailed
from memoryd.client.programs.doctor.checks import AREAS
from memoryd.client.protocol import AddToken, Verify

COMMAND = [sys.executable, "-m", "memoryd.client.programs.memctl", "doctor"]


def test_a_healthy_daemon_is_well(doctor: Doctor, alive: Any) -> None:
    found = doctor()
    assert {name for name, finding in found.items() if finding["state"] == "fail"} == {"model"}, "it has none"
    assert len(found) > 15


@pytest.mark.slow
def test_what_is_the_owners_to_check_is_no_problem(doctor: Doctor, alive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with alive.client() as client:
        monkeypatch.setenv("MEMORYD_TOKEN", client.call(AddToken(name="a", namespace="acme", role="agent")).token)
    found = doctor()
    assert {name for name, finding in found.items() if finding["state"] == "fail"} == {"model"}
    assert found["jobs"]["message"].startswith("not checked: this is for the owner")


def test_checks_are_chosen_by_name_and_area(doctor: Doctor, memctl: Memctl) -> None:
    assert list(doctor("disk", "daemon", "disk")) == ["disk", "daemon"]
    assert set(doctor("files")) <= set(AREAS["Files"])
    failed = memctl("doctor", "nothing")
    assert (failed.code, "'nothing' is not a check; there are: installation," in failed.err) == (2, True)
    assert memctl("doctor", "--yes").code == 2


def test_only_what_is_wrong_is_shown_if_asked_for(memctl: Memctl, folder: Path) -> None:
    (folder / "s").write_text("a file")
    shown = memctl("doctor", "--wrong", "disk", "socket")
    assert (shown.code, "disk" in shown.out, "fix it: rm" in shown.out) == (1, False, True)
    assert "1 problem in 2 checks" in shown.out
    assert memctl("doctor", "--wrong", "environment").out == "All is well (1 check).\n"


def test_nothing_is_changed_unasked(memctl: Memctl, folder: Path) -> None:
    (folder / "data").mkdir(mode=0o755)
    refused = memctl("doctor", "data", "--fix")
    assert refused.code == 1
    assert f"chmod 0700 {folder / 'data'}" in refused.err
    assert "nothing was changed; `memctl doctor --fix --yes` applies the fixes" in refused.err
    assert (folder / "data").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("answer", "mode"), [(b"y\n", 0o700), (b"\n", 0o755), (b"no\n", 0o755)])
def test_a_person_is_asked(folder: Path, answer: bytes, mode: int) -> None:
    (folder / "data").mkdir(mode=0o755)
    person, terminal = pty.openpty()
    try:
        os.write(person, answer)
        done = subprocess.run([*COMMAND, "data", "--fix"], stdin=terminal, capture_output=True, text=True, timeout=60)
    finally:
        os.close(person)
        os.close(terminal)
    assert "Run these commands? [y/N]" in done.stderr
    assert (folder / "data").stat().st_mode & 0o777 == mode
    assert done.returncode == (0 if mode == 0o700 else 1)


def test_what_cannot_be_mended_is_told(memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text("nonsense")
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "memoryd.sqlite").touch(mode=0o600)
    failed = memctl("doctor", "daemon", "--fix", "--yes")
    assert failed.code == 1
    assert "config.toml is wrong" in failed.err
    assert "fix it: memctl up" in failed.out


@pytest.mark.slow
def test_doctor_works_when_everything_is_broken(doctor: Doctor, folder: Path) -> None:
    (folder / "config.toml").write_text("nonsense")
    (folder / "data").mkdir(mode=0o755)
    (folder / "data" / "memoryd.sqlite").write_bytes(b"nonsense" * 1000)
    (folder / "s").write_text("a file")
    states = {name: finding["state"] for name, finding in doctor().items()}
    broken = ("configuration", "daemon", "socket", "data", "database")
    assert {states[name] for name in broken} == {"fail"}


def test_a_check_that_is_refused_an_answer_is_a_finding(doctor: Doctor, told: FakeDaemon) -> None:
    told.replies[Verify] = StorageFailed("The disk is full.")
    found = doctor("daemon", "database")
    assert (found["daemon"]["state"], found["database"]["state"]) == ("ok", "fail")
    assert found["database"]["message"] == "The disk is full."
