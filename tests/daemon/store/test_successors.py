"""What is superseded and when it is back: in search, list, context and counts, in RAM as in SQL."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Get as GetCall
from memoryd.client.protocol import GetContext, ImportMemories, List, NewMemory, Record, Search, Share, WhyNot
from memoryd.daemon.arrays.columns import FilterColumns
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.expiring import EXPIRE
from memoryd.daemon.memories import reading
from memoryd.daemon.store import history, rows, successors
from memoryd.daemon.store.filters import Filter, select_living
from memoryd.daemon.store.store import Store
from workbench import (
    LIMIT_S,
    Clock,
    add,
    add_many,
    ask,
    build_mask,
    delete,
    insert,
    undo,
    update,
)

A, B, C, D = (letter * 32 for letter in "abcd")
TEXTS = {
    A: "The office closes at five",
    B: "This week the office closes at four",
    C: "The office closes at six",
    D: "The office never closes",
}
DAY_S = 86400.0


def put(core: Core, id: str, supersedes: str | None = None, namespace: str = "", **fields: Any) -> str:
    return add(core, TEXTS[id], namespace, id=id, supersedes=supersedes, dedup=False, **fields).operation


def shown(core: Core, namespace: str = "") -> str:
    """Return which of the memories are found, after checking that all ways to find them agree."""
    listed = ask(core, List(namespace=namespace, limit=50))
    ids = {memory.id for memory in listed}
    assert listed.total == len(ids)
    hits = ask(core, Search(query="office closes", namespace=namespace, limit=50, touch=False)).hits
    assert {hit.id for hit in hits} == ids
    assert all(hit.superseded_by is None for hit in hits)
    call = GetContext(task="When does the office close: office closes", namespace=namespace, max_tokens=2000)
    assert set(preparing.context(core, core.sources, call).result(LIMIT_S).ids) == ids
    with core.store.reading() as connection:
        fresh = FilterColumns(connection, Positions())  # as after a restart
        stored = rows.select(connection, "TRUE", ())
        alive = {row.row for row in select_living(connection, stored, core.clock())}
    for facts in (core.arrays.columns, fresh):
        assert set(facts.build_mask(Filter(), core.clock()).list_rows()) == alive
    return "".join(sorted(id[0] for id in ids))


def by(core: Core, id: str) -> str:
    return (reading.get(core, GetCall(id=id)).superseded_by or " ")[0]


@pytest.fixture
def chain(core: Core) -> Core:
    """A is superseded by B, and B by C."""
    put(core, A)
    put(core, B, A)
    put(core, C, B)
    assert shown(core) == "c"
    return core


# The successor is deleted, expires, is undone ------------------------------------------------------------------------


def test_a_memory_is_back_the_moment_its_successor_expires_and_stays_so(core: Core, clock: Clock) -> None:
    put(core, A)
    put(core, B, A, expires_at=clock.now + 7 * DAY_S)
    clock.advance(7 * DAY_S - 1)
    assert shown(core) == "b"
    clock.advance(1)
    assert shown(core) == "a"
    update(core, B, expires_at=clock.now + DAY_S)
    assert shown(core) == "b"
    update(core, B, expires_at=clock.now)
    assert shown(core) == "a"
    update(core, B, pinned=True)
    assert shown(core) == "b"
    update(core, B, pinned=False)
    clock.advance(40 * DAY_S)

    def expire(transaction: Any) -> None:
        operation = history.begin(transaction.connection, "job:expire", "", clock.now)
        EXPIRE.apply(core, transaction, list(EXPIRE.plan(core, clock.now)), operation)

    core.store.write(expire).result(LIMIT_S)
    assert shown(core) == "a"
    with core.store.reading() as connection:
        assert B not in rows.read_ids(connection, [B])


def test_undo_of_what_made_a_successor_that_was_there_before_brings_the_memory_back(core: Core) -> None:
    added = put(core, B)
    put(core, A)
    fields = {"superseded_by": B}  # as a dream does: the one that stays is not touched

    def supersede(transaction: Any) -> None:
        operation = history.begin(transaction.connection, "dream", "", core.clock())
        row = rows.read_ids(transaction.connection, [A])[A]
        history.record(transaction.connection, operation, A, "", row)
        rows.change(transaction.connection, row.row, fields)

    core.store.write(supersede).result(LIMIT_S)
    assert shown(core) == "b"
    undo(core, added)
    assert shown(core) == "a"


def test_the_undo_of_an_import_of_the_successor_brings_the_memory_back(core: Core, clock: Clock) -> None:
    times = {"created_at": 1.0, "updated_at": 1.0}
    put(core, A)

    def import_(*records: Record) -> Any:
        return ask(core, ImportMemories(records=list(records)))

    first = Record(
        id=A, namespace="", type="fact", content=TEXTS[A], superseded_by=B, created_at=1.0, updated_at=clock.now + 1
    )
    import_(first)
    assert shown(core) == "a"  # its successor is not here
    imported = import_(Record(id=B, namespace="", type="fact", content=TEXTS[B], **times))
    assert shown(core) == "b"
    undo(core, imported.operation)
    assert shown(core) == "a"


# Chains --------------------------------------------------------------------------------------------------------------


def test_of_a_circle_the_memory_that_superseded_last_is_found(core: Core, clock: Clock) -> None:
    put(core, A)
    put(core, B, A, expires_at=clock.now + 1)
    clock.advance(1)
    added = add(core, TEXTS[A], supersedes=B)  # merged into A, which was superseded by B
    assert added.id == A
    update(core, B, expires_at=clock.now + DAY_S)
    assert shown(core) == "a"
    assert (by(core, A), by(core, B)) == (" ", "a")


def test_circles_that_an_import_brings_are_broken(core: Core) -> None:
    def record(id: str, superseded_by: str) -> Record:
        fields = {"type": "fact", "content": TEXTS[id], "created_at": 1.0, "updated_at": 1.0}
        return Record(id=id, namespace="", superseded_by=superseded_by, **fields)  # type: ignore[arg-type]

    records = [record(A, B), record(B, C), record(C, A), record(D, D)]
    ask(core, ImportMemories(records=records))
    assert shown(core) == "ad"


# Who asks, and what it says ------------------------------------------------------------------------------------------


def test_a_successor_out_of_sight_hides_a_memory_from_everybody_until_it_is_deleted(core: Core) -> None:
    put(core, A, namespace="acme")
    put(core, B, A, namespace="acme/api")
    assert (shown(core, "acme"), shown(core, "acme/api")) == ("", "b")
    delete(core, B)
    assert (shown(core, "acme"), shown(core, "acme/api")) == ("a", "a")


def test_why_not_and_get_name_the_memory_that_replaces_it_now(chain: Core) -> None:
    delete(chain, B)
    why = ask(chain, WhyNot(query="office closes", id=A))
    assert why.reason == f"it is superseded by {C}"
    assert by(chain, A) == "c"


def test_a_memory_that_is_back_takes_part_again(core: Core) -> None:
    put(core, A, namespace="acme/api")
    put(core, B, A, namespace="acme/api")
    with pytest.raises(Conflict, match="superseded"):
        ask(core, Share(ids=[A], to="acme"))
    delete(core, B)
    assert add(core, TEXTS[A], "acme/api").id == A
    copy = ask(core, Share(ids=[A], to="acme")).memories[0].id
    undo(core)  # the share
    undo(core)  # the add
    assert undo(core).ids == [B]
    assert shown(core, "acme/api") == "b"
    assert copy != A


def test_a_long_chain_is_followed_to_its_end_and_costs_little(core: Core, clock: Clock) -> None:
    ids = [f"{number:032x}" for number in range(1, 301)]
    times = [clock.now + number for number in range(1, 301)]
    add_many(
        core,
        [
            NewMemory(content=f"note {id}", id=id, supersedes=before, expires_at=at)
            for id, before, at in zip(ids, [None, *ids], times, strict=False)
        ],
        dedup=False,
    )
    assert ask(core, List(limit=500)).total == 1
    for id in ids[100:]:
        update(core, id, expires_at=clock.now)
    assert [memory.id for memory in ask(core, List(limit=500))] == [ids[99]]
    allowed = core.arrays.columns.build_mask(Filter(), clock.now).list_rows()
    assert len(allowed) == 1


# Whatever happens ----------------------------------------------------------------------------------------------------


def expected(stored: dict[str, rows.Row], links: dict[str, str | None], now: float) -> set[int]:
    """Return the rows alive by the definition, worked out with plain dictionaries; `links` has the deleted ones too."""

    def unexpired(row: rows.Row) -> bool:
        return bool(row.pinned) or row.expires_at is None or row.expires_at > now

    def superseded(id: str) -> bool:
        seen, after = {id}, links.get(id)
        while after is not None and after not in seen:
            if after in stored and unexpired(stored[after]):
                return True
            seen.add(after)
            after = links.get(after)
        return False

    return {row.row for row in stored.values() if unexpired(row) and not superseded(row.id)}


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_added_changed_deleted_and_restored_ram_and_sql_follow_the_definition(
    store: Store, seed: int
) -> None:
    dice = random.Random(seed)
    stored: dict[str, rows.Row] = {}
    deleted: dict[str, rows.Row] = {}
    links: dict[str, str | None] = {}

    def step(transaction: Any) -> None:
        connection = transaction.connection
        match dice.choice(["supersede", "delete", "restore", "change"]):
            case "supersede" if stored:
                old, new = dice.choice(list(stored)), dice.choice(list(stored))
                if old != new and not reaches(new, old):
                    links[old] = stored[old].superseded_by = new
                    rows.change(connection, stored[old].row, {"superseded_by": new})
            case "delete" if stored:
                row = stored.pop(dice.choice(list(stored)))
                deleted[row.id] = row
                rows.delete(connection, [row.row])
            case "restore" if deleted:
                row = deleted.pop(dice.choice(list(deleted)))
                stored[row.id] = row
                rows.insert(connection, row)
            case "change" if stored:
                row = stored[dice.choice(list(stored))]
                row.expires_at, row.pinned = dice.choice([None, 5.0, 10.0, 15.0]), int(dice.random() < 0.1)
                rows.change(connection, row.row, {"expires_at": row.expires_at, "pinned": row.pinned})

    def reaches(id: str, other: str) -> bool:
        after: str | None = id
        while after is not None and after != other:
            after = links.get(after)
        return after is not None

    for number in range(8):
        row = insert(store, f"text {number}", id=f"{number:032x}")
        stored[row.id] = row
    for _ in range(80):
        count = dice.choice([1, 1, 2, 4])
        store.write(lambda transaction, count=count: [step(transaction) for _ in range(count)]).result()
        for now in (4.0, 5.0, 9.0, 12.0, 20.0):
            wanted = expected(stored, links, now)
            assert set(build_mask(store, Filter(), now).list_rows()) == wanted
            where, values = Filter().full_condition(now)
            with store.reading() as connection:
                assert {row.row for row in rows.select(connection, where, values)} == wanted


def test_what_a_commit_touches_is_all_that_is_looked_at_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        insert(store, f"text {number}", id=f"{number:032x}", superseded_by=f"{number + 1:032x}")
    asked: list[Any] = []
    nearest: Callable[..., Any] = successors.find_nearest

    def noted(connection: Any, changed: Any) -> Any:
        asked.append(changed)
        return nearest(connection, changed)

    monkeypatch.setattr(successors, "find_nearest", noted)
    last = insert(store, "text 20", id=f"{20:032x}", superseded_by=f"{21:032x}")
    assert sum(map(len, asked)) == 2  # the new one, and the one that it supersedes: the others stay superseded
    asked.clear()
    store.write(lambda transaction: rows.change(transaction.connection, last.row, {"tier": "L2"})).result()
    assert asked == [[last.row]]
