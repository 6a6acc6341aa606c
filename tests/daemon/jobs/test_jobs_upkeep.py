"""Jobs that look after the database: embed, maintain, backup. On real files."""

import os
import re
import time
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw
import pytest

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Backup, NewMemory
from memoryd.daemon.config import Config, JobsConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import table
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.store import copies as store_copies
from memoryd.daemon.store import fulltext, rows, upkeep
from memoryd.daemon.store import jobs as store_jobs
from memoryd.daemon.store.copies import copy, list_copies
from memoryd.daemon.store.store import Store
from memoryd.daemon.system import process
from memoryd.daemon.upkeep import rescue
from memoryd.daemon.upkeep.housekeeping import LEAST_BYTES
from moving import everything, run
from workbench import CountingEmbedder, add, add_many, ask, delete, disk_and_memory, found, running, wait_until


def copies(core: Core) -> list[str]:
    return [path.name for path in list_copies(core.folder / "backups")]


def test_every_job_has_an_interval_a_deadline_and_a_sentence() -> None:
    for row in table.list_jobs().values():
        assert row.every_s >= 60
        assert 0 < row.deadline_s <= 600
        assert row.about.endswith(".")


def test_each_work_of_the_daemon_is_a_job() -> None:
    folder = Path(table.__file__).parents[1]
    pattern = re.compile(r"^([A-Z_]+) = Work\(", re.MULTILINE)
    listed = [row.work for row in table.list_jobs().values()]
    for path in folder.rglob("*.py"):
        for name in pattern.findall(path.read_text()):
            module = import_module(".".join(("memoryd.daemon", *path.relative_to(folder).with_suffix("").parts)))
            assert getattr(module, name) in listed, "give it a row in jobs/table.py or in the jobs of its room"


def test_settings_of_a_job_that_there_is_not_are_refused() -> None:
    table.check(JobsConfig(every_s={"sweep": 60.0}))
    with pytest.raises(Invalid, match=r"^There is no job 'sweeep' - at `\$\.jobs\.every_s`; there are sweep, caps, "):
        table.check(JobsConfig(every_s={"sweep": 60.0, "sweeep": 60.0}))


@each("name", list(table.list_jobs()))
def test_every_job_runs_on_an_empty_database_dry_and_wet(jobs: Runner, name: str) -> None:
    assert run(jobs, name, dry_run=True).outcome == "planned"
    assert run(jobs, name).outcome == "done"


@each("name", list(table.list_jobs()))
def test_a_dry_run_of_every_job_changes_nothing(core: Core, jobs: Runner, name: str) -> None:
    add_many(core, [NewMemory(content=f"Crane number {n}") for n in range(20)], dedup=False)
    before, mark = everything(core), _changes(core)
    run(jobs, name, dry_run=True)
    assert (everything(core), _changes(core)) == (before, mark)
    assert copies(core) == []


def _changes(core: Core) -> Any:
    return core.store.write(lambda transaction: transaction.connection.total_changes()).result()


# embed ---------------------------------------------------------------------------------------------------------------


