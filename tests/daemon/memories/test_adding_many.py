"""Adding many: parts committed one by one as one operation, what others write meanwhile, where it is cut short."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from memoryd.client.errors import Busy, Conflict, Internal, Invalid, MemorydError, NotFound, StorageFull, Unavailable
from memoryd.client.protocol import AddedMany, AddMany, Get, History, List, NewMemory, Operations, Progress, Share
from memoryd.daemon.arrays import vector_index as index
from memoryd.daemon.arrays.scan import AlikeQuery
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding_many, batches, duplicates, reading
from memoryd.daemon.store import writer
from memoryd.daemon.store.caller import Caller
from workbench import LIMIT_S, CountingEmbedder, add, add_many, ask, delete, undo, update, wait_until

HERON = "The grey heron fishes at dawn near the old mill"
HERON_A = "A grey heron fishes at dawn near an old mill"
PART, UNCOMPARED = batches.PART, batches.UNCOMPARED
TWO, THREE = 2 * PART, 2 * PART + 25
ALL = 2 * UNCOMPARED + 25


def notes(count: int, first: int = 0) -> list[NewMemory]:
    return [NewMemory(content=f"note {number}") for number in range(first, first + count)]


def many(core: Core, memories: list[NewMemory], at: int, action: Callable[[], Any], **options: Any) -> AddedMany:
    """Add memories; once so many are embedded, which is before their part is written, do something else."""

    def report(event: Progress) -> None:
        if event.done == at:
            action()

    return ask(core, AddMany(memories=memories, **options), report=report)


def contents(core: Core, namespace: str = "") -> list[str]:
    listed = ask(core, List(limit=1000, namespace=namespace, reach="exact", ascending=True))
    return [memory.content for memory in listed.memories]


@pytest.fixture
def commits(core: Core, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each transaction by the number of memories that it touched, if any."""
    counted: list[int] = []
    committed = core.store.writer._committed

    def note(connection: Any, touched: set[int], texts: set[int]) -> None:
        counted.extend([len(touched)] if touched else [])
        committed(connection, touched, texts)

    monkeypatch.setattr(core.store.writer, "_committed", note)
    return counted


# Parts ---------------------------------------------------------------------------------------------------------------


def test_a_call_is_committed_in_parts_as_one_operation_that_one_undo_takes_back(core: Core, commits: list[int]) -> None:
    added = add_many(core, notes(ALL), dedup=False)
    assert commits == [UNCOMPARED, UNCOMPARED, 25]
    assert (added.created, added.merged, len(added.operations)) == (ALL, 0, 1)
    [operation] = ask(core, Operations()).operations
    assert (operation.id, operation.kind, operation.memories) == (added.operations[0], "add_many", ALL)
    assert {one.operation for one in added} == {operation.id}
    last = ask(core, History(id=added.results[-1].id)).changes
    assert [(change.operation, change.action) for change in last] == [(operation.id, "created")]
    undone = undo(core)
    assert (undone.undone, len(undone.ids), contents(core)) == (operation.id, ALL, [])
    assert len(undo(core, undone.operation).ids) == ALL == len(contents(core))


def test_texts_of_one_call_are_compared_with_each_other_within_a_part_and_across_parts(core: Core) -> None:
    given = [*notes(99), NewMemory(content=HERON), NewMemory(content=HERON_A), NewMemory(content=HERON)]
    given += [NewMemory(content=HERON_A), NewMemory(content=HERON_A, type="lesson")]
    results = add_many(core, given, dedup_threshold=0.7).results
    first, *others, lesson = results[99:]
    assert [one.id for one in others] == [first.id] * 3
    assert [one.outcome for one in others] == ["merged"] * 3
    assert (lesson.outcome, lesson.contradicts) == ("created", [])


def test_a_text_is_compared_with_what_an_earlier_one_made_of_a_memory(core: Core) -> None:
    kept = add(core, HERON, "birds")
    # The third is near to the second alone, and that was merged into the memory that was there.
    longer = f"{HERON_A} in the quiet valley"
    results = add_many(core, [HERON_A, longer, HERON_A + " "], "birds", dedup_threshold=0.7).results
    assert [one.id == kept.id for one in results] == [True, False, True]
    assert results[1].similarity == pytest.approx(cosine(HERON_A, longer), abs=1e-4)


def cosine(one: str, other: str) -> float:
    first, second = CountingEmbedder().embed_texts([one, other])
    return float(first @ second)


def test_an_earlier_part_may_be_superseded_by_a_later_one(core: Core) -> None:
    given = [NewMemory(content=HERON, id="ab" * 16), *notes(150), NewMemory(content="new", supersedes="abab")]
    results = add_many(core, given, dedup=False).results
    assert reading.get(core, Get(id="ab" * 16)).superseded_by == results[-1].id


# What the writer does ------------------------------------------------------------------------------------------------


