"""The writer: one transaction for all that wait, each job on its own, RAM in step with the disk."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import Busy, Invalid, NotFound, StorageFailed, Unavailable
from memoryd.daemon.store import writer
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction
from workbench import LIMIT_S


class Held:
    """Keeps the writer busy with one job, so that what is queued meanwhile becomes one batch."""

    def __init__(self, store: Store) -> None:
        self._go, began = threading.Event(), threading.Event()

        def job(transaction: Transaction) -> None:
            began.set()
            assert self._go.wait(LIMIT_S)

        self.done = store.write(job)
        assert began.wait(LIMIT_S)

    def release(self) -> None:
        self._go.set()
        self.done.result(LIMIT_S)


def setting(name: str, value: str = "x") -> Callable[[Transaction], str]:
    def job(transaction: Transaction) -> str:
        transaction.connection.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
        return name

    return job


def failing(name: str, error: Exception) -> Callable[[Transaction], str]:
    def job(transaction: Transaction) -> str:
        setting(name)(transaction)
        raise error

    return job


def settings(store: Store) -> set[str]:
    with store.reading() as connection:
        return {name for (name,) in connection.execute("SELECT name FROM settings")}


def test_what_waits_when_the_daemon_ends_is_refused_and_later_jobs_are_done(store: Store) -> None:
    held = Held(store)
    waiting = [store.write(setting(name)) for name in ("one", "two")]
    store.writer.refuse_waiting()
    later = store.write(setting("three"))
    held.release()
    for future in waiting:
        with pytest.raises(Unavailable):
            future.result(LIMIT_S)
    assert later.result(LIMIT_S) == "three"
    assert settings(store) & {"one", "two", "three"} == {"three"}


def test_all_that_waits_is_one_transaction(store: Store) -> None:
    commits: list[int] = []
    store._connection.set_commit_hook(lambda: bool(commits.append(1)))  # type: ignore[func-returns-value]
    held = Held(store)
    jobs = [store.write(setting(f"s{n}")) for n in range(100)]
    held.release()
    assert [job.result(LIMIT_S) for job in jobs] == [f"s{n}" for n in range(100)]
    assert len(commits) == 2  # that of the holding job and one of all the others
    assert settings(store) == {f"s{n}" for n in range(100)}


def test_a_job_is_told_its_result_only_when_it_is_on_disk(store: Store) -> None:
    seen: list[bool] = []
    for n in range(20):
        store.write(setting(f"s{n}")).add_done_callback(lambda done: seen.append(done.result() in settings(store)))
    store.write(lambda transaction: None).result(LIMIT_S)
    assert seen == [True] * 20


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (Invalid("no"), Invalid),
        (KeyError("k"), KeyError),
        *((kind("broken"), StorageFailed) for kind in (apsw.ConstraintError, OSError, apsw.FullError, apsw.IOError)),
    ],
)
def test_a_failing_job_takes_back_only_its_own_changes(store: Store, error: Exception, seen: type[Exception]) -> None:
    told: list[str] = []

    def job(transaction: Transaction) -> str:
        transaction.after_commit(lambda: told.append("written"))
        transaction.call_on_rollback(lambda: told.append("taken back"))
        return failing("bad", error)(transaction)

    held = Held(store)
    before, bad, after = store.write(setting("before")), store.write(job), store.write(setting("after"))
    held.release()
    with pytest.raises(seen):
        bad.result(LIMIT_S)
    assert (before.result(LIMIT_S), after.result(LIMIT_S)) == ("before", "after")
    assert set(told) == {"taken back"}
    assert settings(store) == {"before", "after"}


def test_actions_run_after_the_commit_in_the_order_of_the_jobs_and_before_anybody_is_told(store: Store) -> None:
    order: list[str] = []

    def broken() -> None:
        raise RuntimeError("is logged and stops nothing")

    def job(name: str) -> Callable[[Transaction], None]:
        def run(transaction: Transaction) -> None:
            setting(name)(transaction)
            transaction.after_commit(lambda: order.append(f"{name} {name in settings(store)}"))
            transaction.after_commit(broken)
            transaction.call_on_rollback(lambda: order.append(f"{name} taken back"))

        return run

    held = Held(store)
    jobs = [store.write(job(name)) for name in "abc"]
    for name, written in zip("abc", jobs, strict=True):
        written.add_done_callback(lambda _, name=name: order.append(f"{name} told"))  # type: ignore[misc]
    held.release()
    jobs[-1].result(LIMIT_S)
    assert order == ["a True", "b True", "c True", "a told", "b told", "c told"]


def no_more_pages(store: Store) -> None:
    """Let the file not grow any more: SQLite answers with FULL, and takes the whole transaction back."""
    pages: Any = store._connection.pragma("page_count")
    store.writer._max_pages = pages
    store._connection.pragma("max_page_count", pages)


def large(transaction: Transaction) -> str:
    return setting("large", "x" * 100_000)(transaction)


def test_a_job_for_which_there_is_no_room_fails_with_its_own_error_and_the_others_are_written(store: Store) -> None:
    for number in range(20):  # free pages for what is small
        store.write(setting(f"old {number}", "y" * 500)).result(LIMIT_S)
    store.write(lambda transaction: transaction.connection.execute("DELETE FROM settings")).result(LIMIT_S)
    no_more_pages(store)
    told: list[str] = []

    def good(transaction: Transaction) -> str:
        transaction.call_on_rollback(lambda: told.append("taken back"))
        transaction.after_commit(lambda: told.append("written"))
        return setting("good")(transaction)

    held = Held(store)
    jobs: list[Future[str]] = [store.write(job) for job in (good, large, setting("later"), large)]
    jobs.append(store.write(large, alone=True))
    held.release()
    assert [jobs[0].result(LIMIT_S), jobs[2].result(LIMIT_S)] == ["good", "later"]
    for job in (jobs[1], jobs[3], jobs[4]):
        with pytest.raises(StorageFailed, match="disk is full"):
            job.result(LIMIT_S)
    assert told == ["taken back", "written"]
    assert settings(store) == {"good", "later"}


def test_a_batch_whose_commit_finds_no_room_is_written_job_by_job(store: Store) -> None:
    commits: list[int] = []
    store._connection.set_commit_hook(lambda: bool(commits.append(1)) or len(commits) == 2)  # type: ignore[func-returns-value]
    held = Held(store)
    jobs = [store.write(setting(name)) for name in "abc"]
    held.release()
    assert [job.result(LIMIT_S) for job in jobs] == ["a", "b", "c"]
    assert len(commits) == 5  # that of the holding job, that of all, and three
    assert settings(store) == set("abc")


def test_what_may_go_over_the_limit_is_written_where_nothing_else_fits(store: Store) -> None:
    no_more_pages(store)
    held = Held(store)
    refused, written, too = store.write(large), store.write(large, over_limit=True), store.write(setting("small"))
    held.release()
    with pytest.raises(StorageFailed):
        refused.result(LIMIT_S)
    assert (written.result(LIMIT_S), too.result(LIMIT_S)) == ("large", "small")
    with pytest.raises(StorageFailed):
        store.write(setting("again", "x" * 100_000)).result(LIMIT_S)


def test_a_commit_that_fails_again_and_again_fails_all_and_takes_everything_back(store: Store) -> None:
    taken_back: list[str] = []

    def job(transaction: Transaction) -> None:
        setting("a")(transaction)
        store._connection.set_commit_hook(lambda: True)  # turns the commit into a rollback
        transaction.after_commit(lambda: taken_back.append("never"))
        transaction.call_on_rollback(lambda: taken_back.append("a"))

    held = Held(store)
    jobs = [store.write(job), store.write(setting("b"))]
    held.release()
    for written in jobs:
        with pytest.raises(StorageFailed):
            written.result(LIMIT_S)
    store._connection.set_commit_hook(None)
    assert taken_back == ["a", "a"]  # of the batch, and alone
    assert settings(store) == set()
    store.write(setting("next")).result(LIMIT_S)


def test_when_sqlite_takes_the_transaction_back_by_itself_the_other_jobs_are_written_whole(store: Store) -> None:
    def job(transaction: Transaction) -> None:
        transaction.connection.execute("ROLLBACK")
        raise apsw.NoMemError("as SQLite does when memory or disk runs out")

    held = Held(store)
    before, bad, after = store.write(setting("before")), store.write(job), store.write(setting("after"))
    held.release()
    with pytest.raises(StorageFailed, match="as SQLite does"):
        bad.result(LIMIT_S)
    assert (before.result(LIMIT_S), after.result(LIMIT_S)) == ("before", "after")
    assert settings(store) == {"before", "after"}


def test_past_the_limit_a_writer_is_told_that_it_is_busy_and_when_to_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING", 3)
    store = Store(folder)
    held = Held(store)
    waiting = [store.write(setting(f"s{n}")) for n in range(3)]
    assert store.writer.count_waiting() == 3
    with pytest.raises(Busy) as refused:
        store.write(setting("one too many"))
    assert refused.value.data["retry_after_ms"] > 0
    held.release()
    assert [job.result(LIMIT_S) for job in waiting] == ["s0", "s1", "s2"]
    store.close()
    assert len(waiting) == 3


def test_closing_finishes_what_waits_and_refuses_more(folder: Path) -> None:
    store = Store(folder)
    held = Held(store)
    waiting = [store.write(setting(f"s{n}")) for n in range(writer.MAX_BATCH + 10)]
    closing = threading.Thread(target=store.close)
    closing.start()
    held.release()
    closing.join(LIMIT_S)
    assert all(job.done() and not job.exception() for job in waiting)
    with pytest.raises(StorageFailed, match="stopping"):
        store.write(setting("late"))
    again = Store(folder)
    assert len(settings(again)) == len(waiting)
    again.close()


def test_no_write_is_lost_or_left_hanging_when_many_threads_write_while_the_store_closes(folder: Path) -> None:
    store = Store(folder)
    written: list[Future[str]] = []

    def write(thread: int) -> None:
        for n in range(1000):
            try:
                written.append(store.write(setting(f"{thread}-{n}")))
            except (StorageFailed, Busy):
                return

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join(LIMIT_S)
    told = {job.result(LIMIT_S) for job in written}
    again = Store(folder)
    assert settings(again) == told
    again.close()


def test_a_cancelled_waiter_does_not_stop_the_writer(store: Store) -> None:
    held = Held(store)
    waiting = store.write(setting("waiting"))
    assert not waiting.cancel()
    held.release()
    assert waiting.result(LIMIT_S) == "waiting"
    store.write(setting("next")).result(LIMIT_S)


def test_only_jobs_that_run_together_have_savepoints(store: Store) -> None:
    """In a savepoint each statement takes longer the more was changed: many rows would take the square of it."""

    def undo(transaction: Transaction) -> None:
        transaction.connection.execute("ROLLBACK TO job")

    held = Held(store)
    together = [store.write(setting("a")), store.write(undo)]
    held.release()
    assert [job.result(LIMIT_S) for job in together] == ["a", None]
    with pytest.raises(StorageFailed, match="no such savepoint"):
        store.write(undo).result(LIMIT_S)


def test_a_job_alone_is_taken_back_as_a_whole_and_others_go_on(store: Store) -> None:
    taken_back = threading.Event()
    gate = threading.Event()

    def hold(transaction: Transaction) -> None:
        assert gate.wait(60)

    def fails(transaction: Transaction) -> None:
        transaction.call_on_rollback(taken_back.set)
        transaction.connection.execute("INSERT INTO settings VALUES ('a', '1')")
        raise NotFound("no such thing")

    store.write(hold)
    before, alone, after = store.set_setting("b", "1"), store.write(fails, alone=True), store.set_setting("c", "1")
    gate.set()
    before.result(10)
    with pytest.raises(NotFound, match="no such thing"):
        alone.result(10)
    after.result(10)
    assert taken_back.is_set()
    assert [store.read_setting(name) for name in "abc"] == [None, "1", "1"]


@pytest.mark.parametrize("last", [True, False])
def test_jobs_alone_and_together_keep_their_order_up_to_the_end(folder: Path, last: bool) -> None:
    store, gate, seen = Store(folder), threading.Event(), []
    store.write(lambda transaction: gate.wait(60))
    kinds = [False, True, True, False, False, True, False, last]
    for number, alone in enumerate(kinds):
        store.write(lambda transaction, number=number: seen.append(number), alone=alone)  # type: ignore[misc]
    gate.set()
    store.close()
    assert seen == list(range(len(kinds)))
