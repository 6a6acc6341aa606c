"""The terminal of an editor that is a snap or flatpak has the memory of every other shell."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from fake_daemon import Memctl
from findings import Doctor

from configs import NO_MODEL
from memoryd.client.transport import activation, paths
from workbench import Process

SNAP, FLATPAK = "snap/code/159/.local/share", ".var/app/com.visualstudio.code/data"
SHELLS = {
    "snap": {"XDG_DATA_HOME": SNAP, "XDG_CONFIG_HOME": "snap/code/159/.config", "XDG_RUNTIME_DIR": "run/snap.code"},
    "flatpak": {"XDG_DATA_HOME": FLATPAK, "XDG_CACHE_HOME": ".var/app/com.visualstudio.code/cache"},
}


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose memory is in the usual place, with sockets of its own."""
    for name in ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG", "MEMORYD_MODEL_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    made = folder / "h"
    (made / ".config" / "memoryd").mkdir(parents=True)
    (made / ".config" / "memoryd" / "config.toml").write_text(NO_MODEL)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made / "run"))
    return made


def run(home: Path, shell: str, *words: str) -> str:
    """Run memctl in a shell and return what it prints."""
    own = {name: str(home / place) for name, place in SHELLS.get(shell, {}).items()}
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", *words]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout


def keep_in(data: Path, text: str) -> None:
    """Leave a memory in a data folder, where no daemon runs."""
    data.mkdir(parents=True, mode=0o700)
    run = Process(data / "..", NO_MODEL, {"MEMORYD_DATA_DIR": str(data)}).start()
    with run.client() as client:
        client.add(text)
    run.stop()


@pytest.mark.parametrize(("shell", "first"), list(zip(SHELLS, ["the editor's", "another"], strict=True)))
def test_an_editors_terminal_and_another_shell_have_one_memory(shell: str, first: str, home: Path) -> None:
    order = [shell, ""] if first == "the editor's" else ["", shell]
    try:
        for number, place in enumerate(order):
            run(home, place, "add", f"kept {number}")
        assert [run(home, place, "list").count("kept") for place in order] == [2, 2]
        assert (home / ".local" / "share" / "memoryd" / "memoryd.sqlite").exists()
        assert not list(home.glob("snap/**/memoryd.sqlite")) + list(home.glob(".var/**/memoryd.sqlite"))
    finally:
        run(home, shell, "down")


@pytest.mark.parametrize("place", [SNAP, FLATPAK, "snap/x/../y/common/share"])
def test_folders_of_snaps_and_flatpaks_are_passed_over(place: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home / place))
    assert paths.data_folder() == str(paths.data_dir()) == f"{home}/.local/share/memoryd"
    assert paths.config_path() == home / ".config" / "memoryd" / "config.toml"
    assert paths.models_dir() == home / ".cache" / "memoryd" / "models"
    assert activation.unit_folder() == home / ".config" / "systemd" / "user"
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(home / place))
    assert Path(paths.data_folder()) == paths.data_dir(), "what is named for memoryd alone is meant"


def test_in_a_snap_with_a_home_of_its_own_the_users_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd((*user[:5], str(home), user[6])))
    for place in ("", SNAP):
        monkeypatch.setenv("HOME", str(home / "snap" / "code" / "159"))
        monkeypatch.setenv("XDG_DATA_HOME", str(home / place) if place else "")
        assert paths.data_folder() == str(paths.data_dir()) == f"{home}/.local/share/memoryd"
    monkeypatch.setenv("HOME", "/elsewhere/snap/x")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert paths.data_folder() == "/elsewhere/snap/x/.local/share/memoryd"


# What is in such a folder already ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("place", "usual"), [(SNAP, "none"), (FLATPAK, "older")])
def test_memories_in_an_editors_folder_are_named_with_what_brings_them_here(
    place: str, usual: str, home: Path, doctor: Doctor, memctl: Memctl
) -> None:
    here, there = home / ".local" / "share" / "memoryd", home / place / "memoryd"
    if usual == "older":
        keep_in(here, "kept first")
    keep_in(there, "kept in the editor")
    before = (there / "memoryd.sqlite").read_bytes()
    found = doctor("data-folder")["data-folder"]
    assert (found["state"], found["commands"]) == ("warn", []), "nothing is done unasked"
    assert str(here) in found["message"]
    assert str(there) in found["message"]
    if usual == "none":
        assert f"{there}" in memctl("list").out
    assert (there / "memoryd.sqlite").read_bytes() == before
    script = found["fix"].replace("memctl", f"{sys.executable} -m memoryd.client.programs.memctl")
    subprocess.run(["sh", "-ec", script], cwd=home, check=True, capture_output=True, timeout=100)
    try:
        assert "kept in the editor" in memctl("list").out
        assert doctor("data-folder")["data-folder"]["state"] == "ok"
    finally:
        memctl("down")


@pytest.mark.slow
def test_a_daemon_that_still_has_an_editors_folder_is_told_the_right_way_round(
    home: Path, doctor: Doctor, memctl: Memctl
) -> None:
    there = home / SNAP / "memoryd"
    try:
        memctl("up", "--data-dir", str(there))
        os.environ.pop("MEMORYD_DATA_DIR")  # which `up` sets for what it starts
        memctl("add", "kept in the editor")
        found = doctor("data-folder")["data-folder"]
        assert found["state"] == "warn"
        assert str(there) in found["message"]
        script = found["fix"].replace("memctl", f"{sys.executable} -m memoryd.client.programs.memctl")
        subprocess.run(["sh", "-ec", script], cwd=home, check=True, capture_output=True, timeout=100)
        assert "kept in the editor" in memctl("list").out
        assert doctor("data-folder")["data-folder"]["message"].startswith(str(home / ".local"))
    finally:
        memctl("down")
