"""The parts of the server as functions and small objects: lanes, meters, log lines, notices, locks, configuration."""

import logging
import os
import re
import socket
import stat
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from each import each
from memoryd.client import Client
from memoryd.client.errors import Busy, Conflict, Invalid, StorageFailed, Untrusted
from memoryd.client.protocol import MAX_VALUE_BYTES, Request
from memoryd.daemon import config
from memoryd.daemon.server import envelope
from memoryd.daemon.server.lanes import Lane
from memoryd.daemon.system import listen, log_lines, notify
from waiting import wait_until
from workbench import LIMIT_S

# The envelope --------------------------------------------------------------------------------------------------------

MANY = {"a": [[]] * 200_000}


def _request(**call: Any) -> Request:
    return Request(1, 1, msgspec.Raw(msgspec.msgpack.encode(call)))


@each(
    "call",
    [
        {"method": "search", "query": "x", "metadata": MANY},
        {"method": "add", "memory": {"content": "x", "metadata": MANY}},
        {"method": "add_many", "memories": [{"content": "x"}, {"content": "y", "metadata": MANY}]},
        {"method": "tag", "id": "abcd", "values": MANY},
    ],
)
def test_metadata_of_many_small_values_is_refused_before_they_take_memory(call: dict[str, Any]) -> None:
    request = _request(**call)
    tracemalloc.start()
    try:
        with pytest.raises(Invalid, match=r"The metadata is about 200\d+ bytes; the limit is 65536"):
            envelope.call_of(request)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_metadata_of_a_memory_with_a_key_may_be_large(client: Client) -> None:
    value = {"value": "x y " * 25_000}
    client.put("large", "a large value", metadata=value, searchable=False)
    [record] = client.export_memories().records
    client.erase(ids=[record.id])
    assert client.import_memories([record], overwrite=True).created == 1
    assert client.get(key="large").metadata == value
    with pytest.raises(Invalid, match="the limit is 65536"):
        client.import_memories([msgspec.structs.replace(record, key=None)])
    with pytest.raises(Invalid, match=f"the limit is {MAX_VALUE_BYTES}"):
        envelope.call_of(_request(method="put", key="k", memory={"metadata": {"a": "x" * (MAX_VALUE_BYTES + 2000)}}))


@pytest.mark.slow
@each(
    "value",
    [
        {"x" * 300_000: [""] * 60_000},
        {"x" * 300_000 + "password": [""] * 60_000},
        {"value": "\n".join(["abcdefghijklm1"] * 90_000)},
        {"value": "\n".join(["QUtJQabcdefghAKIA7"] * 60_000)},
    ],
    ids=["long key", "long telling key", "many lines", "many anchors over lines"],
)
def test_no_value_under_a_key_takes_the_square_of_its_size(daemon: Any, value: dict[str, Any]) -> None:
    with daemon.client(timeout_s=240) as client:  # the square would take longer
        client.put("k", "a value", metadata=value)
        assert client.get(key="k").metadata == value


def test_the_names_of_a_call_that_does_not_fit_are_all_that_is_decoded_of_it() -> None:
    request = _request(method="list", type=["abcde"] * 200_000)
    tracemalloc.start()
    try:
        with pytest.raises(Invalid, match="must have at most 1000 items"):
            envelope.call_of(request)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


# Lanes ---------------------------------------------------------------------------------------------------------------


def test_a_lane_takes_what_runs_and_what_may_wait_and_refuses_the_next() -> None:
    lane, gate = Lane("test", threads=2, capacity=1), threading.Event()
    for _ in range(3):
        lane.submit(lambda: gate.wait(30) and None)
    with pytest.raises(Busy, match="3 test calls are under way or waiting") as refused:
        lane.submit(lambda: None)
    assert refused.value.data == {"retry_after_ms": 100}
    gate.set()
    wait_until(lambda: lane.count() == 0)
    lane.submit(lambda: None)
    assert lane.close(LIMIT_S)


def test_work_that_raises_ends_no_lane(caplog: pytest.LogCaptureFixture) -> None:
    lane, ran = Lane("test", threads=1, capacity=8), threading.Event()
    lane.submit(lambda: 1 / 0 and None)
    lane.submit(ran.set)
    assert ran.wait(60)
    assert lane.close(LIMIT_S)
    assert lane.count() == 0
    assert "a call broke its worker's rule" in caplog.text


