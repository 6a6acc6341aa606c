"""The writer: one transaction for all that wait, each job on its own, RAM in step with the disk."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import Busy, Invalid, NotFound, StorageFailed
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


def test_a_failing_job_takes_back_only_its_own_changes(store: Store) -> None:
    held = Held(store)
    before, bad, after = (
        store.write(setting("before")),
        store.write(failing("bad", Invalid("no"))),
        store.write(setting("after")),
    )
    held.release()
    assert before.result(LIMIT_S) == "before"
    assert after.result(LIMIT_S) == "after"
    with pytest.raises(Invalid, match="no"):
        bad.result(LIMIT_S)
    assert settings(store) == {"before", "after"}


@pytest.mark.parametrize(
    ("error", "seen"),
    [(KeyError("k"), KeyError), (apsw.ConstraintError("c"), StorageFailed), (OSError("o"), StorageFailed)],
)
def test_whatever_a_job_raises_the_next_one_is_written(store: Store, error: Exception, seen: type[Exception]) -> None:
    with pytest.raises(seen):
        store.write(failing("bad", error)).result(LIMIT_S)
    store.write(setting("next")).result(LIMIT_S)
    assert settings(store) == {"next"}


def test_actions_run_after_the_commit_in_the_order_of_the_jobs_and_before_anybody_is_told(store: Store) -> None:
    order: list[str] = []

    def broken() -> None:
        raise RuntimeError("is logged and stops nothing")

    def job(name: str) -> Callable[[Transaction], None]:
        def run(transaction: Transaction) -> None:
            setting(name)(transaction)
            transaction.after_commit(lambda: order.append(f"{name} {name in settings(store)}"))
            transaction.after_commit(broken)
            transaction.on_rollback(lambda: order.append(f"{name} taken back"))

        return run

    held = Held(store)
    jobs = [store.write(job(name)) for name in "abc"]
    for name, written in zip("abc", jobs, strict=True):
        written.add_done_callback(lambda _, name=name: order.append(f"{name} told"))  # type: ignore[misc]
    held.release()
    jobs[-1].result(LIMIT_S)
    assert order == ["a True", "b True", "c True", "a told", "b told", "c told"]


def test_a_job_that_fails_runs_its_rollback_actions_only(store: Store) -> None:
    order: list[str] = []

    def job(transaction: Transaction) -> None:
        transaction.after_commit(lambda: order.append("committed"))
        transaction.on_rollback(lambda: order.append("taken back"))
        raise Invalid("no")

    with pytest.raises(Invalid):
        store.write(job).result(LIMIT_S)
    assert order == ["taken back"]


@pytest.mark.parametrize("error", [apsw.FullError("disk full"), apsw.IOError("broken")])
def test_a_failing_disk_fails_the_whole_batch_and_takes_everything_back(store: Store, error: apsw.Error) -> None:
    taken_back: list[str] = []

    def good(transaction: Transaction) -> None:
        setting("good")(transaction)
        transaction.on_rollback(lambda: taken_back.append("good"))

    held = Held(store)
    jobs: list[Future[Any]] = [store.write(good), store.write(failing("bad", error)), store.write(setting("later"))]
    held.release()
    for job in jobs:
        with pytest.raises(StorageFailed):
            job.result(LIMIT_S)
    assert taken_back == ["good"]
    assert settings(store) == set()
    store.write(setting("next")).result(LIMIT_S)


def test_a_failing_commit_fails_all_and_takes_everything_back(store: Store) -> None:
    taken_back: list[str] = []

    def job(transaction: Transaction) -> None:
        setting("a")(transaction)
        store._connection.set_commit_hook(lambda: True)  # turns the commit into a rollback
        transaction.after_commit(lambda: taken_back.append("never"))
        transaction.on_rollback(lambda: taken_back.append("a"))

    held = Held(store)
    jobs = [store.write(job), store.write(setting("b"))]
    held.release()
    for written in jobs:
        with pytest.raises(StorageFailed):
            written.result(LIMIT_S)
    store._connection.set_commit_hook(None)
    assert taken_back == ["a"]
    assert settings(store) == set()
    store.write(setting("next")).result(LIMIT_S)


def test_when_sqlite_takes_the_transaction_back_by_itself_no_later_job_is_kept_in_part(store: Store) -> None:
    def job(transaction: Transaction) -> None:
        transaction.connection.execute("ROLLBACK")
        raise apsw.NoMemError("as SQLite does when memory or disk runs out")

    held = Held(store)
    jobs = [store.write(job), store.write(setting("later"))]
    held.release()
    for written in jobs:
        with pytest.raises(StorageFailed):
            written.result(LIMIT_S)
    assert settings(store) == set()


def test_past_the_limit_a_writer_is_told_that_it_is_busy_and_when_to_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING", 3)
    store = Store(folder)
    held = Held(store)
    waiting = [store.write(setting(f"s{n}")) for n in range(3)]
    assert store.waiting_writes() == 3
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


def test_a_job_alone_is_taken_back_as_a_whole_and_others_go_on(store: Store) -> None:
    taken_back = threading.Event()
    gate = threading.Event()

    def hold(transaction: Transaction) -> None:
        assert gate.wait(10)

    def fails(transaction: Transaction) -> None:
        transaction.on_rollback(taken_back.set)
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
    assert [store.setting(name) for name in "abc"] == [None, "1", "1"]


@pytest.mark.parametrize("last", [True, False])
def test_jobs_alone_and_together_keep_their_order_up_to_the_end(folder: Path, last: bool) -> None:
    store, gate, seen = Store(folder), threading.Event(), []
    store.write(lambda transaction: gate.wait(10))
    kinds = [False, True, True, False, False, True, False, last]
    for number, alone in enumerate(kinds):
        store.write(lambda transaction, number=number: seen.append(number), alone=alone)  # type: ignore[misc]
    gate.set()
    store.close()
    assert seen == list(range(len(kinds)))
