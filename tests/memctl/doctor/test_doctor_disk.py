"""doctor and what lies on the disk: each finding is brought about, and gone after `--fix` where that applies."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from findings import Doctor

MEMCTL = f"{sys.executable} -m memoryd.client.programs.memctl"


@pytest.mark.usefixtures("proc")
def test_files_that_others_may_read_are_made_private(doctor: Doctor, folder: Path) -> None:
    data = folder / "data"
    data.mkdir(mode=0o755)
    (data / "memoryd.log").touch()
    (data / "memoryd.log").chmod(0o644)
    (data / "backups").mkdir(mode=0o700)
    found = doctor("data")["data"]
    assert (found["state"], found["fix"]) == ("fail", f"chmod 0700 {data}; chmod 0600 {data / 'memoryd.log'}")
    assert found["message"] == f"{data} has mode 0755: others may access it (and 1 more)"
    mended = doctor("data", "--fix", "--yes")["data"]
    assert (mended["state"], mended["mended"]) == ("ok", True)
    assert (data / "memoryd.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("proc")
def test_what_is_in_a_private_folder_may_have_any_mode(doctor: Doctor, folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "models").mkdir()
    (folder / "data" / "models").chmod(0o755)
    assert doctor("data")["data"]["state"] == "ok"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere; run it as another user")
def test_a_folder_that_cannot_be_written_is_made_so(doctor: Doctor, folder: Path) -> None:
    (folder / "data").mkdir(mode=0o500)
    assert doctor("data")["data"]["state"] == "fail"
    assert doctor("data", "--fix", "--yes")["data"]["state"] == "ok"


def inside(folder: Path, mount: str, *checks: str) -> dict[str, dict[str, str]]:
    """Return what doctor says of a data directory that is mounted so, in a namespace of its own."""
    (folder / "data").mkdir()
    script = f"{mount.replace('DATA', str(folder / 'data'))} && exec {MEMCTL} doctor {' '.join(checks)} --json"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    if not done.stdout:
        pytest.skip(f"no file system can be mounted here, which user namespaces would allow: {done.stderr.strip()}")
    return {finding["name"]: finding for finding in msgspec.json.decode(done.stdout)}


def test_a_disk_without_room_or_in_memory_is_found(doctor: Doctor, folder: Path) -> None:
    found = inside(folder, "mount -t tmpfs -o size=1m,mode=700 none DATA", "disk", "data")
    assert (found["disk"]["state"], found["disk"]["message"]) == ("fail", "1.0 MB free")
    assert (found["data"]["state"], "on tmpfs" in found["data"]["message"]) == ("warn", True)
    assert doctor("disk")["disk"]["state"] in ("ok", "warn")


def test_a_read_only_file_system_is_found(folder: Path) -> None:
    found = inside(folder, "mount -t tmpfs none DATA && mount -o remount,ro DATA", "data")
    assert found["data"]["state"] == "fail"
    assert "read-only" in found["data"]["message"]


def test_a_network_file_system_is_refused(doctor: Doctor, folder: Path, proc: Path) -> None:
    (proc / "self").mkdir()
    (proc / "self" / "mountinfo").write_text(f"30 22 0:45 / {folder} rw - fuse.sshfs u@h: rw\n")
    found = doctor("data")["data"]
    assert found["state"] == "fail"
    assert "fuse.sshfs, a network file system" in found["message"]
