"""Which version is newer, what a successor is started with, and how a socket is given up."""

import socket
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoryd
from each import each
from memoryd.daemon.server import succession
from memoryd.daemon.server.envelope import FAREWELL
from memoryd.daemon.server.succession import Succession, is_newer, read_installed_version
from memoryd.daemon.store.store import Store
from memoryd.daemon.system.listen import Listener, open_listener, retire
from waiting import wait_until


def _do_nothing() -> None:
    pass


@each(("one", "other"), [("0.2.0", "0.1.9"), ("0.10", "0.9"), ("1", "0.99.99"), ("0.1.0.1", "0.1"), ("2.0rc1", "1.9")])
def test_a_release_is_newer_by_its_numbers(one: str, other: str) -> None:
    assert is_newer(one, other)
    assert not is_newer(other, one)


releases = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))


@given(releases, releases, releases)
def test_newer_is_an_order_so_no_two_versions_replace_each_other_in_turn(a: str, b: str, c: str) -> None:
    assert not (is_newer(a, b) and is_newer(b, a))
    assert is_newer(a, c) or not (is_newer(a, b) and is_newer(b, c))


def test_what_is_installed_is_read_anew(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert read_installed_version() == memoryd.__version__
    monkeypatch.setattr(memoryd, "__file__", str(folder / "init"))
    assert read_installed_version() == memoryd.__version__  # being replaced
    (folder / "init").write_text('"""memoryd."""\n\n__version__ = "7.1"\n')
    assert read_installed_version() == "7.1"
    (folder / "init").write_bytes(b"\xff\xfe")
    assert read_installed_version() == memoryd.__version__


@each(
    ("client", "on_disk", "uptime_s", "restarting"),
    [
        ("9.0", "9.0", 10.0, True),
        ("9.1", "9.0", 10.0, True),
        ("8.9", "9.0", 10.0, False),
        ("0.0.1", "9.0", 10.0, False),
        ("9.0", memoryd.__version__, 10.0, False),
        ("9.0", "0.0.1", 10.0, False),
        ("9.0", "9.0", 9.9, False),
        ("nonsense", "9.0", 10.0, False),
    ],
)
def test_only_a_client_of_what_was_installed_makes_a_settled_older_daemon_restart(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    on_disk: str,
    uptime_s: float,
    restarting: bool,
) -> None:
    monkeypatch.setattr(succession, "read_installed_version", lambda: on_disk)
    store.set_setting("restarted_for", "").result(10)  # what the row before has tried
    assert Succession(store, _do_nothing).greet(client, uptime_s).restarting is restarting


def test_a_restart_begins_once_its_version_is_noted_on_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a daemon refuses writes that still wait: the next one would try the same version again."""
    monkeypatch.setattr(succession, "read_installed_version", lambda: "9.0")
    noted: list[str | None] = []
    goes_on = threading.Event()
    store.write(lambda transaction: goes_on.wait(60))
    succeeding = Succession(store, lambda: noted.append(store.read_setting("restarted_for")))
    assert succeeding.greet("9.0", 10.0).restarting
    assert noted == []
    goes_on.set()
    wait_until(lambda: noted == ["9.0"])


def test_a_version_is_tried_once_also_by_the_next_daemon(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(succession, "read_installed_version", lambda: "9.0")
    first = Succession(store, _do_nothing)
    assert [first.greet("9.0", 10.0).restarting for _ in range(2)] == [True, False]
    wait_until(lambda: store.read_setting("restarted_for") == "9.0")
    assert not Succession(store, _do_nothing).greet("9.0", 10.0).restarting
    monkeypatch.setattr(memoryd, "__version__", "9.0")
    Succession(store, _do_nothing)  # it came after all: what comes later is tried again
    wait_until(lambda: store.read_setting("restarted_for") == "")


@pytest.mark.parametrize(
    ("words", "arguments", "program"),
    [
        (["-P", "-m", "memoryd.daemon", "--socket", "x"], ["/lib/memoryd/__main__.py", "--socket", "x"], ["-P", "-m"]),
        (["-X", "dev", "-m", "memoryd.daemon"], ["/lib/memoryd/__main__.py"], ["-X", "dev", "-m"]),
    ],
)
def test_a_successor_is_the_same_program(
    monkeypatch: pytest.MonkeyPatch, words: list[str], arguments: list[str], program: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    monkeypatch.setattr(sys, "argv", arguments)
    assert succession.read_program() == [*program, "memoryd.daemon"]


def test_a_successor_of_a_relative_script_is_that_script_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "bin/memoryd", "--socket", "x"])
    monkeypatch.setattr(sys, "argv", ["bin/memoryd", "--socket", "x"])
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/venv/bin/memoryd", raising=False)
    assert succession.read_program() == ["/venv/bin/memoryd"]


def waiting_client(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(str(path))
    return client


def test_whoever_waits_when_a_socket_is_given_up_is_told_and_its_file_is_gone(folder: Path) -> None:
    listener = open_listener(folder / "s", None)
    with waiting_client(folder / "s") as one, waiting_client(folder / "s") as other:
        retire(listener, FAREWELL)
        for client in (one, other):
            assert client.recv(4096) == FAREWELL
            assert client.recv(1) == b""
    assert not (folder / "s").exists()


def test_a_socket_that_another_has_put_in_the_place_stays(folder: Path) -> None:
    listener = open_listener(folder / "s", None)
    (folder / "s").unlink()
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(str(folder / "s"))
        another.listen()
        retire(listener, FAREWELL)
        with waiting_client(folder / "s"):
            pass


def test_a_socket_of_a_service_manager_keeps_its_file_and_its_queue(folder: Path) -> None:
    made = open_listener(folder / "s", None)
    with made.socket.dup() as kept, waiting_client(folder / "s") as client:
        retire(Listener(made.socket, made.path, held=True, inode=made.inode), FAREWELL)
        assert (folder / "s").exists()
        accepted, _ = kept.accept()
        with accepted:
            accepted.send(b"later")
        assert client.recv(16) == b"later"
