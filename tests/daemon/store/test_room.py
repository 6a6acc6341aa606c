"""The limit of the database's size: at it nothing is added, what is there is read and deleted, and it may be raised."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import StorageFailed, StorageFull
from memoryd.client.protocol import DECLARED, NewMemory, method_name
from memoryd.client.protocol.backfill import Backfill, PastTurn
from memoryd.daemon.config import Config, StorageConfig
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.store import extraction, reserve, upkeep
from memoryd.daemon.store.store import Store
from workbench import CountingEmbedder, Daemon, add, delete, running, search, undo, wait_until

# What goes on at the limit. A new call stands here, or it is declared with `grows=True`.
REMOVES = {"delete", "erase", "forget"}
REMOVES |= {"put", "remove_workspace", "reset_session", "revoke_token", "undo"}
TAKES_NO_ROOM = {
    "add_token",
    "backup",
    "dismiss_link",
    "end_session",
    "get_context",
    "get_shared",
    "get_unasked",
    "move_namespace",
    "pause_job",
    "pause_observing",
    "resume_job",
    "run_job",
    "shutdown",
    "verify",
}


def fill(client: Any) -> int:
    for number in range(1000):
        try:
            memories = [NewMemory(content=f"{number} {part} heron {'-' * 3000}") for part in range(20)]
            client.add_many(memories, dedup=False)
        except StorageFull:
            return number
    raise AssertionError("there was no limit")


def test_at_the_limit_nothing_is_added_while_reading_and_deleting_go_on(start_daemon: Callable[..., "Daemon"]) -> None:
    daemon = start_daemon(storage={"max_size_mb": 2})
    with daemon.client() as client:
        assert fill(client) > 3
        one = client.list(limit=1).memories[0].id
        for add in (
            lambda: client.add("One more"),
            lambda: client.observe([{"role": "user", "content": "We decided that the cache is Valkey"}]),
            lambda: client.update(one, content="Longer"),
            lambda: client.share(one, to=""),
            lambda: client.tag(one, "bird"),
            lambda: client.feedback(one, useful=True),
            lambda: client.consolidate(),
        ):
            with pytest.raises(StorageFull, match=r"limit of 2 MB; .* `max_size_mb`") as refused:
                add()
            assert refused.value.data["limit_bytes"] == 2_000_000
        status = client.status()
        assert status.database_limit_bytes == 2_000_000
        assert status.database_bytes >= 1_900_000
        assert client.search("heron", limit=3)
        ids = [memory.id for memory in client.list(limit=100).memories]
        for at in range(0, 100, 10):
            client.delete(*ids[at : at + 10])
        assert client.verify().problems == []


def test_room_comes_back_when_what_was_deleted_is_let_go(start_daemon: Callable[..., "Daemon"], clock: Any) -> None:
    daemon = start_daemon(storage={"max_size_mb": 2}, jobs={"history_days": 1.0})
    with daemon.client() as client:
        fill(client)
        ids = [memory.id for memory in client.list(limit=100).memories]
        client.delete(*ids)
        clock.advance(90 * 86400)
        client.run_job("trim")
        status = client.status()
        assert (
            status.database_used_bytes < status.database_limit_bytes < status.database_bytes
        )  # the file keeps its size
        assert client.add("One more").outcome == "created"


def pretend_size(monkeypatch: pytest.MonkeyPatch, daemon: "Daemon", size: int) -> None:
    """Let a database have a size, also after the writes that its background work still does."""
    monkeypatch.setattr(daemon.core.store, "_used_size", lambda connection: size)
    daemon.core.store.used_bytes = size


def test_near_the_limit_turns_are_refused_and_the_oldest_low_ones_proposed(
    start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = start_daemon(storage={"max_size_mb": 4}, tiers={"ring": 1})
    with daemon.client() as client:
        turns = [
            PastTurn(
                role="user", content=f"We walked along the river, round {n}", created_at=n * 86400.0, id=f"{n:032}"
            )
            for n in range(8)
        ]
        client.call(Backfill(turns=turns, session="s"))
        for memory in client.list(type=["turn"]):
            client.update(memory.id, importance=0.1)
        pretend_size(monkeypatch, daemon, 3_900_000)
        with pytest.raises(StorageFull, match=r"turns are not recorded.*importance<0.5' --before 1970-01-04\."):
            client.observe([{"role": "user", "content": "We decided that the cache is Valkey"}])
        assert client.add("The cache is Valkey").outcome == "created"
        pretend_size(monkeypatch, daemon, 4_000_001)
        with pytest.raises(StorageFull, match=r"nothing can be added.*memctl erase --type turn .*1970-01-04\."):
            client.add("The cache is Redis")


def test_turns_leave_room_for_what_is_still_to_be_made_of_earlier_ones(
    start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = start_daemon(storage={"max_size_mb": 4})
    with daemon.client() as client:
        monkeypatch.setattr(extraction, "count", lambda connection: {"rate": 400, "embed": 400})
        pretend_size(monkeypatch, daemon, 1_900_000)
        assert client.observe([{"role": "user", "content": "We decided that the cache is Valkey"}]).accepted == 1
        pretend_size(monkeypatch, daemon, 2_400_000)
        with pytest.raises(StorageFull, match="turns are not recorded"):
            client.observe([{"role": "user", "content": "We decided that the queue is NATS"}])
        assert client.add("The queue is NATS").outcome == "created"


def test_no_limit_is_no_limit_and_a_file_above_its_limit_opens(folder: Path) -> None:
    unlimited = Store(folder)
    unlimited.check_room()
    unlimited.close()
    limited = Store(folder, limit_bytes=1)
    with pytest.raises(StorageFull):
        limited.check_room()
    limited.close()


def test_every_call_that_changes_something_grows_or_removes_or_takes_no_room() -> None:
    others = {method_name(call) for call, rpc in DECLARED.items() if not rpc.reads and not rpc.grows}
    assert others == REMOVES | TAKES_NO_ROOM, "declare it with `grows=True`, or say here why it needs no room"


def test_history_alone_reaches_the_limit_and_then_what_removes_goes_on(
    start_daemon: Callable[..., "Daemon"], clock: Any
) -> None:
    daemon = start_daemon(storage={"max_size_mb": 1}, jobs={"history_days": 1.0})
    with daemon.client() as client:
        one, two, three = (client.add(f"{number} herons. {'heron ' * 2000}", dedup=False) for number in range(3))
        with pytest.raises(StorageFull, match="delete memories and shorten `history_days`"):
            repeat(lambda number: client.tag(one.id, f"tag {number}"))
        tags = client.get(one.id).metadata["tags"]
        assert tags == [f"tag {number}" for number in range(len(tags))]
        with pytest.raises(StorageFull):
            client.undo()  # of the last tag: the memory stays, its history grows
        clock.advance(90 * 86400)
        assert client.run_job("sweep").error.startswith("The database has reached its limit")
        no_room_at_all(daemon.core.store)
        assert client.delete(two.id).ids == [two.id]
        assert client.undo(three.operation).ids == [three.id]
        assert client.context("heron", session="s").text
        assert client.search("heron").hits[0].id == one.id
        for job in ("expire", "caps", "trim"):
            assert client.run_job(job).outcome == "done"
        assert client.add("One more").outcome == "created"
        assert client.verify().problems == []


def no_room_at_all(store: Store) -> None:
    """Put the file's last resort where the file ends: nothing fits but what may go over the limit."""

    def job(transaction: Any) -> None:
        store.writer._max_pages = transaction.connection.pragma("page_count")
        transaction.connection.pragma("max_page_count", store.writer._max_pages)

    store.write(job).result()


