"""Operations of jobs: they overlap those of callers, touch many memories, and are undone when named."""

from typing import Any

import pytest

from memoryd.client.errors import Conflict, NotFound
from memoryd.client.protocol import Get, History, Memory, NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store import history, rows
from workbench import add, add_many, ask, disk_and_memory, undo, update

MANY = 600


def begun(core: Core, kind: str = "job:sweep") -> str:
    return core.store.write(lambda t: history.begin(t.connection, kind, "", core.clock())).result()


def moved(core: Core, operation: str, ids: list[str], tier: str = "L2") -> None:
    """Move memories as a slice of a job's run does."""

    def job(transaction: Any) -> None:
        connection = transaction.connection
        for row in rows.read_ids(connection, ids).values():
            history.record(connection, operation, row.id, "", row)
            rows.change(connection, row.row, {"tier": tier})

    core.store.write(job).result()


def snapshot(core: Core) -> list[Any]:
    with core.store.reading() as connection:
        return [
            rows.select(connection, "TRUE ORDER BY m.row", ()),
            connection.execute("SELECT * FROM links").fetchall(),
        ]


def get(core: Core, id: str) -> Memory:
    return reading.get(core, Get(id=id))


def test_a_run_that_touched_a_memory_after_an_update_is_undone_and_keeps_the_update(core: Core) -> None:
    id = add(core, "Herons fish at dawn").id
    run = begun(core)
    updated = update(core, id, content="Herons fish at dusk").operation
    moved(core, run, [id])
    changes = ask(core, History(id=id)).changes
    assert [change.kind for change in changes] == ["add", "update", "job:sweep"]
    assert changes[1].changed["content"] == ("Herons fish at dawn", "Herons fish at dusk")
    assert changes[2].changed == {"tier": ("L1", "L2")}
    with pytest.raises(Conflict, match=f"changed again by {run[:8]};"):
        undo(core, updated)
    undo(core, run)
    assert (get(core, id).content, get(core, id).tier) == ("Herons fish at dusk", "L1")
    undo(core, updated)
    assert get(core, id).content == "Herons fish at dawn"


def test_a_run_is_not_undone_when_one_of_its_memories_was_updated_after_its_slice(core: Core) -> None:
    first, second = add(core, "Herons fish at dawn").id, add(core, "Storks nest on roofs").id
    run = begun(core)
    moved(core, run, [first])
    updated = update(core, first, importance=1.0).operation
    moved(core, run, [second])
    with pytest.raises(Conflict, match=f"changed again by {updated[:8]};"):
        undo(core, run)
    undo(core, updated)
    undo(core, run)
    assert {get(core, first).tier, get(core, second).tier} == {"L1"}


def test_without_an_id_undo_takes_back_what_a_caller_did_not_what_a_job_did(core: Core) -> None:
    other, added = add(core, "Storks nest on roofs"), add(core, "Herons fish at dawn")
    run = begun(core)
    moved(core, run, [other.id])
    assert undo(core).undone == added.operation
    with pytest.raises(Conflict, match=f"changed again by {run[:8]};"):
        undo(core)
    undo(core, run)
    assert undo(core).undone == other.operation
    with pytest.raises(NotFound, match="nothing to undo"):
        undo(core)


def test_undoing_a_run_over_hundreds_of_memories_restores_every_row_link_and_vector(core: Core) -> None:
    old = add(core, "The limit is 30 seconds for every request")
    new = add(core, "The limit is 60 seconds for every request", dedup_threshold=0.5)
    assert new.contradicts == [old.id]
    ids = [r.id for r in add_many(core, [NewMemory(content=f"Crane {n}") for n in range(MANY)], dedup=False).results]
    before, (stored, held) = snapshot(core), disk_and_memory(core)
    run = begun(core)
    for start in range(0, MANY, 200):
        moved(core, run, ids[start : start + 500])
    moved(core, run, [old.id, new.id])
    moved(core, run, ids[:10], "L1")  # touched twice: the first state counts
    undone = undo(core, run)
    assert len(undone.ids) == MANY + 2
    assert snapshot(core) == before
    assert disk_and_memory(core) == (stored, held)
    undo(core, undone.operation)
    assert get(core, ids[-1]).tier == "L2"
