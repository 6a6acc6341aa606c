"""Adding: created, merged or contradicting; where duplicates are looked for; all or nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from each import each
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import Get, History, List, Memory, NewMemory, Operations
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from workbench import CountingEmbedder, add, add_many, ask, delete, found, no_model, running, search, undo, wait_until

HERON = "The grey heron fishes at dawn near the old mill"
HERON_A = "A grey heron fishes at dawn near an old mill"
LIMIT_30 = "The limit is 30 seconds for every request of every client"
LIMIT_60 = "The limit is 60 seconds for every request of every client"


def get(core: Core, id: str) -> Memory:
    return reading.get(core, Get(id=id))


def total(core: Core) -> int:
    return ask(core, List(all_states=True)).total


def test_a_new_memory_is_kept_with_every_field_and_found_at_once(core: Core, clock: Any) -> None:
    added = add(
        core,
        HERON,
        "acme/api",
        type="lesson",
        summary="birds",
        metadata={"b": [1, None, {"c": True}], "a": "x"},
        importance=0.9,
        source="import",
        expires_at=clock() + 10,
        pinned=True,
    )
    assert (added.outcome, added.embedded, added.similarity, added.contradicts) == ("created", True, None, [])
    memory = get(core, added.id)
    assert memory == Memory(
        id=added.id,
        namespace="acme/api",
        type="lesson",
        content=HERON,
        summary="birds",
        metadata={"b": [1, None, {"c": True}], "a": "x"},
        importance=0.9,
        source="import",
        origin="agent",
        tier="L1",
        created_at=clock(),
        updated_at=clock(),
        expires_at=clock() + 10,
        pinned=True,
    )
    assert found(core, "heron") == [HERON]


@pytest.mark.parametrize(
    "again", [HERON, HERON.upper(), f"  {HERON}\n", HERON.replace(" ", "  "), "The grey he\u0072on" + HERON[14:]]
)
def test_equal_text_whatever_its_case_and_white_space_is_merged(core: Core, again: str) -> None:
    first = add(core, HERON)
    second = add(core, again)
    assert (second.id, second.outcome, second.similarity) == (first.id, "merged", 1.0)
    assert get(core, first.id).content == again
    assert total(core) == 1


def test_composed_and_decomposed_letters_are_equal_text(core: Core) -> None:
    assert add(core, "Café").id == add(core, "Cafe\u0301").id


def test_a_merge_keeps_what_was_known_and_takes_what_is_new(core: Core, clock: Any) -> None:
    first = add(core, HERON, metadata={"a": 1, "b": {"x": 1}}, summary="old", importance=0.8, pinned=True)
    core.store.write(
        lambda transaction: transaction.connection.execute("UPDATE memories SET access_count = 7, last_accessed_at = 5")
    ).result()
    created_at = clock()
    clock.advance(60)
    add(core, HERON.lower(), metadata={"b": 2, "c": 3}, importance=0.3)
    memory = get(core, first.id)
    assert memory.metadata == {"a": 1, "b": 2, "c": 3}
    assert (memory.content, memory.summary, memory.importance, memory.pinned) == (HERON.lower(), "old", 0.8, True)
    assert (memory.access_count, memory.last_accessed_at) == (7, 5)
    assert (memory.created_at, memory.updated_at) == (created_at, created_at + 60)
    [created, merged] = ask(core, History(id=first.id)).changes
    assert created.kind == merged.kind == "add"
    assert merged.changed["content"] == (HERON, HERON.lower())


def test_metadata_that_grows_past_the_limit_by_merging_is_refused_and_nothing_is_changed(core: Core) -> None:
    first = add(core, HERON, metadata={"a": "x" * 40_000})
    with pytest.raises(Invalid, match="limit"):
        add(core, HERON, metadata={"b": "x" * 40_000})
    assert list(get(core, first.id).metadata) == ["a"]


def test_a_near_duplicate_that_agrees_is_merged_and_its_vector_replaced(core: Core) -> None:
    first = add(core, HERON)
    second = add(core, HERON_A, dedup_threshold=0.7)
    assert (second.id, second.outcome) == (first.id, "merged")
    assert second.similarity is not None
    assert 0.7 < second.similarity < 1
    assert search(core, HERON_A)[0].similarity == pytest.approx(1.0, abs=1e-5)
    assert search(core, HERON)[0].similarity == pytest.approx(second.similarity, abs=1e-5)


def test_a_near_duplicate_that_disagrees_is_kept_and_linked_from_both_sides(core: Core) -> None:
    first = add(core, LIMIT_30)
    second = add(core, LIMIT_60, dedup_threshold=0.7)
    assert (second.outcome, second.contradicts) == ("created", [first.id])
    assert get(core, first.id).contradicts == [second.id]
    assert get(core, second.id).contradicts == [first.id]
    assert [hit.content for hit in search(core, LIMIT_30)] == [LIMIT_60, LIMIT_30]  # the newer one first
    assert search(core, LIMIT_30)[0].contradicts == [first.id]


def test_the_threshold_of_a_call_goes_before_that_of_the_model(core: Core) -> None:
    first = add(core, HERON)
    similarity = search(core, HERON_A)[0].similarity
    assert similarity is not None
    assert similarity < 0.92
    assert add(core, HERON_A).outcome == "created"  # the model's own threshold is 0.92
    delete(core, ask(core, List())[0].id)
    assert add(core, HERON_A, dedup_threshold=similarity + 0.001).outcome == "created"
    delete(core, ask(core, List())[0].id)
    assert add(core, HERON_A, dedup_threshold=similarity - 0.001).id == first.id


@pytest.mark.parametrize(("namespace", "type"), [("b", "fact"), ("a/b", "fact"), ("", "fact"), ("a", "lesson")])
@pytest.mark.parametrize("text", [HERON, HERON_A])
def test_another_namespace_or_type_is_never_merged_or_linked(core: Core, namespace: str, type: str, text: str) -> None:
    first = add(core, HERON, "a")
    second = add(core, text, namespace, type=type, dedup_threshold=0.5)
    assert (second.outcome, second.contradicts) == ("created", [])
    assert second.id != first.id


@pytest.mark.parametrize("gone", ["expired", "superseded", "deleted"])
@pytest.mark.parametrize("text", [HERON, HERON_A])
def test_what_is_no_longer_alive_is_no_duplicate_so_that_every_add_can_be_found(
    core: Core, clock: Any, gone: str, text: str
) -> None:
    first = add(core, HERON, expires_at=clock() + 5 if gone == "expired" else None)
    clock.advance(10)
    if gone == "superseded":
        add(core, "Storks nest on roofs", supersedes=first.id)
    if gone == "deleted":
        delete(core, first.id)
    again = add(core, text, dedup_threshold=0.7)
    assert (again.outcome, again.contradicts) == ("created", [])
    assert text in found(core, "heron")


def test_a_memory_that_waits_for_its_vector_gets_it_when_it_is_said_again(folder: Path) -> None:
    embedder = CountingEmbedder()
    embedder.broken = True
    with running(folder, embedder) as core:
        assert not add(core, HERON).embedded
        wait_until(lambda: core.embedding.count_pending() == 1 and not core.embedding.active.pending)  # type: ignore[union-attr]
        embedder.broken = False
        again = add(core, HERON)
        assert (again.outcome, again.embedded, core.embedding.count_pending()) == ("merged", True, 0)
        assert search(core, HERON)[0].similarity == pytest.approx(1.0, abs=1e-5)


def test_superseding_hides_the_old_one_but_keeps_it(core: Core) -> None:
    old = add(core, "We cache in Redis", "team")
    new = add(core, "We cache in Valkey", "team/me", supersedes=old.id[:8])
    assert found(core, "cache") == ["We cache in Valkey"]
    assert get(core, old.id).superseded_by == new.id
    assert ask(core, List()).total == 1
    assert [change.kind for change in ask(core, History(id=old.id))] == ["add", "add"]


def test_superseding_what_is_out_of_reach_or_unknown_adds_nothing(core: Core) -> None:
    other = add(core, "Their plan", "team/them")
    for target in (other.id, "0" * 32):
        with pytest.raises(NotFound):
            add(core, "My plan", "team/me", supersedes=target)
    assert total(core) == 1
    assert get(core, other.id).superseded_by is None
    assert core.store.namespaces.find_number("team/me") is None


def test_a_text_merged_into_the_very_memory_it_supersedes_stays_in_results(core: Core) -> None:
    old = add(core, HERON)
    assert add(core, HERON.upper(), supersedes=old.id).id == old.id
    assert get(core, old.id).superseded_by is None
    assert found(core, "heron") == [HERON.upper()]


def test_what_supersedes_by_its_text_is_the_memory_that_is_there_whatever_its_type(core: Core) -> None:
    new, old = add(core, HERON, type="decision"), add(core, "Storks nest on roofs")
    assert add(core, HERON.upper(), supersedes=old.id).id == new.id
    assert (get(core, old.id).superseded_by, get(core, new.id).type) == (new.id, "decision")
    other = add(core, "Cranes nest on roofs")
    assert add(core, HERON, type="rule", supersedes=other.id).id != new.id


def test_a_given_id_and_time_are_kept_and_adding_the_same_again_changes_nothing_else(core: Core) -> None:
    id = "0123456789abcdef" * 2
    for outcome in ("created", "merged"):
        added = add(core, HERON, id=id, created_at=1000.0, metadata={"a": 1}, dedup=False)
        assert (added.id, added.outcome) == (id, outcome)
    memory = get(core, id)
    assert (memory.created_at, memory.updated_at, memory.metadata) == (1000.0, 1000.0, {"a": 1})


def test_an_id_that_belongs_to_another_text_or_namespace_is_a_conflict(core: Core) -> None:
    id = "ab" * 16
    add(core, HERON, "a", id=id)
    for content, namespace in (("Storks nest", "a"), (HERON, "b"), (HERON, "")):
        with pytest.raises(Conflict, match="another memory"):
            add(core, content, namespace, id=id, metadata={"mine": 1})
    assert (get(core, id).content, get(core, id).namespace, get(core, id).metadata) == (HERON, "a", {})


def test_the_file_of_a_memory_is_kept_and_a_merge_takes_the_newer_one(core: Core) -> None:
    first = add(core, HERON, path="memory/2026-03-01.md", start_line=3, end_line=5)
    assert place(core, first.id) == ("memory/2026-03-01.md", 3, 5)
    assert [hit.id for hit in search(core, "heron", path_prefix="memory/")] == [first.id]
    add(core, HERON.upper())
    assert place(core, first.id) == ("memory/2026-03-01.md", 3, 5)
    add(core, HERON, path="/srv/birds.md", start_line=7)
    assert place(core, first.id) == ("/srv/birds.md", 7, None)
    undo(core)
    assert place(core, first.id) == ("memory/2026-03-01.md", 3, 5)


def place(core: Core, id: str) -> tuple[Any, ...]:
    memory = get(core, id)
    return memory.path, memory.start_line, memory.end_line


def test_one_that_cannot_be_added_takes_all_of_the_call_back(core: Core) -> None:
    add(core, HERON)
    before = ask(core, List(all_states=True))
    with pytest.raises(NotFound):
        add_many(core, ["Storks nest", HERON.upper(), NewMemory(content="x y", supersedes="0" * 32)], "new")
    assert ask(core, List(all_states=True)) == before
    generation = core.embedding.active
    assert generation is not None
    assert (len(generation.index), core.embedding.count_pending()) == (1, 0)
    assert search(core, "storks nest", min_similarity=0.9).hits == []
    assert add(core, "Storks nest").outcome == "created"


def test_all_writes_of_a_failing_commit_are_forgotten_in_memory_too(core: Core) -> None:
    add(core, HERON)
    core.store._connection.set_commit_hook(lambda: True)
    with pytest.raises(Exception, match="cannot be written"):
        add_many(core, ["Storks nest", HERON.upper()])
    core.store._connection.set_commit_hook(None)
    generation = core.embedding.active
    assert generation is not None
    assert len(generation.index) == 1
    assert found(core, "heron storks") == [HERON]
    assert add(core, "Storks nest").outcome == "created"


def bad(**fields: Any) -> Callable[[Core], Any]:
    return lambda core: add(core, **{"content": HERON, **fields})


@each(
    "call",
    [
        bad(content=""),
        bad(content=" \n\t"),
        bad(content="a\0b"),
        bad(content="x" * (1024 * 1024 + 1)),
        bad(content="ä" * (512 * 1024 + 1)),
        bad(type=""),
        bad(type="x" * 129),
        bad(type="a\nb"),
        bad(source=" "),
        bad(summary="\0"),
        bad(neighbours=["\0"]),
        bad(path=""),
        bad(path="a\0b"),
        bad(path="ä" * 2049),
        bad(start_line=1),
        bad(end_line=1),
        bad(path="a.md", end_line=1),
        bad(path="a.md", start_line=2, end_line=1),
        bad(id="abc"),
        bad(id="A" * 32),
        bad(metadata={"a": "x" * 70_000}),
        bad(metadata={"a": float("nan")}),
        bad(metadata={"a": [float("inf")]}),
        bad(metadata={"a": b"bytes"}),
        bad(metadata={"a": "\0"}),
        bad(metadata={"\0": 1}),
        bad(metadata={"a": [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}),
        bad(namespace="a//b"),
    ],
)
def test_what_cannot_be_a_memory_is_refused_with_a_sentence_and_nothing_is_written(core: Core, call: Any) -> None:
    with pytest.raises(Invalid, match=r"\.$"):
        call(core)
    assert total(core) == 0
    assert ask(core, Operations()).operations == []


def test_without_a_model_equal_texts_are_merged_all_the_same(folder: Path) -> None:
    with running(folder, no_model, ready=False) as core:
        assert add(core, HERON).id == add(core, HERON.upper()).id
        assert add(core, HERON_A).outcome == "created"