def test_jobs_that_remove_or_take_no_room_go_on_at_the_limit() -> None:
    stop = {name for name, row in list_jobs().items() if not row.work.at_limit}
    assert stop <= {"promote", "sweep", "cluster", "dream"}, "a job that takes no room says `at_limit=True` in its Work"


@pytest.fixture
def small_disk(folder: Path, request: pytest.FixtureRequest) -> Any:
    """A file system of 24 MB, or what a test says: the write-ahead log takes up to 8."""
    size = getattr(request, "param", "24m")
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a file system")
    place = folder / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_in_a_sentence_loses_nothing_and_removes_at_once(small_disk: Path) -> None:
    with running(small_disk, CountingEmbedder()) as core:
        kept = [add(core, f"{number} heron {'-' * 2000}", dedup=False) for number in range(20)]
        stone = fill_until_full(small_disk, core, kept)
        for one in [kept.pop() for _ in range(len(kept) // 2)]:
            delete(core, one.id)
        assert core.store.reserve.is_spent()
        wait_until(lambda: upkeep.log_size_bytes(core.store) == 0)
        undo(core, kept.pop().operation)
        assert present(core) == {one.id for one in kept}
        with pytest.raises(StorageFailed, match=r"Free at least 16 MiB\.$"):
            add(core, "One more")
        with pytest.raises(StorageFailed, match="The disk is full"):
            core.store.check_room()
        stone.unlink()
        kept.append(add(core, "One more"))
        assert not core.store.reserve.is_spent()
        assert present(core) == {one.id for one in kept}
        assert core.store.find_problems() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "small_disk"),
    [
        ("delete", "10m"),
        ("delete by filter", "14m"),
        ("erase", "10m"),
        ("erase", "20m"),
        ("forget", "10m"),
        ("undo", "14m"),
    ],
    indirect=["small_disk"],
)
def test_on_a_small_full_disk_each_call_that_removes_makes_room(small_disk: Path, folder: Path, first: str) -> None:
    with running(small_disk, CountingEmbedder()) as core:
        kept: list[Any] = []
        with pytest.raises(StorageFailed, match="The disk is full"):
            repeat(lambda number: kept.append(add(core, f"{number} heron {'-' * 2000}", dedup=False)), 10_000)
        last, text = kept[-1], f"{len(kept) - 1} heron {'-' * 2000}"
        daemon = Daemon(core, Config(), folder / "s")
        with daemon.client() as client:
            {
                "delete": lambda: client.delete(last.id),
                "delete by filter": lambda: client.delete(where={"memory.content": text}),
                "erase": lambda: client.erase(ids=[last.id]),
                "forget": lambda: client.forget(last.id),
                "undo": lambda: client.undo(last.operation),
            }[first]()
            assert client.list(limit=1).total == len(kept) - 1
            for at in range(0, len(kept) - 1, 100):
                client.delete(*[one.id for one in kept[at : min(at + 100, len(kept) - 1)]])
            assert client.list(limit=1).total == 0
            assert client.add("One more").outcome == "created"
        daemon.stop()


