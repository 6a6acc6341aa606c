"""Threads that fail go on: the supervisor by itself, then each kind of thread with a fault that would end it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import Job, JobList, Jobs, RunJob, ThreadState
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.conversations import extracting
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.server.timer import Timer
from memoryd.daemon.store.readers import Readers
from memoryd.daemon.store.store import Store
from memoryd.daemon.system import supervisor as supervising
from memoryd.daemon.system.supervisor import Supervisor
from workbench import LIMIT_S, CountingEmbedder, add, running, search, wait_until


class Panic(BaseException):
    """What a library raises that is not meant to be caught."""


def state(supervisor: Supervisor, name: str) -> ThreadState:
    return next((one for one in supervisor.list_states() if one.name == name), ThreadState(name=name))


def works_again(supervisor: Supervisor, name: str) -> bool:
    found = state(supervisor, name)
    return found.restarts > 0 and found.works_since is not None


@contextmanager
def started(work: Callable[[], float | None]) -> Iterator[Supervisor]:
    supervisor, stopping, wake = Supervisor(lambda: 7.0), threading.Event(), threading.Event()
    thread = supervisor.start("worker", work, stopping, wake)
    try:
        yield supervisor
    finally:
        stopping.set()
        wake.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


# The supervisor ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RuntimeError("a\nb"), Panic("it panicked")])
def test_a_thread_goes_on_after_whatever_it_raises(
    quick: None, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    errors, done = [error, error, error], threading.Event()

    def work() -> float | None:
        if errors:
            raise errors.pop()
        done.set()
        return None

    with started(work) as supervisor:
        assert done.wait(LIMIT_S)
        wait_until(lambda: works_again(supervisor, "worker"))
        found = state(supervisor, "worker")
    sentence = f"{type(error).__name__}: {' '.join(str(error).split())}"
    assert (found.restarts, found.error, found.failed_at, found.works_since) == (3, sentence, 7.0, 7.0)
    assert not found.is_failing()
    lines = [record.message for record in caplog.records if "the thread worker failed" in record.message]
    assert len(lines) == 3
    assert all(sentence in line for line in lines)


def test_the_pause_doubles_up_to_a_minute_and_begins_anew_once_it_worked() -> None:
    supervisor = Supervisor()
    pauses = [supervisor.note_failure("worker", OSError()) for _ in range(9)]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert state(supervisor, "worker").is_failing()
    supervisor.note_work("worker")
    assert supervisor.note_failure("worker", OSError()) == 1.0
    supervisor.forget("worker")
    assert supervisor.list_states() == []


def test_a_thread_that_rests_after_a_failure_ends_at_once() -> None:
    failed = threading.Event()

    def work() -> float | None:
        failed.set()
        raise OSError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervising, "FIRST_PAUSE_S", 3600.0)
        patch.setattr(supervising, "LONGEST_PAUSE_S", 3600.0)
        with started(work):
            assert failed.wait(LIMIT_S)


# Each kind of thread -------------------------------------------------------------------------------------------------


class Descriptors:
    """Those of a process: while they are used up no other thread than that of the test can read the database."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.used_up = False
        self._take = Readers.take
        patch.setattr(Readers, "take", lambda readers: self._open(readers))

    def _open(self, readers: Readers) -> Any:
        if self.used_up and threading.current_thread() is not threading.main_thread():
            raise apsw.CantOpenError("unable to open database file")
        return self._take(readers)

    @contextmanager
    def used_up_for(self, supervisor: Supervisor, name: str) -> Iterator[None]:
        """Use them up for what the block begins, until the thread of that name fails; then it must work again."""
        self.used_up = True
        yield
        wait_until(lambda: state(supervisor, name).is_failing())
        self.used_up = False
        wait_until(lambda: works_again(supervisor, name))


@pytest.fixture
def descriptors(monkeypatch: pytest.MonkeyPatch, quick: None) -> Descriptors:
    return Descriptors(monkeypatch)


def test_effects_are_written_once_the_database_opens_again(core: Core, descriptors: Descriptors) -> None:
    id = add(core, "Herons fish at dawn").id
    search(core, "herons", touch=False)  # the vector of the query is known then: this thread alone reads
    descriptors.used_up = True
    search(core, "herons", session="s")
    wait_until(lambda: state(core.supervisor, "effects").restarts > 1)
    descriptors.used_up = False

    def accesses() -> Any:
        with core.store.reading() as connection:
            return connection.execute("SELECT access_count FROM memories WHERE id = ?", (id,)).get

    wait_until(lambda: accesses() == 1)
    assert core.recalls.find_repeated("", "s", "Herons fish at dawn") == [id]
    wait_until(lambda: works_again(core.supervisor, "effects"))


