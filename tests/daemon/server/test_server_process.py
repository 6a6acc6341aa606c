"""The real daemon as a process: files and rights, who may start it, signals, systemd's ways, refusals at start."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from configs import NO_MODEL
from each import each
from memoryd.client import Client
from memoryd.client.transport.spawn import is_answering
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.system.listen import listen
from waiting import wait_until
from wire import Wire, request
from workbench import Process

DAEMON = [sys.executable, "-m", "memoryd.daemon"]


def environment_in(folder: Path) -> dict[str, str]:
    """Return the environment of a daemon of its own in `folder`."""
    (folder / "config.toml").write_text(NO_MODEL)
    return {
        **os.environ,
        "MEMORYD_SOCKET": str(folder / "run" / "s"),
        "MEMORYD_DATA_DIR": str(folder / "data"),
        "MEMORYD_CONFIG": str(folder / "config.toml"),
    }


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    return environment_in(folder)


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.communicate()


def refusal(environment: dict[str, str], *arguments: str) -> str:
    """Run a daemon that must not start; return the one sentence of its one line."""
    done = subprocess.run(
        [*DAEMON, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert " level=error " in lines[0]
    return lines[0].partition('msg="')[2].rstrip('"')


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# Files ---------------------------------------------------------------------------------------------------------------


def test_everything_the_daemon_makes_is_private(
    folder: Path, environment: dict[str, str], children: list[subprocess.Popen[str]]
) -> None:
    children.append(subprocess.Popen(DAEMON, env=environment, stderr=subprocess.PIPE, text=True))
    with Client(socket=folder / "run" / "s", autostart=False) as client:
        wait_until(lambda: is_answering(folder / "run" / "s"))
        client.add("private")
    assert {path.name: oct(mode(path)) for path in (folder / "run").iterdir()} == {"s": "0o600", "s.lock": "0o600"}
    assert mode(folder / "run") == mode(folder / "data") == 0o700
    assert {mode(path) for path in (folder / "data").iterdir() if path.is_file()} == {0o600}
    assert mode(folder / "data" / "tmp") == 0o700


def test_a_folder_of_memoryd_that_is_open_to_others_is_closed(folder: Path) -> None:
    for name in ("memoryd-x", "other"):
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
        listen(folder / name / "s").close()
        assert mode(folder / name / "s") == 0o600
    assert (mode(folder / "memoryd-x"), mode(folder / "other")) == (0o700, 0o755)


# One at a time -------------------------------------------------------------------------------------------------------


def test_a_second_daemon_on_the_same_socket_or_data_is_refused_and_the_first_goes_on(process: "Process") -> None:
    second = {**process.environment, "MEMORYD_DATA_DIR": str(process.folder / "other")}
    assert refusal(second) == f"Another daemon already serves the socket {process.socket}; `memctl doctor` says which."
    second = {**process.environment, "MEMORYD_SOCKET": str(process.folder / "t")}
    serves = f"serves the data directory {process.data} and listens at {process.socket}"
    assert refusal(second) == f"Another daemon already {serves}; `memctl doctor` says which."
    assert not (process.folder / "t").exists()
    with process.client() as client:
        assert client.status().protocol == 1


# The end -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_signal_lets_the_call_under_way_finish_and_leaves_everything_tidy(process: "Process") -> None:
    assert process.child is not None
    with process.client() as client:
        client.add("there before")
    database = process.data / "memoryd.sqlite"
    assert (process.data / "memoryd.sqlite-wal").exists()
    holder = apsw.Connection(str(database))
    holder.execute("BEGIN IMMEDIATE")  # the daemon's write has to wait for this one
    with Wire(process.socket) as wire:
        wire.send(request({"method": "add", "memory": {"content": "under way"}}, 7))
        assert wire.ask({"method": "get", "id": "ffffffff"}, 8)[1] == 8  # so the one before it has begun
        process.child.send_signal(signal.SIGTERM)
        wait_until(lambda: 'msg="stopping"' in (process.folder / "log").read_text())
        holder.execute("ROLLBACK")
        holder.close()
        reply = wire.receive()
    assert reply is not None
    assert (reply[0], reply[1]) == (0, 7)
    assert process.child.wait(30) == 0
    left = ["memoryd.lock", "memoryd.reserve", "memoryd.sqlite", "projects.former", "tmp"]
    assert sorted(path.name for path in process.data.rglob("*")) == left
    assert not process.socket.exists()
    process.start()
    with process.client() as client:
        assert {found.content for found in client.list()} == {"there before", "under way"}


@pytest.mark.slow
def test_names_in_use_before_there_were_projects_are_noted_once(process: "Process") -> None:
    noted = process.data / "projects.former"
    assert noted.read_text() == ""
    noted.unlink()  # as an older version leaves it
    with process.client() as client:
        client.add("We use Valkey")
    for namespace in ("api", "api-2/alpha"):
        with process.client(namespace) as client:
            client.add("We use Valkey")
    process.stop()
    process.start()
    assert noted.read_text() == "api\napi-2\n"


def test_the_log_has_one_line_for_each_event(process: "Process") -> None:
    assert process.child is not None
    pid = process.child.pid
    process.child.send_signal(signal.SIGINT)
    assert process.child.wait(30) == 0
    lines = (process.folder / "log").read_text().splitlines()
    messages = [line.partition("msg=")[2] for line in lines]
    assert all(line.startswith("time=20") and " level=" in line and " part=" in line for line in lines)
    assert f'"ready: socket {process.socket}, data {process.data}, pid {pid}"' in messages
    assert messages[-2:] == ['"stopping"', '"stopped"']


# systemd -------------------------------------------------------------------------------------------------------------

PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
os.execv(sys.executable, [sys.executable, "-m", "memoryd.daemon"])
"""


