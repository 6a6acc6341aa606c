"""Reading: lists in every order, pages, totals; operations and counts within reach."""

from typing import Any

import pytest

from each import each
from memoryd.client.protocol import Get, GetStats, List, NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from workbench import add, add_many, ask, delete, update


def contents(core: Core, **options: Any) -> list[str]:
    return [memory.content for memory in ask(core, List(**options))]


@pytest.fixture
def shelf(core: Core, clock: Any) -> Core:
    """Three memories whose orders by created, updated, accessed, count and importance all differ."""
    one = add(core, "one", importance=0.5, created_at=10.0)
    add(core, "two", importance=0.9, created_at=30.0, type="lesson")
    add(core, "three", importance=0.1, created_at=20.0)
    update(core, one.id, summary="changed last")
    accessed = "UPDATE memories SET access_count = ?, last_accessed_at = ? WHERE content = ?"
    for count, at, content in ((5, None, "one"), (1, 50.0, "two"), (3, 60.0, "three")):
        core.store.write(
            lambda transaction, given=(count, at, content): transaction.connection.execute(accessed, given)
        ).result()
    return core


@each(
    ("sort", "order"),
    [
        ("created", ["two", "three", "one"]),
        ("updated", ["one", "two", "three"]),
        ("accessed", ["three", "two", "one"]),
        ("count", ["one", "three", "two"]),
        ("importance", ["two", "one", "three"]),
    ],
)
def test_each_order_and_its_reverse(shelf: Core, sort: Any, order: list[str]) -> None:
    assert contents(shelf, sort=sort) == order
    assert contents(shelf, sort=sort, ascending=True) == order[::-1]


def test_pages_follow_each_other_without_gap_or_repeat_also_among_equals(core: Core) -> None:
    add_many(core, [f"Note {n}" for n in range(25)])
    whole = contents(core, limit=1000)
    assert whole == [f"Note {n}" for n in reversed(range(25))]
    pages = [ask(core, List(limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [memory.content for page in pages for memory in page] == whole
    assert {page.total for page in pages} == {25}


def test_counts_are_of_what_is_within_reach(core: Core) -> None:
    add_many(
        core, [NewMemory(content="a1", type="lesson", created_at=5.0), NewMemory(content="a2", source="import")], "a"
    )
    add_many(core, ["b1", "b2", "b3"], "b")
    deleted = add(core, "b4", "b")
    delete(core, deleted.id)
    everything = reading.stats(core, GetStats())
    assert everything.memories == reading.count(core) == 5
    assert everything.by_namespace == {"b": 3, "a": 2}
    assert everything.by_type == {"fact": 4, "lesson": 1}
    assert everything.by_source == {"manual": 4, "import": 1}
    assert everything.by_tier == {"L1": 5}
    assert (everything.embedded, everything.pending_embeddings, everything.embedding_cache) == (5, 0, 6)
    assert everything.operations == 4
    assert everything.oldest_at == 5.0
    assert everything.database_bytes > 10_000
    a = reading.stats(core, GetStats(namespace="a"))
    assert (a.memories, a.by_namespace, a.by_type) == (2, {"a": 2}, {"lesson": 1, "fact": 1})


def test_reading_without_touch_counts_no_access(core: Core) -> None:
    added = add(core, "Herons fish at dawn")
    ask(core, Get(id=added.id, touch=False))
    core.effects.flush()
    assert ask(core, Get(id=added.id)).access_count == 0
    core.effects.flush()
    assert ask(core, Get(id=added.id, touch=False)).access_count == 1


def test_a_list_is_filtered_by_words_or_parts_of_them(core: Core) -> None:
    for text in ("Deployments are on Tuesdays", "We deploy by hand", "A 100% share", "A 100x share", r"C:\share"):
        add(core, text)
    assert contents(core, words="DEPLOY") == ["We deploy by hand", "Deployments are on Tuesdays"]
    assert contents(core, words="on deploy") == ["Deployments are on Tuesdays"]
    assert contents(core, words="100%") == ["A 100% share"]
    assert contents(core, words="\\") == [r"C:\share"]
    assert contents(core, words=" _ ") == []
    assert ask(core, List(words="share", limit=1)).total == 3
