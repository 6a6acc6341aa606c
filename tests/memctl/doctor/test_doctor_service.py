"""doctor and the daemon as a process."""

import fcntl
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from findings import Doctor

from configs import NO_MODEL
from memoryd.client.protocol import Done, GetStatus, Shutdown


def make_database(folder: Path) -> None:
    """Leave the file that a daemon makes at its first start."""
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "memoryd.sqlite").touch(mode=0o600)


def changed(fake: FakeDaemon, **fields: Any) -> None:
    fake.replies[GetStatus] = msgspec.structs.replace(fake.replies[GetStatus], **fields)


def test_a_daemon_that_does_not_run_is_started(doctor: Doctor, memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    make_database(folder)
    assert doctor("daemon")["daemon"]["fix"] == "memctl up"
    try:
        assert doctor("daemon", "--fix", "--yes")["daemon"]["mended"] is True
    finally:
        memctl("down")


def test_a_socket_that_is_not_to_be_trusted_is_told_and_nothing_is_started(doctor: Doctor, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "real"))
        listener.listen()
        (folder / "s").symlink_to(folder / "real")
        found = doctor("daemon", "socket")
    assert "is a symbolic link" in found["daemon"]["message"]
    assert (found["daemon"]["state"], found["daemon"]["fix"]) == ("fail", "")
    assert "socket" not in found


def test_a_daemon_of_another_version_is_replaced(
    doctor: Doctor, memctl: Memctl, told: FakeDaemon, folder: Path
) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    gone = subprocess.Popen(["true"])
    gone.wait()
    changed(told, version="0.0.1", pid=gone.pid)
    assert "the daemon is memoryd 0.0.1, memctl is" in doctor("version")["version"]["message"]

    def leave() -> Done:
        threading.Thread(target=told.close).start()
        return Done()

    told.replies[Shutdown] = leave
    try:
        assert doctor("version", "--fix", "--yes")["version"]["mended"] is True
    finally:
        memctl("down")


def test_a_lock_that_somebody_else_holds_is_told(doctor: Doctor, folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    with (folder / "data" / "memoryd.lock").open("w") as lock:
        assert "socket" not in doctor("socket"), "nobody holds it"
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = doctor("socket")["socket"]
        lock.write("/run/other.sock")
        lock.flush()
        elsewhere = doctor("socket")["socket"]["message"]
    assert elsewhere.startswith(f"process {os.getpid()} serves {folder / 'data'} at /run/other.sock; this environment")
    assert found["state"] == "fail"
    assert found["message"].startswith(f"process {os.getpid()} holds {folder / 'data'} and does not answer")
    assert found["commands"] == [], "no process is killed unasked"


@pytest.mark.usefixtures("told")
def test_a_socket_that_others_may_use_is_made_private(doctor: Doctor, folder: Path) -> None:
    assert doctor("socket")["socket"]["state"] == "ok"
    (folder / "s").chmod(0o666)
    assert doctor("socket")["socket"]["state"] == "fail"
    assert doctor("socket", "--fix", "--yes")["socket"]["mended"] is True
    folder.chmod(0o755)
    assert doctor("socket")["socket"]["message"].startswith("others may enter")


def test_a_socket_that_a_killed_daemon_left_is_taken_over(doctor: Doctor, memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "s"))
    found = doctor("socket")["socket"]
    assert (found["state"], found["fix"]) == ("warn", "memctl up")
    mended = doctor("daemon", "socket", "--fix", "--yes")
    assert [mended[name]["mended"] for name in ("daemon", "socket")] == [True, True]
    memctl("down")
    (folder / "s").write_text("a file")
    assert "is not a socket" in doctor("socket", "--fix", "--yes")["socket"]["message"]
    assert (folder / "s").exists(), "it may be anybody's"


def test_a_daemon_with_other_data_is_told(doctor: Doctor, alive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor("data-folder")["data-folder"]["state"] == "ok"
    monkeypatch.setenv("MEMORYD_DATA_DIR", "/elsewhere")
    found = doctor("data-folder")["data-folder"]
    assert (found["state"], found["fix"]) == ("warn", f"export MEMORYD_DATA_DIR={alive.data}")