def test_a_socket_passed_by_systemd_is_served_and_left_in_place(
    folder: Path, environment: dict[str, str], children: list[subprocess.Popen[str]]
) -> None:
    path = folder / "run" / "s"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with Client(socket=path, autostart=False) as client:
            command = [sys.executable, "-c", PASS, str(listener.fileno())]
            child = subprocess.Popen(
                command, env=environment, pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True
            )
            children.append(child)
            status = client.status()  # waits in the socket's queue until the daemon is there
        assert (status.pid, status.socket) == (child.pid, str(path))
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    assert path.exists()


@pytest.mark.slow
def test_a_network_socket_passed_by_systemd_is_refused(folder: Path, environment: dict[str, str]) -> None:
    with socket.socket(socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        done = subprocess.run(
            [sys.executable, "-c", PASS, str(listener.fileno())],
            env=environment,
            pass_fds=[listener.fileno()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "does not listen on the network" in done.stderr


def test_systemd_is_told_when_the_daemon_is_ready_and_when_it_stops(
    folder: Path, environment: dict[str, str], children: list[subprocess.Popen[str]]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(folder / "notify"))
        notify.settimeout(30)
        told = {**environment, "NOTIFY_SOCKET": str(folder / "notify")}
        child = subprocess.Popen(DAEMON, env=told, stderr=subprocess.PIPE, text=True)
        children.append(child)
        assert notify.recv(100) == b"READY=1"
        with Client(socket=folder / "run" / "s", autostart=False) as client:
            assert client.status().pid == child.pid
        child.send_signal(signal.SIGTERM)
        assert notify.recv(100) == b"STOPPING=1"
        assert child.wait(30) == 0


# Refusals at start ---------------------------------------------------------------------------------------------------


def test_a_database_of_a_newer_memoryd_is_refused_and_not_touched(folder: Path, environment: dict[str, str]) -> None:
    (folder / "data").mkdir()
    database = folder / "data" / "memoryd.sqlite"
    connection = apsw.Connection(str(database))
    connection.pragma("user_version", VERSION + 1)
    connection.close()
    before = apsw.Connection(str(database)).pragma("user_version")
    sentence = refusal(environment)
    assert "written by a newer memoryd" in sentence
    assert "upgrade memoryd" in sentence
    assert apsw.Connection(str(database)).pragma("user_version") == before


DATABASE = "data/memoryd.sqlite"
# What lies at which path (None: a folder), the arguments, and what the sentence says.
REFUSED: list[tuple[str, bytes | None, tuple[str, ...], list[str]]] = [
    ("data", b"precious", (), ["The data directory ", "/data cannot be made: File exists."]),
    ("data", None, ("--data-dir", "/proc/memoryd"), ["/proc/memoryd"]),
    ("data", None, ("--data-dir", "/proc/self"), ["not writable"]),
    (DATABASE, None, (), ["cannot be opened"]),
    (DATABASE, b"this is a text, not a database, and long enough to be looked at", (), [DATABASE]),
    ("run/s", b"precious", (), ["is not a socket"]),
    ("run", None, ("--socket", "/tmp/" + "x" * 103), ["108 bytes long and Unix allows 107"]),
    ("config.toml", b"[tiers]\nring = 0\n", (), ["ring", "1 or more"]),
    ("config.toml", b"\xff\xfe", (), ["config.toml"]),
    ("run", None, ("--config", "/proc"), ["cannot be read"]),
]


@each(("place", "content", "arguments", "words"), REFUSED)
def test_what_it_cannot_start_on_is_refused_in_a_sentence_and_left_as_it_is(
    tmp_path_factory: pytest.TempPathFactory,
    place: str,
    content: bytes | None,
    arguments: tuple[str, ...],
    words: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("d")
    environment, path = environment_in(folder), folder / place
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)
    sentence = refusal(environment, *arguments)
    assert [word for word in words if word not in sentence] == [], sentence
    assert content is None or path.read_bytes() == content
    assert place != "config.toml" or not (folder / "data").exists()


@pytest.mark.slow
def test_a_database_of_another_program_is_refused(folder: Path, environment: dict[str, str]) -> None:
    (folder / "data").mkdir()
    apsw.Connection(str(folder / DATABASE)).execute("CREATE TABLE theirs (x)")
    assert "not one of memoryd" in refusal(environment)


def test_a_failure_at_start_that_nobody_foresaw_is_told_to_the_client_that_waits(
    environment: dict[str, str], folder: Path
) -> None:
    code = "import sys\nfrom memoryd.daemon import __main__ as daemon\n"
    code += "def fail(*args): raise ZeroDivisionError('unforeseen')\n"
    code += "daemon._serve = fail\nsys.exit(daemon.main(['--ready-fd', '1']))\n"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "It failed: ZeroDivisionError: unforeseen")
    assert len(done.stderr.splitlines()) == 1


def test_configuration_and_version_are_shown_without_touching_anything(
    folder: Path, environment: dict[str, str]
) -> None:
    for argument, code, word in (("--print-config", 0, '"ring": 20'), ("--version", 0, "memoryd"), ("--colour", 2, "")):
        done = subprocess.run([*DAEMON, argument], env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, word in done.stdout) == (code, True)
    assert not (folder / "data").exists()
