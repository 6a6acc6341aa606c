"""A client starts the daemon when none answers: once, detached, and it tells why when that fails."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from configs import NO_MODEL
from memoryd.client import AsyncClient, Client, MemorydError, Unavailable
from memoryd.client.protocol import Shutdown
from waiting import wait_until

STATUS = """
import os, sys
from memoryd.client import Client
with Client() as client:
    status = client.status()
    client.add("by process %d" % os.getpid(), dedup=False)
print(status.pid)
"""


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for socket, data and configuration; whatever daemon was started there is ended after the test."""
    (folder / "config.toml").write_text(NO_MODEL)
    monkeypatch.setenv("MEMORYD_SOCKET", str(folder / "run" / "s"))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("MEMORYD_CONFIG", str(folder / "config.toml"))
    monkeypatch.delenv("MEMORYD_NAMESPACE", raising=False)
    yield folder
    _end()


def _end() -> None:
    with suppress(MemorydError), Client(autostart=False) as client:
        pid = client.status().pid
        client.call(Shutdown())
        wait_until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_client_starts_a_daemon_that_outlives_it_in_a_session_of_its_own(home: Path) -> None:
    with Client() as client:
        pid = client.status().pid
        client.add("kept")
    assert os.getsid(pid) not in (os.getsid(0), 0)
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] != str(os.getpid())
    with Client(autostart=False) as another:
        assert (another.status().pid, another.list()[0].content) == (pid, "kept")
    assert (home / "run").stat().st_mode & 0o777 == 0o700
    assert (home / "data").stat().st_mode & 0o777 == 0o700
    assert (home / "data" / "memoryd.log").stat().st_mode & 0o777 == 0o600


async def test_an_asynchronous_client_starts_one_too(home: Path) -> None:
    async with AsyncClient() as client:
        assert (await client.add("kept")).outcome == "created"


@pytest.mark.parametrize("number", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_processes_that_start_at_once_end_up_on_one_daemon(home: Path, number: int) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", STATUS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    answers = [starter.communicate(timeout=100) for starter in starters]
    assert [error for _, error in answers if error] == []
    assert len({answer for answer, _ in answers}) == 1
    with Client(autostart=False) as client:
        assert client.stats().memories == number
    assert (home / "data" / "memoryd.log").read_text().count("ready: socket") == 1


def test_a_daemon_started_while_the_last_one_ends_waits_for_it(home: Path) -> None:
    for number in range(2):
        with Client() as client:
            client.add(f"note {number}")
            client.call(Shutdown())
        with Client() as client:
            assert client.list().total == number + 1


def _no_config(home: Path) -> None:
    (home / "config.toml").write_text("[tiers]\nring = 'many'\n")


def _data_is_a_file(home: Path) -> None:
    (home / "data").write_text("")


def _socket_folder_is_a_file(home: Path) -> None:
    (home / "run").write_text("")


def _socket_is_a_users_file(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / "s").write_text("precious")


def _log_is_a_folder(home: Path) -> None:
    (home / "data" / "memoryd.log").mkdir(parents=True)


def _newer_database(home: Path) -> None:
    import apsw

    (home / "data").mkdir()
    apsw.Connection(str(home / "data" / "memoryd.sqlite")).pragma("user_version", 999)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (_no_config, r"The configuration .*config.toml is wrong: .*tiers.ring"),
        (_data_is_a_file, "File exists"),
        (_socket_folder_is_a_file, "File exists"),
        (_socket_is_a_users_file, "is not a socket"),
        (_log_is_a_folder, "Is a directory"),
        (_newer_database, "newer memoryd"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_daemon_that_cannot_start_tells_why(home: Path, broken: Callable[[Path], None], reason: str) -> None:
    broken(home)
    with Client() as client, pytest.raises(Unavailable, match=reason) as raised:
        client.status()
    assert "\n" not in raised.value.message
    if broken is _socket_is_a_users_file:
        assert (home / "run" / "s").read_text() == "precious"


def test_without_the_daemons_packages_the_error_says_what_to_install(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.transport.spawn.find_spec", lambda name: None)
    with Client() as client, pytest.raises(Unavailable, match=r"with the extra daemon"):
        client.status()


def test_a_socket_path_that_is_too_long_is_refused_with_the_variable_to_set(home: Path) -> None:
    for path in ("/tmp/" + "x" * 120, "/tmp/" + "ü" * 60):
        with pytest.raises(MemorydError, match="MEMORYD_SOCKET"):
            Client(socket=path)


def test_a_daemon_takes_over_neither_the_folder_nor_the_service_of_the_client_that_starts_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "apsw.py").write_text("raise SystemExit('the wrong apsw')")
    monkeypatch.chdir(home)
    monkeypatch.setenv("NOTIFY_SOCKET", str(home / "notify"))
    monkeypatch.setenv("JOURNAL_STREAM", "1:1")
    with Client() as client:
        environment = Path(f"/proc/{client.status().pid}/environ").read_bytes()
    assert b"NOTIFY_SOCKET" not in environment
    assert b"JOURNAL_STREAM" not in environment