def test_memories_whose_embedding_failed_are_embedded_again(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        embedder.broken = True
        id = add(core, "Herons fish at dawn").id
        assert core.embedding.active is not None
        failing = core.embedding.active.failing
        wait_until(lambda: len(failing) == 1)
        embedder.broken = False
        jobs = Runner(core)
        planned = run(jobs, "embed", dry_run=True)
        assert [(s.target, s.preview) for s in planned.steps] == [(id, "Herons fish at dawn")]
        assert run(jobs, "embed", plan=planned.plan).counts == {"queued": 1}
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert found(core, "herons fish at dawn", min_similarity=0.9) == ["Herons fish at dawn"]
        assert run(jobs, "embed").counts == {}
        jobs.close()


def test_a_memory_that_the_queue_lost_gets_its_vector(core: Core, jobs: Runner) -> None:
    add(core, "Herons fish at dawn")
    core.store.write(lambda t: t.connection.execute("DELETE FROM vec_embeddings")).result()
    assert run(jobs, "embed").counts == {"queued": 1}
    wait_until(lambda: len(disk_and_memory(core)[1]) == 1)
    stored, held = disk_and_memory(core)
    assert stored == held


def test_between_two_comparisons_with_the_disk_the_job_looks_in_ram(core: Core, jobs: Runner) -> None:
    row = add(core, "Herons fish at dawn")
    assert run(jobs, "embed").counts == {}
    generation = core.embedding.active
    assert generation is not None
    with core.store.reading() as connection:
        number = rows.read_ids(connection, [row.id])[row.id].row
    core.store.write(lambda t: t.connection.execute("DELETE FROM vec_embeddings")).result()
    assert run(jobs, "embed").counts == {}
    generation.remove_rows([number])
    assert run(jobs, "embed").counts == {"queued": 1}


# maintain ------------------------------------------------------------------------------------------------------------


def test_full_text_has_fewer_segments_afterwards_and_finds_the_same(core: Core, jobs: Runner) -> None:
    for number in range(20):
        add(core, f"Crane number {number}", dedup=False)

    def count_mergeable() -> int:
        with core.store.reading() as connection:
            return fulltext.count_mergeable(connection)

    assert count_mergeable() >= 4
    done = run(jobs, "maintain")
    assert (done.outcome, done.operation) == ("done", None)
    assert done.counts["merged"] >= 1
    assert count_mergeable() == 0
    assert len(found(core, "crane", limit=50)) == 20
    assert core.store.find_problems() == []


def test_a_large_log_is_folded_into_the_file(core: Core, jobs: Runner) -> None:
    assert "pages" not in run(jobs, "maintain").counts
    core.store.write(lambda t: t.connection.pragma("wal_autocheckpoint", 0)).result()
    add_many(core, [NewMemory(content=f"Crane number {n} " * 200) for n in range(200)], dedup=False)
    log = upkeep.log_size_bytes(core.store)
    assert log > 1024 * 1024
    assert run(jobs, "maintain").counts["pages"] > 100
    add(core, "a write that begins the log anew")
    size = core.store.path.stat().st_size
    assert size > log / 2


def test_memory_that_was_freed_is_given_back(core: Core, jobs: Runner) -> None:
    held = [bytes(100_000) for _ in range(400)]  # below what is mapped by itself: 128 kB
    kept = held[::2]  # the holes in between stay with the allocator
    del held
    assert process.measure_free_bytes() > LEAST_BYTES
    before = process.rss_bytes()
    done = run(jobs, "maintain")
    assert done.counts["released kB"] > 5_000
    assert process.rss_bytes() < before - 5_000_000
    assert len(kept) == 200


# backup --------------------------------------------------------------------------------------------------------------


def test_a_backup_is_one_complete_private_file(core: Core, jobs: Runner) -> None:
    add_many(core, [NewMemory(content=f"Crane number {n}") for n in range(100)], dedup=False)
    assert run(jobs, "backup").counts == {"copied": 1}
    [name] = copies(core)
    path = core.folder / "backups" / name
    assert name == "memoryd-20270115T080000Z.sqlite"
    assert os.listdir(path.parent) == [name]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.execute("SELECT count(*) FROM memories").get == 100
    connection.close()


def test_there_is_no_new_backup_while_nobody_changed_anything(core: Core, jobs: Runner, clock: Any) -> None:
    assert run(jobs, "backup").counts == {}  # nothing to keep
    add(core, "Herons fish at dawn")
    assert run(jobs, "backup").counts == {"copied": 1}
    for _ in range(3):
        clock.advance(86400)
        assert run(jobs, "backup").counts == {}  # though runs were written since
    add(core, "Storks nest on roofs")
    assert run(jobs, "backup").counts == {"copied": 1}


def test_the_job_deletes_no_copy_that_was_asked_for(core: Core, jobs: Runner, clock: Any) -> None:
    add(core, "Herons fish at dawn")
    ask(core, Backup(), report=lambda event: None)
    for number in range(5):
        add(core, f"Crane number {number}", dedup=False)
        clock.advance(86400)
        run(jobs, "backup")
    assert copies(core) == [
        "kept-20270115T080000Z.sqlite",
        *(f"memoryd-202701{day}T080000Z.sqlite" for day in (18, 19, 20)),
    ]


def test_after_a_restore_the_job_waits_for_its_interval(core: Core, jobs: Runner, folder: Path) -> None:
    """Each copy that it makes costs an older one, which may be the one that is looked for."""
    add(core, "Herons fish at dawn")
    run(jobs, "backup")
    (folder / "restored").mkdir()
    began = time.time()
    rescue.restore(core.folder / "backups" / copies(core)[0], folder / "restored")
    with closing(Store(folder / "restored")) as store, store.reading() as connection:
        last_run_at = store_jobs.read_state(connection, "backup").last_run_at
        assert store_jobs.read_latest(connection, "backup", 1) == [], "no copy was made of this database"
    assert began <= (last_run_at or 0.0) <= time.time()


def test_no_backups_are_made_where_none_are_to_be_kept(core: Core, jobs: Runner) -> None:
    core.config = Config(jobs=JobsConfig(backups=0))
    add(core, "Herons fish at dawn")
    assert run(jobs, "backup").counts == {}


def test_a_backup_that_is_interrupted_leaves_nothing_behind(core: Core, folder: Path) -> None:
    add(core, "Herons fish at dawn")

    class Enough(Exception):
        pass

    def check() -> None:
        raise Enough

    with pytest.raises(Enough):
        copy(core.store, folder / "copy.sqlite", check)
    assert [name for name in os.listdir(folder) if name.startswith("copy")] == []


@pytest.mark.slow
def test_writes_go_on_while_a_backup_is_made_and_it_holds_one_moment(core: Core, folder: Path) -> None:
    ids = [
        r.id for r in add_many(core, [NewMemory(content=f"Crane {n} " * 300) for n in range(500)], dedup=False).results
    ]
    writes = iter(range(10_000))

    def check() -> None:
        delete(core, ids[next(writes)])

    copy(core.store, folder / "copy.sqlite", check)
    assert next(writes) > 1
    connection = apsw.Connection(str(folder / "copy.sqlite"))
    assert connection.execute("SELECT count(*) FROM memories").get == 500
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


def test_no_room_for_a_backup_is_a_failure_with_a_sentence(
    core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(core, "Herons fish at dawn")
    monkeypatch.setattr(store_copies, "_ROOM", 1e15)
    done = run(jobs, "backup")
    assert done.outcome == "failed"
    assert done.error.startswith("There is no room for a copy of the database")