def test_a_nice_lane_gives_way_to_others() -> None:
    found: list[int] = []
    before = os.getpriority(os.PRIO_PROCESS, 0)
    lane = Lane("test", threads=1, capacity=1, nice=True)
    lane.submit(lambda: found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
    wait_until(lambda: bool(found))  # what has not begun when a lane is closed is not run
    assert lane.close(LIMIT_S)
    assert found == [max(10, before)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_clients_take_turns_however_much_one_of_them_sends() -> None:
    lane, gate, order = Lane("test", threads=1, capacity=20), threading.Event(), list[str]()
    lane.submit(lambda: gate.wait(30) and None, "gate")
    for name in ("a1", "a2", "a3", "b1", "c1", "c2"):
        lane.submit(lambda name=name: order.append(name), name[0])  # type: ignore[misc]
    gate.set()
    wait_until(lambda: lane.count() == 0)
    assert lane.close(LIMIT_S)
    assert order == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_one_client_has_half_of_the_workers_at_most() -> None:
    lane, gate, others = Lane("test", threads=4, capacity=20), threading.Event(), threading.Event()
    held = threading.Semaphore(0)

    def hold() -> None:
        held.release()
        assert gate.wait(30)

    for _ in range(8):
        lane.submit(hold, "a")
    lane.submit(others.set, "b")
    assert others.wait(60)
    assert held.acquire(timeout=20)
    assert held.acquire(timeout=20)
    assert not held.acquire(timeout=0.05)
    wait_until(lambda: lane.count() == 8)
    gate.set()
    assert lane.close(LIMIT_S)


# Log -----------------------------------------------------------------------------------------------------------------


def _line(message: str, under_systemd: bool = False, error: BaseException | None = None, traces: bool = False) -> str:
    failure = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("memoryd.daemon.server.server", logging.WARNING, "", 0, message, None, failure)
    record.created, record.msecs = 1_800_000_000.25, 250.0
    return log_lines._LineFormatter(under_systemd, traces).format(record)


def test_a_line_holds_no_credential_that_a_client_sent() -> None:
    token = "ghp_" + "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"
    failure = _raised(lambda: dict[str, str]()[token])
    assert token not in _line(f"no encoding {token}", error=failure, traces=True)


def _raised(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def _fail() -> None:
    raise ValueError("of two\nlines") from OSError("the disk")


def _recurse() -> None:
    _recurse()


def test_an_event_is_one_line_of_fields() -> None:
    assert _line("it is so") == 'time=2027-01-15T08:00:00.250Z level=warning part=server.server msg="it is so"'
    assert _line("it is so", under_systemd=True) == '<4>level=warning part=server.server msg="it is so"'


@each(
    ("text", "shown"),
    [
        ('a "quoted" word', r'"a \"quoted\" word"'),
        ("two\nlines", r'"two\nlines"'),
        ("back\\slash", r'"back\\slash"'),
        ("carriage\rreturn", r'"carriage\rreturn"'),
        ("\x1b[31mred", r'"\x1b[31mred"'),
        ("line\u2028separator", r'"line\u2028separator"'),
        ("grün 日本", '"grün 日本"'),
    ],
)
def test_no_text_can_end_a_line_or_steer_a_terminal(text: str, shown: str) -> None:
    assert _line(text).endswith("msg=" + shown)


def test_a_trace_stays_on_the_line_of_its_event() -> None:
    for traces in (False, True):
        line = _line("it failed", error=_raised(_fail), traces=traces)
        assert line.count("\n") == 0
        assert r'error="ValueError: of two\nlines (from OSError)"' in line
        assert re.search(r'at="server/test_server_parts.py:\d+ _raised > server/test_server_parts.py:\d+ _fail"', line)
        assert ("Traceback" in line) is traces


def test_an_exception_of_a_thousand_calls_or_of_a_long_text_is_a_short_line() -> None:
    assert len(_line("it failed", error=_raised(_recurse))) < 500
    assert len(_line("it failed", error=ValueError("x" * 100_000))) < 700


def test_a_thread_that_ends_by_an_exception_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threading, "excepthook", log_lines._log_end_of_thread)
    thread = threading.Thread(target=_fail, name="judge")
    thread.start()
    thread.join()
    [record] = caplog.records
    assert (record.message, record.levelname) == ("the thread judge ended", "CRITICAL")


def test_the_journals_format_is_for_a_stderr_that_is_the_journal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        found = os.fstat(stderr.fileno())
        for value, collected in ((f"{found.st_dev}:{found.st_ino}", True), ("1:1", False)):
            monkeypatch.setenv("JOURNAL_STREAM", value)
            assert log_lines._is_journal() is collected
        monkeypatch.delenv("JOURNAL_STREAM")
        assert log_lines._is_journal() is False


# Notices -------------------------------------------------------------------------------------------------------------


def test_systemd_is_told_through_an_abstract_socket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        name = f"memoryd-test-{os.getpid()}"
        listener.bind("\0" + name)
        listener.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        notify.notify_systemd("READY=1")
        assert listener.recv(100) == b"READY=1"


def test_nobody_to_tell_is_no_failure(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify.notify_systemd("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "nobody"))
    notify.notify_systemd("READY=1")
    notify.notify_starter(None, "READY")
    reader, writer = os.pipe()
    os.close(reader)
    notify.notify_starter(writer, "READY")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(writer)


# The socket's owner --------------------------------------------------------------------------------------------------


def test_a_lock_is_held_by_one_and_free_after_it(folder: Path) -> None:
    held = listen.lock(folder / "lock", "the house")
    with pytest.raises(Conflict, match="Another daemon already serves the house"):
        listen.lock(folder / "lock", "the house")
    releaser = threading.Timer(0.05, os.close, (held,))
    releaser.start()
    os.close(listen.lock(folder / "lock", "the house", wait_s=30))
    releaser.join()


def test_a_lock_that_cannot_be_made_says_so(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(StorageFailed, match="not writable: Not a directory"):
        listen.lock(folder / "file" / "lock", "the house")


def test_a_socket_is_made_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        listen.listen(folder / "run" / "s").close()
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "run" / "s").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "run").stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(folder, 12345, 12345) if os.getuid() == 0 else monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(Untrusted, match=f"The folder {folder} belongs to "):
        listen.listen(folder / "s")


@each(
    ("pid", "count"),
    [(None, None), ("1", "1"), (str(os.getpid()), "2"), (str(os.getpid()), "0"), ("x", "1")],
    ids=["none", "another process's", "two", "not one", "no number"],
)
def test_sockets_that_were_not_passed_to_this_process_are_not_taken(
    monkeypatch: pytest.MonkeyPatch, pid: str | None, count: str | None
) -> None:
    for name, value in (("LISTEN_PID", pid), ("LISTEN_FDS", count)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert listen.take_passed_socket() is None


# Configuration -------------------------------------------------------------------------------------------------------


def test_no_configuration_file_gives_the_defaults(folder: Path) -> None:
    assert config.load(folder / "none.toml") == config.Config()


def test_a_configuration_may_leave_out_anything(folder: Path) -> None:
    (folder / "c.toml").write_text("[tiers]\nring = 9\n")
    loaded = config.load(folder / "c.toml")
    assert loaded.tiers.ring == 9
    assert loaded.tiers.max_recent == config.TiersConfig().max_recent
    assert loaded.model == config.ModelConfig()


@each(
    ("text", "sentence"),
    [
        ("[tiers]\nrings = 9", "there is no setting `rings` in [tiers] (did you mean `ring`?)"),
        ("[tiers]\nring = 9\nqqq = 1", "there is no setting `qqq` in [tiers]"),
        ("[privcy]\nsecrets = 'redact'", "there is no section [privcy] (did you mean `privacy`?)"),
        ("ring = 9", "there is no section [ring]"),
        ("[shared.acme]\nmax_rows = 1", "there is no setting `max_rows` in [shared.acme]"),
    ],
)
def test_a_setting_that_there_is_not_is_named_in_one_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "c.toml").write_text(text)
    with pytest.raises(Invalid) as refused:
        config.load(folder / "c.toml")
    assert refused.value.message == f"The configuration {folder / 'c.toml'} is wrong: {sentence}."
