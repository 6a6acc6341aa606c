"""Readers: as many connections as read at once, however many threads come and go; none with an old state."""

import os
import threading
from typing import Any

import apsw
import pytest

from memoryd.client.errors import Unavailable
from memoryd.daemon.store import database_settings
from memoryd.daemon.store.store import Store
from waiting import wait_until

LIMIT_S = 30
KEPT = 8


def count_descriptors(store: Store, suffix: str = "") -> int:
    """Return how many descriptors of this process are those of the database, or of one of its files."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith(f"{store.path}{suffix}")
        except FileNotFoundError:  # that of the list itself
            continue
    return found


def read_in_a_thread(store: Store) -> None:
    thread = threading.Thread(target=store.read_setting, args=("model",))
    thread.start()
    thread.join(LIMIT_S)


def test_threads_that_come_and_go_leave_no_connection(store: Store) -> None:
    read_in_a_thread(store)
    before = count_descriptors(store)
    for _ in range(30):
        read_in_a_thread(store)
    assert count_descriptors(store) == before


def read_together(store: Store, number: int) -> set[int]:
    """Let so many threads read at once; return which connections they had."""
    found: list[apsw.Connection] = []
    together, done = threading.Barrier(number + 1), threading.Event()

    def read() -> None:
        with store.reading() as connection:
            found.append(connection)
            together.wait(LIMIT_S)
            assert done.wait(LIMIT_S)

    threads = [threading.Thread(target=read) for _ in range(number)]
    for thread in threads:
        thread.start()
    together.wait(LIMIT_S)
    done.set()
    for thread in threads:
        thread.join(LIMIT_S)
    return {id(connection) for connection in found}


@pytest.mark.parametrize("number", [1, 2, 40])
def test_who_reads_at_once_has_a_connection_each_and_some_are_kept(store: Store, number: int) -> None:
    of_writer = count_descriptors(store, "-wal")
    assert len(read_together(store, number)) == number
    assert count_descriptors(store, "-wal") == of_writer + min(number, KEPT)
    before = count_descriptors(store)  # SQLite keeps those of the file while any connection has a lock, for the next
    assert len(read_together(store, number)) == number
    assert count_descriptors(store) == before


def test_a_read_that_is_broken_off_leaves_no_old_state_to_the_next(store: Store) -> None:
    store.write(lambda transaction: fill(transaction.connection)).result(LIMIT_S)
    with store.reading() as connection:
        rows = connection.execute("SELECT name FROM settings")
        assert next(rows)  # `rows` stays, as the traceback of an error holds it
    store.set_setting("written", "since").result(LIMIT_S)
    assert store.read_setting("written") == "since"


def fill(connection: apsw.Connection) -> None:
    for number in range(100):
        database_settings.put(connection, f"setting {number}", "1")


def test_a_store_that_is_closed_is_not_read_and_leaves_no_connection(store: Store) -> None:
    store.read_setting("model")
    read_in_a_thread(store)
    store.close()
    assert count_descriptors(store) == 0
    with pytest.raises(Unavailable, match="stopping"):
        store.read_setting("model")


def test_a_read_waits_for_another_to_end_while_no_connection_can_be_opened(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()

    def refuse(path: Any) -> None:
        refused.set()
        raise apsw.CantOpenError("unable to open database file")

    with store.reading():
        monkeypatch.setattr("memoryd.daemon.store.readers.open_reader", refuse)
        found: list[str | None] = []
        thread = threading.Thread(target=lambda: found.append(store.read_setting("none")))
        thread.start()
        assert refused.wait(LIMIT_S)
        assert found == []
    thread.join(LIMIT_S)
    assert found == [None]


def test_a_connection_that_cannot_be_opened_is_an_error_where_nobody_reads(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any) -> None:
        raise apsw.CantOpenError("unable to open database file")

    monkeypatch.setattr("memoryd.daemon.store.readers.open_reader", refuse)
    with pytest.raises(apsw.CantOpenError), store.reading():
        pass


def test_a_thread_reads_one_state_at_a_time(store: Store) -> None:
    with store.reading(), pytest.raises(RuntimeError, match="reading already"):
        store.read_setting("model")
    assert store.read_setting("none") is None


def test_what_another_thread_reads_can_be_interrupted(store: Store) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ended: list[bool] = []

    def read() -> None:
        with pytest.raises(apsw.InterruptError), store.reading() as connection:
            connection.execute(endless).fetchall()
        ended.append(True)

    thread = threading.Thread(target=read)
    thread.start()
    assert thread.ident is not None

    def interrupt() -> bool:
        store.readers.interrupt(thread.ident or 0)
        return bool(ended)

    wait_until(interrupt)
    thread.join(LIMIT_S)
    store.readers.interrupt(thread.ident)
    assert store.read_setting("none") is None
