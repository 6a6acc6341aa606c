"""doctor and the daemon as a process."""

import fcntl
import os
import resource
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
from memoryd.client.doctor import service
from memoryd.client.protocol import Done, GetStatus, Shutdown, ThreadState


def make_database(folder: Path) -> None:
    """Leave the file that a daemon makes at its first start."""
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "memoryd.sqlite").touch(mode=0o600)


def changed(fake: FakeDaemon, **fields: Any) -> None:
    fake.replies[GetStatus] = msgspec.structs.replace(fake.replies[GetStatus], **fields)


def test_after_an_installation_there_is_no_daemon_yet_which_is_well(doctor: Doctor) -> None:
    assert doctor("daemon")["daemon"]["state"] == "ok"


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
        found = doctor("daemon", "stale-socket")
    assert "is a symbolic link" in found["daemon"]["message"]
    assert (found["daemon"]["state"], found["daemon"]["fix"]) == ("fail", "")
    assert "stale-socket" not in found


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
        assert "instance" not in doctor("instance"), "nobody holds it"
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = doctor("instance")["instance"]
        lock.write("/run/other.sock")
        lock.flush()
        elsewhere = doctor("instance")["instance"]["message"]
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
    found = doctor("stale-socket")["stale-socket"]
    assert (found["state"], found["fix"]) == ("warn", "memctl up")
    mended = doctor("daemon", "stale-socket", "--fix", "--yes")
    assert [mended[name]["mended"] for name in ("daemon", "stale-socket")] == [True, True]
    memctl("down")
    (folder / "s").write_text("a file")
    assert "is not a socket" in doctor("stale-socket", "--fix", "--yes")["stale-socket"]["message"]
    assert (folder / "s").exists(), "it may be anybody's"


def test_a_daemon_with_other_data_is_told(doctor: Doctor, alive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor("data-folder")["data-folder"]["state"] == "ok"
    monkeypatch.setenv("MEMORYD_DATA_DIR", "/elsewhere")
    found = doctor("data-folder")["data-folder"]
    assert (found["state"], found["fix"]) == ("warn", f"export MEMORYD_DATA_DIR={alive.data}")


def test_a_daemon_near_its_limits_is_told(doctor: Doctor, told: FakeDaemon) -> None:
    assert doctor("load")["load"]["state"] == "ok"
    changed(told, connections=500)
    assert "500 of 512 connections" in doctor("load")["load"]["message"]
    changed(told, connections=5, queued={"interactive": 250, "bulk": 0})
    assert "250 of 256 calls wait" in doctor("load")["load"]["message"]


def test_little_memory_is_told(
    doctor: Doctor, told: FakeDaemon, folder: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(told, rss_bytes=900_000_000, pid=7)
    (proc / "7").mkdir()
    (proc / "7" / "cgroup").write_text("0::/user.slice/memoryd.service\n")
    (proc / "meminfo").write_text("MemTotal: 8000000 kB\nMemAvailable: 100000 kB\n")
    monkeypatch.setattr(service, "GROUPS", folder / "groups")
    (folder / "groups" / "user.slice" / "memoryd.service").mkdir(parents=True)
    assert doctor("memory")["memory"]["message"] == "the machine has 102 MB of memory left"
    (folder / "groups" / "user.slice" / "memoryd.service" / "memory.max").write_text("max\n")
    (folder / "groups" / "user.slice" / "memory.max").write_text("1000000000\n")
    assert "900 MB of the 1.0 GB that its control group may" in doctor("memory")["memory"]["message"]


def test_memory_that_was_swapped_out_is_told(doctor: Doctor, told: FakeDaemon, proc: Path) -> None:
    changed(told, pid=7)
    (proc / "7").mkdir()
    (proc / "7" / "status").write_text("Name: memoryd\nVmSwap:\t  60000 kB\n")
    assert doctor("swap")["swap"]["message"] == "61.4 MB of it are swapped out: calls wait for the disk"


def test_a_low_limit_of_open_files_is_told(doctor: Doctor, alive: Any) -> None:
    before = resource.prlimit(alive.child.pid, resource.RLIMIT_NOFILE)
    try:
        resource.prlimit(alive.child.pid, resource.RLIMIT_NOFILE, (256, before[1]))
        found = doctor("open-files")["open-files"]
        resource.prlimit(alive.child.pid, resource.RLIMIT_NOFILE, (4096, before[1]))
        assert doctor("open-files")["open-files"]["state"] == "ok"
    finally:
        resource.prlimit(alive.child.pid, resource.RLIMIT_NOFILE, before)
    assert found["state"] == "warn"
    assert "may open 256 files" in found["message"]


def test_errors_in_the_log_are_told(doctor: Doctor, folder: Path) -> None:
    (folder / "data").mkdir()
    log = folder / "data" / "memoryd.log"
    log.write_text('level=info msg=fine\nlevel=error msg="disk on fire"\n')
    found = doctor("log")
    assert (found["log"]["state"], "disk on fire" in found["log"]["message"]) == ("warn", True)


def test_an_error_of_a_former_daemon_is_past_once_another_one_runs(
    doctor: Doctor, folder: Path, told: FakeDaemon
) -> None:
    (folder / "data").mkdir(exist_ok=True)
    changed(told, data_dir=str(folder / "data"))
    log = folder / "data" / "memoryd.log"
    log.write_text('time=2026-01-01T00:00:00.000Z level=error msg="a page is damaged"\nTraceback\n')
    assert doctor("log")["log"]["state"] == "ok"
    log.write_text(f'{log.read_text()}time=9999-01-01T00:00:00.000Z level=error msg="disk on fire"\n')
    assert "disk on fire" in doctor("log")["log"]["message"]


def test_threads_that_fail_are_told_with_what_is_looked_at_next(doctor: Doctor, told: FakeDaemon) -> None:
    assert "threads" not in doctor("threads"), "an older daemon says nothing of them"
    threads = [ThreadState(name="judge"), ThreadState(name="effects", restarts=3, error="OSError: no", failed_at=5.0)]
    changed(told, threads=threads)
    found = doctor("threads")["threads"]
    assert (found["state"], found["message"]) == ("warn", "effects failed 3 times (OSError: no): it is tried again")
    threads[1].works_since = 6.0
    found = doctor("threads")["threads"]
    assert found["state"] == "ok"
    assert found["message"] == "effects failed 3 times, works since 1970-01-01T00:00:06Z (OSError: no)"
    threads[1] = ThreadState(name="effects")
    assert doctor("threads")["threads"]["message"] == "2 threads at work"