@pytest.fixture
def compared(core: Core, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of rows that the index compares on the writer's thread."""
    counted: list[int] = []
    by_one, by_many = index.find_best, index.search_above

    def note(rows: int) -> None:
        if threading.current_thread().name == "writer":
            counted.append(rows)

    def nearest(view: Any, asked: Any, k: int, chosen: Any) -> Any:
        note(int(chosen.sum()))
        return by_one(view, asked, k, chosen)

    def above(view: Any, queries: Any, places: Any, wanted: AlikeQuery) -> Any:
        note(len(places))
        return by_many(view, queries, places, wanted)

    monkeypatch.setattr(index, "find_best", nearest)
    monkeypatch.setattr(index, "search_above", above)
    return counted


@pytest.mark.slow
def test_the_writer_compares_only_with_what_is_newer_than_the_search(
    core: Core, compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_many(core, notes(300))
    add(core, "One more")
    assert compared == []
    many(core, notes(TWO, 1000), TWO, lambda: [add(core, f"Beside it {number}") for number in range(3)])
    assert compared == []  # they came before the second part was compared
    searched = duplicates.search

    def late(*given: Any) -> Any:
        batch = searched(*given)
        if len(given[2]) > 1:
            add(core, f"Between the search and the part with {given[2][0].content}")
        return batch

    monkeypatch.setattr(duplicates, "search", late)
    add_many(core, notes(TWO, 2000))
    assert compared == [1, 1]


@pytest.mark.parametrize("move", [True, False])
def test_what_is_shared_is_looked_for_before_the_writer_as_well(core: Core, compared: list[int], move: bool) -> None:
    pier = "and rests on the long wooden pier behind the harbour of the small northern town"
    texts = [f"{text} {pier}" for text in (HERON, HERON_A)]
    ids = [add(core, text, place).id for place in ("team/a", "team/b") for text in (*texts[:1], "Storks nest")]
    ids.append(add(core, texts[1], "team/c").id)
    shared = ask(core, Share(ids=ids, to="team", move=move)).memories
    assert compared == []
    assert [one.outcome for one in shared][2:] == ["merged"] * 3
    assert [one.id for one in shared][2:] == [shared[0].id, shared[1].id, shared[0].id]
    assert len(contents(core, "team")) == 2


def test_what_is_added_twice_at_the_same_time_is_one_memory(core: Core) -> None:
    with held(core) as queue:
        first = queue(lambda: add(core, HERON))
        second = queue(lambda: add(core, HERON_A, dedup_threshold=0.7))
        third = queue(lambda: add_many(core, [HERON, *[f"note {n}" for n in range(50)]], dedup_threshold=0.7))
    assert first.result(LIMIT_S).outcome == "created"
    assert (second.result(LIMIT_S).outcome, second.result(LIMIT_S).id) == ("merged", first.result(LIMIT_S).id)
    assert third.result(LIMIT_S).results[0].id == first.result(LIMIT_S).id
    assert len(contents(core)) == 51


CHANGES: dict[str, Callable[[Core, str], Any]] = {
    "deleted": lambda core, id: delete(core, id),
    "another text": lambda core, id: update(core, id, content="Storks nest on roofs"),
    "another type": lambda core, id: update(core, id, type="lesson"),
    "expired": lambda core, id: update(core, id, expires_at=1.0),
    "superseded": lambda core, id: add(core, "Storks nest on roofs", supersedes=id),
    "moved": lambda core, id: share(core, id),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("alone", [True, False])
def test_what_was_near_and_changed_before_the_write_is_no_duplicate_any_more(
    core: Core, change: Callable[[Core, str], Any], alone: bool
) -> None:
    first = add(core, HERON, "team/me")
    more = [] if alone else [f"note {number}" for number in range(20)]
    with held(core) as queue:
        queue(lambda: change(core, first.id))
        late = queue(lambda: add_many(core, [HERON_A, *more], "team/me", dedup_threshold=0.7))
    assert late.result(LIMIT_S).results[0].outcome == "created"
    assert HERON_A in contents(core, "team/me")


@pytest.mark.parametrize("gone", [delete, lambda core, id: update(core, id, content="Storks nest on roofs")])
def test_where_the_equal_text_went_before_the_write_near_ones_are_looked_for(core: Core, gone: Any) -> None:
    other = add(core, HERON_A)
    equal = add(core, HERON)
    with held(core) as queue:
        queue(lambda: gone(core, equal.id))
        late = queue(lambda: add(core, HERON, dedup_threshold=0.7))
    assert late.result(LIMIT_S).id == other.id


def share(core: Core, id: str) -> Any:
    return ask(core, Share(ids=[id], to="team", move=True))


Queue = Callable[[Callable[[], Any]], "Future[Any]"]


@contextmanager
def held(core: Core) -> Iterator[Queue]:
    """Hold the writer: what is queued meanwhile has searched before any of it is written, in the order of the calls."""
    gate, began = threading.Event(), threading.Event()

    def job(transaction: Any) -> None:
        began.set()
        assert gate.wait(LIMIT_S)

    def queue(work: Callable[[], Any]) -> "Future[Any]":
        before = core.store.writer.count_waiting()
        done = pool.submit(work)
        wait_until(lambda: core.store.writer.count_waiting() > before or done.done())
        return done

    with ThreadPoolExecutor(4) as pool:
        core.store.write(job)
        assert began.wait(LIMIT_S)
        try:
            yield queue
        finally:
            gate.set()


# Cut short -----------------------------------------------------------------------------------------------------------


def full(core: Core) -> None:
    core.store.limit_bytes = 1


@pytest.mark.parametrize(
    ("action", "error"),
    [(full, StorageFull), (lambda core: core.ending.set(), Unavailable)],
    ids=["size limit", "stop"],
)
def test_where_a_later_part_is_refused_the_error_says_how_many_are_stored(
    core: Core, action: Callable[[Core], None], error: type[MemorydError]
) -> None:
    core.store.used_bytes = 2
    at = 2 * UNCOMPARED if error is StorageFull else UNCOMPARED
    with pytest.raises(error, match=rf"^The first {UNCOMPARED} of {ALL} are stored, the rest is not: The ") as cut:
        many(core, notes(ALL), at, lambda: action(core), dedup=False)
    assert cut.value.data["stored"] == UNCOMPARED
    assert "retry_after_ms" not in cut.value.data  # to send it again would store the first part twice
    assert contents(core) == [f"note {number}" for number in range(UNCOMPARED)]
    [operation] = cut.value.data["operations"]
    core.store.limit_bytes = 0
    assert len(undo(core, operation).ids) == UNCOMPARED


def test_a_stop_before_the_first_part_lets_the_client_send_all_again(core: Core) -> None:
    core.ending.set()
    with pytest.raises(Unavailable) as cut:
        add_many(core, notes(THREE))
    assert cut.value.data == {"retry_after_ms": 100}
    assert contents(core) == []


def test_an_undo_between_two_parts_ends_the_call_and_leaves_nothing(core: Core) -> None:
    with pytest.raises(Conflict, match=r"^Operation .* was undone by operation .* while it went on; nothing") as cut:
        many(core, notes(THREE), TWO, lambda: undo(core))
    undone, added = (one.id for one in ask(core, Operations()))
    assert cut.value.message.startswith(f"Operation {added[:8]} was undone by operation {undone[:8]} ")
    assert cut.value.data == {"stored": 0, "operations": [added]}
    assert contents(core) == []


@pytest.mark.parametrize(("broken", "error"), [("metadata", Invalid), ("internal", Internal)])
def test_a_part_that_fails_is_taken_back_whole_and_the_ones_before_it_stay(
    core: Core, broken: str, error: type[MemorydError], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(core, HERON, metadata={"a": "x" * 40_000})
    given = [*notes(PART + 20), NewMemory(content=HERON, metadata={"b": "x" * 40_000}), *notes(20, 200)]
    if broken == "internal":
        given[PART + 20] = NewMemory(content=HERON)
        monkeypatch.setattr(adding_many.adding, "merge", lambda *given: 1 / 0)
    with pytest.raises(error, match=f"The first {PART} of {PART + 41} are stored") as cut:
        add_many(core, given)
    assert cut.value.data["stored"] == PART
    assert contents(core)[1:] == [f"note {number}" for number in range(PART)]


def test_a_full_queue_of_writes_is_waited_for(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BUSY_PAUSE_S", 0.001)
    submit, refusals = core.store.writer.submit, [Busy("full", {"retry_after_ms": 200})] * 3

    def busy(*given: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return submit(*given)

    monkeypatch.setattr(core.store.writer, "submit", busy)
    assert add_many(core, notes(THREE)).created == THREE


# Checked before anything is written ----------------------------------------------------------------------------------

BAD: dict[str, tuple[NewMemory, type[MemorydError]]] = {
    "text": (NewMemory(content=" "), Invalid),
    "superseded": (NewMemory(content="x", supersedes="0" * 32), NotFound),
    "id of another text": (NewMemory(content="x", id="ab" * 16), Conflict),
    "id given twice": (NewMemory(content="x", id="cd" * 16), Conflict),
}


@pytest.mark.parametrize(("bad", "error"), BAD.values(), ids=BAD)
def test_what_cannot_be_added_is_found_before_the_first_part_is_written(
    core: Core, bad: NewMemory, error: type[MemorydError]
) -> None:
    add(core, HERON, id="ab" * 16)
    given = [NewMemory(content="first", id="cd" * 16), *notes(240), bad]
    with pytest.raises(error) as wrong:
        add_many(core, given)
    assert "stored" not in wrong.value.data
    assert contents(core) == [HERON]


def test_a_token_may_not_choose_ids_and_not_supersede_what_is_shared(core: Core) -> None:
    shared = add(core, HERON, "team")
    agent = Caller("agent", "team/me", "agent", b"k")
    for bad in (NewMemory(content="x", id="ab" * 16), NewMemory(content="x", supersedes=shared.id)):
        call = AddMany(memories=[*notes(150), bad], namespace="team/me")
        with pytest.raises(MemorydError, match=r"may choose the id|is shared"):
            ask(core, call, caller=agent)
    assert contents(core, "team/me") == []
