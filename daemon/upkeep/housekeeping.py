"""Jobs of upkeep: embed forgotten memories, write the log into the database, merge full text, make copies.

They also return freed memory to the system, which the C library's allocator would keep otherwise.
"""

import time
from collections.abc import Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, StopCheck, Work
from memoryd.daemon.store import copies, fulltext, rows, upkeep
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.system import process

_LOG_BYTES = 1024 * 1024  # a smaller log is not worth the write
LEAST_BYTES = 8 * 1024 * 1024  # free in the allocator; smaller amounts are soon used again
_REST_S = 0.002
_DAY_S = 86_400.0


# embed ---------------------------------------------------------------------------------------------------------------


def plan_embed(core: Core, now: float) -> Iterator[Step]:
    """Find memories without a vector that are not in the queue: their embedding failed, or the queue lost them.

    The lookup is in RAM; once a day, all memories are compared with the vectors on disk.
    """
    generation = core.embedding.active
    if generation is None:
        return  # the embedder itself keeps trying to load its model
    missing = None
    if abs(now - generation.compared_at) < _DAY_S:
        missing = generation.index.find_missing(core.arrays.columns.list_places())
    with core.store.reading() as connection:
        texts = rows.read_without_vector(connection, generation.model, missing)
    generation.compared_at = now if missing is None else generation.compared_at
    for row, id in texts:
        if row not in generation.pending:
            yield Step("embed", id, f"it has no vector of {generation.name}", row)


def apply_embed(core: Core, transaction: Transaction, steps: Sequence[Step], operation: str) -> dict[str, int]:
    """Put memories back into the queue of the embedder."""
    transaction.after_commit(lambda: core.embedding.refresh([step.data for step in steps]))
    return {"queued": len(steps)}


# maintain ------------------------------------------------------------------------------------------------------------


def plan_maintenance(core: Core, now: float) -> Iterator[Step]:
    """Plan the maintenance that is due. The log comes first, since merging may take until the deadline."""
    core.store.reserve.fill()  # the disk may have had too little room for it before
    size = upkeep.log_size_bytes(core.store)
    if size >= _LOG_BYTES:
        yield Step("checkpoint", "memoryd.sqlite-wal", f"the log has {size / 1e6:.1f} MB")
    with core.store.reading() as connection:
        count = fulltext.count_mergeable(connection)
    if count:
        yield Step("merge", "memories_fts", f"the full-text index has {count} segments to merge")
    free_bytes = process.measure_free_bytes()
    if free_bytes >= LEAST_BYTES:
        text = f"the allocator has {free_bytes / 1e6:.0f} MB free, some of which may still be held"
        yield Step("release", "memory", text)


def maintain(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Write the log into the database, merge full text in small batches, or return the allocator's free pages."""
    if step.action == "checkpoint":
        return {"pages": upkeep.checkpoint(core.store)}
    if step.action == "release":
        before = process.rss_bytes()
        process.return_memory()
        return {"released kB": max(0, before - process.rss_bytes()) // 1000}
    portions = 0
    while core.store.write(lambda transaction: upkeep.merge(transaction.connection), over_limit=True).result():
        portions += 1
        check()
        time.sleep(_REST_S)
    return {"merged": portions} if portions else {}


# backup --------------------------------------------------------------------------------------------------------------


def plan_backup(core: Core, now: float) -> Iterator[Step]:
    """Plan a copy if clients changed anything since the latest one, and the deletion of this job's oldest copies.

    After a jump of the clock none is deleted, since a jump makes this job run more often than it should.
    """
    keep = core.config.jobs.backups
    if not keep:
        return
    present = copies.list_copies(core.folder / copies.FOLDER)
    with core.store.reading() as connection:
        marks = upkeep.marks(connection)
    if marks and (not present or upkeep.marks_of(present[-1]) != marks):
        name = copies.free_name(core.folder / copies.FOLDER, core.clock())
        yield Step("copy", name, "the database changed since the latest copy" if present else "there is no copy yet")
        present.append(core.folder / copies.FOLDER / name)
    by_job = [path for path in present if path.name.startswith(copies.BY_JOB)]
    for path in [] if core.clock.has_jumped() else by_job[:-keep]:
        yield Step("delete", path.name, f"it is older than the latest {keep} of this job")


def back_up(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Make a copy, or delete an old one."""
    folder = core.folder / copies.FOLDER
    path = folder / step.target
    if step.action == "delete":
        path.unlink(missing_ok=True)
        return {"deleted": 1}
    folder.mkdir(mode=0o700, exist_ok=True)
    copies.check_room(core.store, folder)
    copies.go_past(core.store, folder)
    copies.copy(core.store, path, check)
    return {"copied": 1}


EMBED = Work(plan_embed, apply_embed, at_limit=True)
MAINTAIN = Work(plan_maintenance, alone=maintain, at_limit=True)
BACKUP = Work(plan_backup, alone=back_up, at_limit=True)
