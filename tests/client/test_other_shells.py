"""One daemon for every shell of a user: with XDG_RUNTIME_DIR or without it, each finds the one that runs."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from impostor import impostor, needs_root

from configs import NO_MODEL
from hosting import Agent
from memoryd.client import Client, Unavailable
from memoryd.client.programs.hooks import spool
from memoryd.client.transport import other_socket
from waiting import wait_until
from workbench import Process

Enter = Callable[[str], None]
OTHER = {"login": "cron", "cron": "login"}
STATUS = """
import sys
from memoryd.client import Client
sys.stdin.read()
with Client() as client:
    print(client.status().pid)
"""


@pytest.fixture
def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Enter]:
    """Give this process the environment of the shell `login`, or of one of `cron`, which knows no runtime folder."""
    (folder / "config.toml").write_text(NO_MODEL)
    (folder / "data").mkdir(mode=0o700)
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("MEMORYD_CONFIG", str(folder / "config.toml"))
    monkeypatch.setenv("HOME", str(folder))
    for name in ("MEMORYD_SOCKET", "MEMORYD_NAMESPACE", "MEMORYD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("login", "cron"):
        (folder / name).mkdir(mode=0o700)

    def enter(shell: str) -> None:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.delenv("TMPDIR", raising=False)
        monkeypatch.setenv("XDG_RUNTIME_DIR" if shell == "login" else "TMPDIR", str(folder / shell))

    enter("login")
    yield enter
    for shell in OTHER:
        enter(shell)
        memctl("down")


def memctl(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def report_pid() -> int:
    """Return the pid of the daemon that this shell reaches; none is started."""
    with Client(autostart=False) as client:
        return client.status().pid


@pytest.mark.parametrize("shell", ["login", pytest.param("cron", marks=pytest.mark.slow)])
def test_a_daemon_that_one_shell_started_serves_the_other(shell: str, enter: Enter, folder: Path) -> None:
    enter(shell)
    assert memctl("add", "kept in one shell").returncode == 0
    pid = report_pid()
    enter(OTHER[shell])
    found = memctl("search", "kept", "--no-autostart")
    assert (found.returncode, "kept in one shell" in found.stdout) == (0, True), found.stderr
    assert memctl("add", "kept in the other shell").returncode == 0
    up = memctl("up")
    assert f"already runs, pid {pid}" in up.stdout
    assert memctl("doctor", "Process").returncode == 0
    assert f"pid {pid}" in memctl("up", "--restart").stdout, "it starts again on its own socket"
    assert memctl("list").stdout.count("kept in") == 2
    assert not list((folder / OTHER[shell]).rglob("*.sock")), "no second one was started"
    assert f"stopped (pid {pid})" in memctl("down").stdout
    enter(shell)
    with pytest.raises(Unavailable):
        report_pid()


def test_a_hook_reaches_it_in_place_of_spooling(enter: Enter, folder: Path) -> None:
    memctl("up")
    enter("cron")
    agent = Agent("claude-code", folder, folder)
    agent.environment = dict(os.environ)
    assert agent.hook("session-start", source="startup").code == 0
    assert agent.hook("prompt", prompt="We deploy on Fridays.").code == 0
    assert spool.count_waiting() == 0
    with Client(autostart=False) as client:
        assert client.stats().turns == 1


@pytest.mark.slow
def test_a_hook_that_reaches_the_usual_socket_looks_nowhere_else(enter: Enter) -> None:
    memctl("up")
    ask = "import sys, time\nfrom memoryd.client.programs.hooks.wire import DaemonLink\n"
    ask += "print(DaemonLink(time.monotonic() + 20).call('status')['memories'])\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0\n")
    assert "memoryd.client.transport.other_socket" not in done.stdout


@pytest.mark.slow
def test_shells_that_start_one_at_the_same_time_end_up_on_one_daemon(enter: Enter) -> None:
    starters = []
    for shell in ("login", "cron", "login", "cron"):
        enter(shell)
        command = [sys.executable, "-c", STATUS]
        starters.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.close()
        starter.stdin = None
    assert len({starter.communicate(timeout=100)[0] for starter in starters} - {""}) == 1
    assert {starter.returncode for starter in starters} == {0}


# Which one is taken --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_socket_that_is_named_is_the_only_one(enter: Enter, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memctl("up")
    enter("cron")
    named = str(folder / "cron" / "s")
    with Client(socket=named, autostart=False) as client, pytest.raises(Unavailable, match=named):
        client.status()
    monkeypatch.setenv("MEMORYD_SOCKET", named)
    with pytest.raises(Unavailable, match=named):
        report_pid()
    assert memctl("search", "x", "--no-autostart").returncode == 3


def test_a_daemon_of_another_data_folder_is_not_taken(
    enter: Enter, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("up")
    enter("cron")
    (folder / "other").mkdir(mode=0o700)
    (folder / "other" / "memoryd.lock").write_bytes((folder / "data" / "memoryd.lock").read_bytes())
    assert other_socket.find(str(folder / "cron" / f"memoryd-{os.getuid()}" / "memoryd.sock"))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "other"))
    with pytest.raises(Unavailable):
        report_pid()
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data" / ".." / "data"))
    assert report_pid()


@pytest.mark.slow
def test_a_lock_that_a_killed_daemon_left_leads_nowhere(enter: Enter, folder: Path) -> None:
    memctl("up")
    pid = report_pid()
    os.kill(pid, 9)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}/exe"))
    enter("cron")
    with pytest.raises(Unavailable, match=r"memctl up"):
        report_pid()
    assert memctl("add", "kept by a new one").returncode == 0
    assert (folder / "data" / "memoryd.lock").read_text().startswith(str(folder / "cron"))


def test_a_lock_that_names_no_socket_on_which_the_data_folder_is_reported_leads_nowhere(
    enter: Enter, folder: Path
) -> None:
    enter("cron")
    address = str(folder / "cron" / f"memoryd-{os.getuid()}" / "memoryd.sock")
    for content in (b"/run/\0s", b"s", bytes(folder), bytes(folder / "absent")):
        (folder / "data" / "memoryd.lock").write_bytes(content)
        assert other_socket.find(address, 0.05) == "", content
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "login" / "s"))
        listener.listen()
        (folder / "data" / "memoryd.lock").write_text(str(folder / "login" / "s"))
        assert other_socket.find(address, 0.05) == "", "nobody replies"


@needs_root
@pytest.mark.parametrize("owned", [False, True], ids=["its socket", "our socket"])
def test_a_process_of_another_user_hears_nothing(owned: bool, enter: Enter, folder: Path) -> None:
    enter("cron")
    folder.chmod(0o711)
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    with impostor(open_to_all / "s") as another:
        if owned:
            os.chown(open_to_all / "s", os.getuid(), os.getgid())
        (folder / "data" / "memoryd.lock").write_text(str(open_to_all / "s"))
        with pytest.raises(Unavailable):
            report_pid()
        assert another.heard() == b""


@pytest.mark.slow
@needs_root
def test_a_lock_of_another_user_is_not_believed(enter: Enter, folder: Path) -> None:
    running = Process(folder, NO_MODEL).start()
    try:
        enter("cron")
        assert report_pid()
        os.chown(folder / "data" / "memoryd.lock", 65534, 65534)
        with pytest.raises(Unavailable):
            report_pid()
    finally:
        running.stop()
