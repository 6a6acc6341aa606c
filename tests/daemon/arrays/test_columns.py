"""What filters ask, answered from RAM: always what SQLite would answer."""

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memoryd.client.protocol import List
from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.columns import FilterColumns
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.store import namespaces, rows
from memoryd.daemon.store.filters import Filter, compile_filter
from memoryd.daemon.store.store import Store
from workbench import arrays_of, build_mask, insert

NOW = 1000.0


def by_ram(store: Store, chosen: Filter, now: float = NOW) -> set[int]:
    return set(build_mask(store, chosen, now).list_rows())


def by_sql(store: Store, chosen: Filter, now: float = NOW) -> set[int]:
    where, values = chosen.full_condition(now)
    with store.reading() as connection:
        return {row for (row,) in connection.execute(f"SELECT m.row FROM memories m WHERE {where}", values)}


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"namespace": "a", "reach": "exact"},
    {"namespace": "a/b"},
    {"namespace": "a", "reach": "subtree"},
    {"namespace": "nowhere", "reach": "exact"},
    {"type": ["fact"]},
    {"type": ["fact", "lesson"], "source": ["manual"]},
    {"type": ["never heard of"]},
    {"tier": ["L2"]},
    {"after": 500.0},
    {"before": 500.0, "after": 100.0},
    {"where": {"metadata.k": "v"}, "type": ["fact"]},
    {"path_prefix": "doc", "namespace": "a/b"},
]


@pytest.mark.parametrize("seed", range(4))
def test_after_any_changes_ram_and_sqlite_leave_the_same_memories(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    kept: list[rows.Row] = []
    for step in range(60):
        action = dice.choice(["add", "add", "change", "delete"])
        if action == "add" or not kept:
            fields: dict[str, Any] = {
                "type": dice.choice(["fact", "lesson", "note"]),
                "source": dice.choice(["manual", "hook"]),
                "tier": dice.choice(["L1", "L2"]),
                "created_at": dice.choice([0.0, 300.0, 500.0, 900.0]),
                "expires_at": dice.choice([None, None, 999.0, 1000.0, 1001.0]),
                "pinned": dice.choice([0, 0, 1]),
                "superseded_by": dice.choice([None, None, None, *(row.id for row in kept[-3:])]),
                "path": dice.choice([None, "doc/a.md", "src/b.md"]),
                "metadata": dice.choice(["{}", '{"k":"v"}']),
            }
            place = dice.choice(["", "a", "a/b", "a/c", "d"])
            kept.append(insert(store, f"text {step}", place, id=f"{step:032x}", **fields))
            continue
        row = dice.choice(kept)
        if action == "delete":
            kept.remove(row)
            store.write(lambda transaction, row=row: rows.delete(transaction.connection, [row.row])).result()
        else:
            changed = {"tier": dice.choice(["L1", "L2"]), "pinned": dice.choice([0, 1]), "expires_at": 1.0}
            store.write(
                lambda transaction, row=row, changed=changed: rows.change(transaction.connection, row.row, changed)
            ).result()
        for question in QUESTIONS:
            chosen = compile_filter(List(**question), store.namespaces)
            assert by_ram(store, chosen) == by_sql(store, chosen), question
    with store.reading() as connection:
        again = FilterColumns(connection, Positions())
    assert set(again.build_mask(Filter(), NOW).list_rows()) == by_sql(store, Filter())


def test_cost_follows_the_memories_that_exist_not_the_numbers_ever_used(store: Store) -> None:
    def jump(transaction: Any) -> None:
        transaction.connection.execute("UPDATE sqlite_sequence SET seq = seq + 10000000 WHERE name = 'memories'")

    insert(store, "the first", id="f" * 32)
    for number in range(40):
        row = insert(store, f"herons {number}", id=f"{number:032x}")
        store.write(lambda transaction, row=row: rows.delete(transaction.connection, [row.row])).result()
        store.write(jump).result()
    last = insert(store, "herons stay", id="e" * 32)
    assert last.row > 400_000_000
    assert len(by_ram(store, Filter())) == 2
    assert arrays_of(store).positions.count < 10
    assert arrays_of(store).columns.size_bytes() + arrays_of(store).postings._lengths.nbytes < 5_000
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, "herons")
        found = lexical.rank(arrays_of(store).postings, question, build_mask(store, Filter(), NOW), 10)
    assert [number for number, _ in found] == [last.row]


def test_counts_in_ram_are_those_of_the_rows(store: Store) -> None:
    assert arrays_of(store).columns.count_standing(None) == []
    assert arrays_of(store).columns.tally("type", None) == {}
    for number, place in enumerate(("", "a", "a", "a/b", "c")):
        tier, kind = ("L1", "L2")[number % 2], ("fact", "decision", "L1")[number % 3]
        insert(store, f"fact {number}", place, tier=tier, type=kind, created_at=float(number))
    gone = insert(store, "gone", "a", tier="L1")
    store.write(lambda transaction: rows.delete(transaction.connection, [gone.row])).result()
    for reached in (None, store.namespaces.reach("a", "subtree"), frozenset[int]()):
        condition = namespaces.condition(reached) if reached is None or reached else "FALSE"
        with store.reading() as connection:
            sql = "SELECT namespace, tier, count(*), min(created_at), max(created_at) FROM memories m"
            expected = sorted(connection.execute(f"{sql} WHERE {condition} GROUP BY 1, 2"))
            kinds = dict(connection.execute(f"SELECT type, count(*) FROM memories m WHERE {condition} GROUP BY 1"))
        assert sorted(arrays_of(store).columns.count_standing(reached)) == expected
        assert arrays_of(store).columns.tally("type", reached) == kinds


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
def test_what_is_counted_while_rows_come_and_go_is_of_their_places(store: Store, eager: None) -> None:
    """Every place has a new name, type and source, so each table that a reader makes is too small a moment later."""
    done = threading.Event()

    def come_and_go() -> None:
        try:
            for number in range(300):
                one = insert(store, f"fact {number}", f"place {number}", type=f"type {number}", source=f"from {number}")
                if number % 2:
                    store.write(lambda transaction, row=one.row: rows.delete(transaction.connection, [row])).result()
        finally:
            done.set()

    writer = threading.Thread(target=come_and_go)
    writer.start()
    wrong = []
    try:
        while not done.is_set():
            wrong += [
                found
                for found in arrays_of(store).columns.count_standing(None)
                if found.namespace < 1 or found.tier != "L1"
            ]
            arrays_of(store).columns.tally("source", None)
            build_mask(store, compile_filter(List(type=["type 0"], namespace="place 0"), store.namespaces), NOW)
    finally:
        writer.join()
    assert wrong == []
    assert sum(found.memories for found in arrays_of(store).columns.count_standing(None)) == 150
