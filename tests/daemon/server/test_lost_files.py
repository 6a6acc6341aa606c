"""The folder of the data or of the socket is deleted, moved or replaced while the daemon runs: it notices and ends.

No write is acknowledged that nobody would find, and nothing is made again where something was deleted.
"""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from configs import NO_MODEL
from each import each
from memoryd.client import Client, MemorydError, StorageFailed
from memoryd.client.protocol import Backup, Erase, Jobs, RunJob, Verify
from memoryd.daemon import __main__ as entry
from memoryd.daemon.core.core import Core
from memoryd.daemon.server.watchdog import LOST
from memoryd.daemon.store.store import FILE_NAME as DATABASE
from memoryd.daemon.system import presence
from waiting import wait_until
from workbench import CountingEmbedder, Process, add, running


def contents(data: Path) -> set[str]:
    connection = sqlite3.connect(data / DATABASE)
    try:
        return {content for (content,) in connection.execute("SELECT content FROM memories")}
    finally:
        connection.close()


def test_what_would_be_written_into_a_deleted_file_is_refused(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "kept")
        (folder / "data" / DATABASE).unlink()
        with pytest.raises(StorageFailed, match="was deleted or moved"):
            add(core, "lost")
    assert not (folder / "data" / DATABASE).exists()


def test_a_log_of_another_database_is_not_deleted_with_the_connection(folder: Path) -> None:
    log = folder / "data" / f"{DATABASE}-wal"
    with running(folder, CountingEmbedder()) as core:
        add(core, "kept")
        log.unlink()
        log.write_bytes(b"another's")
        with pytest.raises(StorageFailed):
            add(core, "lost")
    assert log.read_bytes() == b"another's"


def _fail_to_read(core: Core) -> None:
    with core.store.reading() as connection:
        connection.execute("ROLLBACK")  # as SQLite does by itself where a page cannot be read
        raise apsw.IOError("disk I/O error")


def test_what_cannot_be_read_from_the_disk_is_said_in_one_sentence(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        with pytest.raises(StorageFailed, match="cannot be read: disk I/O error"):
            _fail_to_read(core)
        add(core, "kept")
    assert contents(folder / "data") == {"kept"}


def test_a_log_that_was_deleted_is_written_into_the_database_at_the_end(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "kept")
        (folder / "data" / f"{DATABASE}-wal").unlink()
    assert contents(folder / "data") == {"kept"}


def _delete_data(process: "Process") -> None:
    shutil.rmtree(process.data)


def _move_data(process: "Process") -> None:
    process.data.rename(process.data.with_name("elsewhere"))


def _replace_database(process: "Process") -> None:
    other = process.folder / "other"
    other.write_bytes((process.data / DATABASE).read_bytes())
    other.replace(process.data / DATABASE)


def _delete_socket(process: "Process") -> None:
    process.socket.unlink()


def _delete_locks(process: "Process") -> None:
    (process.data / "memoryd.lock").unlink()


@pytest.mark.slow
def test_a_daemon_that_lost_its_files_says_so_and_ends(folder: Path) -> None:
    started: list[tuple[Process, Callable[[Process], None]]] = []
    try:
        for harm in (_delete_data, _move_data, _replace_database, _delete_socket, _delete_locks):
            (folder / harm.__name__).mkdir()
            process = Process(folder / harm.__name__, NO_MODEL).start()
            started.append((process, harm))
            with process.client() as client:
                client.add("kept")
            harm(process)
        for process, harm in started:
            assert process.child is not None
            assert process.child.wait(30) == LOST, harm
            said = (process.folder / "log").read_text()
            assert said.count("was deleted or moved: this daemon ends") == 1, harm
            assert "Traceback" not in said, harm
            assert process.data.exists() == (harm not in (_delete_data, _move_data)), harm
    finally:
        for process, _ in started:
            process.stop()


class _Adding(threading.Thread):
    """A client that adds until it is refused; `acknowledged` is what was accepted, `began` the number of the latest."""

    def __init__(self, client: "Client") -> None:
        super().__init__(daemon=True)
        self.client, self.acknowledged, self.began = client, list[str](), 0
        self.start()

    def run(self) -> None:
        try:
            while True:
                self.began += 1
                self.client.add(f"number {self.began}", dedup=False)
                self.acknowledged.append(f"number {self.began}")
        except (MemorydError, OSError):
            return


@pytest.mark.slow
def test_what_is_acknowledged_while_the_folder_moves_is_in_the_moved_folder(process: "Process") -> None:
    with process.client() as client:
        adding = _Adding(client)
        wait_until(lambda: len(adding.acknowledged) > 20)
        _move_data(process)
        adding.join(30)
    assert process.child is not None
    assert process.child.wait(30) == LOST
    assert set(adding.acknowledged) <= contents(process.folder / "elsewhere")


@pytest.mark.slow
def test_nothing_is_acknowledged_once_the_folder_is_deleted(process: "Process") -> None:
    with process.client() as client:
        adding = _Adding(client)
        wait_until(lambda: len(adding.acknowledged) > 20)
        (process.data / DATABASE).unlink()
        latest = adding.began
        adding.join(30)
    assert len(adding.acknowledged) <= latest


@pytest.mark.slow
def test_the_end_of_such_a_daemon_harms_none_that_has_its_place(process: "Process", folder: Path) -> None:
    _delete_data(process)
    (folder / "next").mkdir()
    heir = type(process)(folder / "next", NO_MODEL, {"MEMORYD_DATA_DIR": str(process.data)}).start()
    try:
        with heir.client() as client:
            client.add("kept")
        assert process.child is not None
        assert process.child.wait(30) == LOST, (process.folder / "log").read_text()
        heir.kill()
        with heir.start().client() as client:
            assert [memory.content for memory in client.list()] == ["kept"]
    finally:
        heir.stop()


@each(
    ("code", "error", "is_of_loss"), [(LOST, OSError("gone"), True), (LOST, None, False), (0, OSError("gone"), False)]
)
def test_what_cannot_be_closed_after_a_loss_changes_no_exit_code(
    code: int, error: OSError | None, is_of_loss: bool
) -> None:
    assert entry._is_due_to_loss(code, error) is is_of_loss


async def _fail() -> int:
    raise OSError("disk I/O error")


def test_what_fails_for_a_lost_file_ends_the_daemon_as_the_loss_does(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    held = presence.hold([tmp_path / "there"])
    with pytest.raises(OSError, match="disk"):
        entry._run_to_end(_fail(), held)
    (tmp_path / "there").unlink()
    assert entry._run_to_end(_fail(), held) == LOST


@pytest.mark.slow
def test_another_program_that_reads_the_database_never_deletes_its_log(process: "Process") -> None:
    """SQLite does so where it finds no lock; a daemon that closes any file of the database loses all of its own."""
    with process.client(timeout_s=60) as client:
        secret = client.add("zythology on Tuesday")
        jobs = [job.name for job in client.call(Jobs()).jobs]
        calls = [Erase(ids=[secret.id]), Verify(), Backup(), *(RunJob(name=job) for job in jobs)]
        for number, call in enumerate(calls):
            client.call(call)
            contents(process.data)
            client.add(f"note {number}", dedup=False)
    assert contents(process.data) == {f"note {number}" for number in range(len(calls))}