def test_a_job_that_was_asked_for_runs_once_the_database_opens_again(core: Core, descriptors: Descriptors) -> None:
    jobs = Runner(core)
    with descriptors.used_up_for(core.supervisor, "jobs"):
        asked = jobs.run(RunJob(name="sweep"), lambda event: None)
    assert asked.result(LIMIT_S).outcome == "done"
    assert jobs.run(RunJob(name="sweep"), lambda event: None).result(LIMIT_S).outcome == "done"
    jobs.close()


def test_jobs_that_wait_for_the_database_are_refused_when_the_daemon_stops(
    core: Core, descriptors: Descriptors
) -> None:
    jobs = Runner(core)
    descriptors.used_up = True
    asked = jobs.run(RunJob(name="sweep"), lambda event: None)
    wait_until(lambda: state(core.supervisor, "jobs").is_failing())
    jobs.close()
    assert type(asked.exception(LIMIT_S)).__name__ == "Unavailable"


def test_a_panic_while_thinking_ends_nothing(core: Core, monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    errors = [Panic()]

    def step(core: Core) -> bool:
        if errors:
            raise errors.pop()
        return False

    monkeypatch.setattr(extracting, "step", step)
    worker = Worker(core)
    worker.start()
    wait_until(lambda: works_again(core.supervisor, "conversations"))
    worker.close()


def test_full_text_is_warmed_once_the_database_opens(folder: Path, descriptors: Descriptors) -> None:
    store = Store(folder, derived=Arrays())
    with descriptors.used_up_for(store.supervisor, "warm"):
        store.warm_soon()
    store.close()


def test_a_model_whose_library_panics_is_loaded_later(folder: Path, quick: None) -> None:
    errors = [Panic("thread panicked at tokenizers")]

    def load(name: str, where: Path) -> CountingEmbedder:
        if errors:
            raise errors.pop()
        return CountingEmbedder()

    with running(folder, load) as core:
        wait_until(lambda: works_again(core.supervisor, "embedding"))


def test_a_write_that_panics_fails_alone_and_writing_goes_on(core: Core) -> None:
    gate = threading.Event()
    held = core.store.write(lambda transaction: gate.wait(LIMIT_S))

    def panic(transaction: Any) -> None:
        raise Panic("out of bounds")

    before = core.store.write(lambda transaction: "before")
    failing = core.store.write(panic)
    after = core.store.write(lambda transaction: "after")
    gate.set()
    assert (before.result(LIMIT_S), after.result(LIMIT_S), held.result(LIMIT_S)) == ("before", "after", True)
    assert isinstance(failing.exception(LIMIT_S), Panic)
    assert add(core, "Herons fish at dawn").outcome == "created"


def test_a_failure_of_the_writer_itself_keeps_nobody_waiting(
    core: Core, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    writer = core.store.writer

    def broken(batch: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_write", broken)
        with pytest.raises(StorageFailed, match="No space left"):
            core.store.write(lambda transaction: None).result(LIMIT_S)
    assert core.store.write(lambda transaction: 1).result(LIMIT_S) == 1
    wait_until(lambda: works_again(core.supervisor, "writer"))


def test_a_thread_that_ends_at_once_leaves_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, stopping = Supervisor(), threading.Event()

    def work() -> float:
        stopping.set()
        supervisor.forget("short")
        return 0.0

    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        begin(thread)
        thread.join(LIMIT_S)

    monkeypatch.setattr(threading.Thread, "start", start)
    supervisor.start("short", work, stopping)
    assert supervisor.list_states() == []


def test_the_timer_of_jobs_starts_once_the_daemon_can_tell_them(core: Core, quick: None) -> None:
    errors, asked = [apsw.CantOpenError("unable to open database file")], threading.Event()

    class Server:
        def __init__(self) -> None:
            self.core, self.jobs = core, Runner(core)

        def perform(self, call: Any) -> Any:
            if isinstance(call, Jobs) and errors:
                raise errors.pop()
            if isinstance(call, RunJob):
                asked.set()
                return None
            job = Job(name="sweep", about="", state="waiting", every_s=60.0, deadline_s=1.0, next_run_at=core.clock())
            return JobList(jobs=[job], at=core.clock())

    timer = Timer(Server())  # type: ignore[arg-type]
    timer.start()
    assert asked.wait(LIMIT_S)
    assert state(core.supervisor, "timer").restarts == 1
    timer.stop()