def test_a_log_that_has_no_room_to_be_folded_is_folded_with_the_reserve(small_disk: Path) -> None:
    with running(small_disk, CountingEmbedder()) as core:
        core.store.write(lambda transaction: transaction.connection.pragma("wal_autocheckpoint", 0)).result()
        kept: list[Any] = []
        fill_until_full(small_disk, core, kept, 4_000_000)
        assert upkeep.log_size_bytes(core.store) > 3_000_000
        delete(core, kept.pop().id)
        wait_until(lambda: upkeep.log_size_bytes(core.store) == 0)
        assert present(core) == {one.id for one in kept}


def test_a_start_on_a_full_disk_serves_reads_and_deletes(small_disk: Path) -> None:
    kept: list[Any] = []
    with running(small_disk, CountingEmbedder()) as core:
        fill_until_full(small_disk, core, kept)
    fill_up(small_disk, 0, "pebble")
    for _ in range(2):  # with the reserve of the daemon before, and with what was left of it
        with running(small_disk, CountingEmbedder()) as core:
            assert core.store.reserve.is_spent()
            assert search(core, "heron").hits
            delete(core, kept.pop().id)
            assert present(core) == {one.id for one in kept}
            with pytest.raises(StorageFailed, match="The disk is full"):
                add(core, "One more")


def test_the_daemon_and_doctor_say_that_the_disk_is_full(
    start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        one = client.add("The heron fishes")
        assert not client.status().disk_full
        monkeypatch.setattr(reserve, "measure_free_bytes", lambda folder: 0)
        assert daemon.core.store.reserve.release()
        assert client.status().disk_full
        with pytest.raises(StorageFailed, match="The disk is full"):
            client.add("The stork nests")
        with pytest.raises(StorageFailed, match="The disk is full"):
            client.observe([{"role": "user", "content": "We decided that the cache is Valkey"}])
        assert client.search("heron").hits[0].id == one.id
        assert client.delete(one.id).ids == [one.id]
        monkeypatch.undo()
        assert not client.status().disk_full
        assert client.add("The stork nests").outcome == "created"


def test_on_a_nearly_full_disk_the_limit_leaves_room_to_delete(small_disk: Path) -> None:
    with running(small_disk, CountingEmbedder(), config=Config(storage=StorageConfig(max_size_mb=2))) as core:
        kept = []
        while not core.store.is_full():
            kept.append(add(core, f"{len(kept)} heron {'-' * 10_000}", dedup=False))
        fill_up(small_disk, 8_000_000)
        for one in kept:
            delete(core, one.id)
        assert present(core) == set()
        assert core.store.find_problems() == []


def repeat(action: Callable[[int], Any], times: int = 1000) -> None:
    for number in range(times):
        action(number)


def fill_until_full(disk: Path, core: Any, kept: list[Any], left_bytes: int = 500_000) -> Path:
    """Leave so much room and add until there is none."""
    stone = fill_up(disk, left_bytes)
    with pytest.raises(StorageFailed, match="The disk is full"):
        repeat(lambda number: kept.append(add(core, f"more {number} heron {'-' * 2000}", dedup=False)))
    assert present(core) == {one.id for one in kept}
    return stone


def fill_up(disk: Path, left_bytes: int, name: str = "stone") -> Path:
    stone = disk / name
    stone.write_bytes(b"x" * (shutil.disk_usage(disk).free - left_bytes))
    return stone


def present(core: Any) -> set[str]:
    with core.store.reading() as connection:
        return {id for (id,) in connection.execute("SELECT id FROM memories")}
