"""Export and import: what goes out comes back exactly, whatever is there already."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conversing import problems
from each import each
from memoryd.client.errors import Conflict, Invalid, StorageFull
from memoryd.client.protocol import (
    Erase,
    ExportMemories,
    Imported,
    ImportMemories,
    Link,
    Observe,
    Operations,
    Record,
    Vote,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import transfer
from memoryd.daemon.memories.batches import PART
from memoryd.daemon.registry import finish
from workbench import CountingEmbedder, add, ask, delete, found, running, search, undo

LIMIT_S = 30


def exported(core: Core, **options: Any) -> list[Record]:
    """Return all records of an export, portion by portion."""
    records: list[Record] = []
    after = ""
    while True:
        part = ask(core, ExportMemories(after_id=after, **options))
        records += part.records
        if part.next is None:
            return records
        after = part.next


def put(core: Core, records: list[Record], **options: Any) -> Imported:
    return ask(core, ImportMemories(records=records, **{"mine": True, **options}))


def record(number: int, content: str = "A text", **fields: Any) -> Record:
    given = {"namespace": "", "type": "fact", "created_at": 5.25, "updated_at": 7.125, **fields}
    return Record(id=f"{number:032x}", content=content, **given)


FULL = record(
    1,
    "Every field\r\n has a value \x07\n\n",
    namespace="acme/api",
    type="decision",
    summary="All of them",
    metadata={"n": 1, "x": 1.0, "deep": {"tags": ["ü", None, True]}},
    importance=0.875,
    source="task_completion",
    tier="L2",
    last_accessed_at=1_700_000_000.1234567,
    access_count=12,
    expires_at=4e9,
    pinned=True,
    superseded_by=f"{9:032x}",
    path="/home/notes/MEMORY.md",
    start_line=3,
    end_line=8,
    neighbours="what was said before",
    turns=2,
)


def test_every_field_of_a_memory_comes_back(core: Core) -> None:
    assert put(core, [FULL]).created == 1
    assert exported(core) == [FULL]


def test_an_import_is_written_in_parts_as_one_operation(core: Core) -> None:
    link = Link(origin=f"{1:032x}", target=f"{240:032x}", kind="contradicts", created_at=5.0)
    records = [record(n, f"text {n}", relations=[link] if n in (1, 240) else []) for n in range(250)]
    importing = transfer.import_(core, ImportMemories(records=records))
    for stored in range(PART, 250, PART):
        next(importing)
        assert len(exported(core)) == stored
    imported = finish(importing)
    [operation] = ask(core, Operations())
    assert (imported.created, imported.operation) == (250, operation.id)
    assert [one.relations for one in exported(core) if one.relations] == [[link], [link]]
    assert len(undo(core).ids) == 250
    assert exported(core) == []


def test_an_import_that_is_cut_short_says_how_many_are_stored(core: Core) -> None:
    importing = transfer.import_(core, ImportMemories(records=[record(n, f"text {n}") for n in range(250)]))
    next(importing)
    core.store.limit_bytes = 1
    with pytest.raises(StorageFull, match=rf"^The first {PART} of 250 are stored, the rest is not: ") as cut:
        next(importing)
    [operation] = ask(core, Operations())
    assert (cut.value.data["stored"], cut.value.data["operations"]) == (PART, [operation.id])
    core.store.limit_bytes = 0
    importing = transfer.import_(core, ImportMemories(records=[record(n, f"more {n}") for n in range(300, 550)]))
    next(importing)
    undone = undo(core)
    said = f"^The import, operation {undone.undone[:8]}, was undone meanwhile by operation {undone.operation[:8]}"
    with pytest.raises(Conflict, match=said) as cut:
        next(importing)
    assert cut.value.data["stored"] == 0
    assert len(exported(core)) == PART


def test_a_daemon_that_imports_anothers_export_exports_the_same(core: Core, tmp_path: Any) -> None:
    first = add(core, "Deploys take 30 seconds", "acme").id
    add(core, "Deploys take 60 seconds", "acme", dedup_threshold=0.5)
    add(core, "Deploys take 90 seconds", "acme", dedup_threshold=0.5, supersedes=first)
    add(core, "Gone already", expires_at=1.0)
    records = exported(core)
    assert len(records) == 4
    assert sum(bool(one.relations) for one in records) == 3
    with running(tmp_path, core.embedding.active.embedder) as other:  # type: ignore[union-attr]
        for one in reversed(records):  # links come with whichever end comes last
            assert put(other, [one]).created == 1
        assert exported(other) == records
        assert core.store.find_problems() == other.store.find_problems() == []


@pytest.mark.slow
def test_a_portion_of_large_memories_fits_into_a_frame(core: Core) -> None:
    large = [record(number, f"{number} " + "x" * (1024 * 1024 - 8)) for number in range(40)]
    for start in range(0, 40, 10):
        put(core, large[start : start + 10])
    part = ask(core, ExportMemories(limit=1000))
    assert 0 < len(part) < 16
    assert part.total == 40
    assert exported(core) == large


def test_turns_of_l0_are_exported_as_the_memories_that_they_will_be(core: Core, tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"We decided that cache {number} is Valkey"} for number in range(5)]
    ask(core, msgspec.convert({"turns": said, "session": "s1", "namespace": "acme"}, Observe))
    put(core, [record(1)])
    assert ask(core, ExportMemories(reach="all")).total == 6
    pages = exported(core, reach="all", limit=2)
    assert {one.content for one in pages} == {"A text", *(turn["content"] for turn in said)}
    assert [one.id for one in pages] == sorted(one.id for one in pages)
    turn = next(one for one in pages if one.type == "turn")
    assert (turn.tier, turn.turns, turn.metadata["session"], turn.namespace) == ("L1", 1, "s1", "acme")
    assert len(exported(core, reach="all", type=["turn"])) == 5
    assert put(core, pages).unchanged == 6
    with running(tmp_path / "other", CountingEmbedder()) as other:
        assert put(other, pages).created == 6
        assert problems(other) == []


def test_files_are_left_out_and_counted(core: Core) -> None:
    put(core, [record(1)])
    core.store.write(
        lambda transaction: transaction.connection.execute(
            "UPDATE memories SET tier = 'documents' WHERE id = ?", [FULL.id]
        )
    ).result(LIMIT_S)
    part = ask(core, ExportMemories())
    assert (part.records, part.total, part.left_out) == ([], 0, {"documents": 1})
    assert put(core, [record(1, "Not from the file", updated_at=99.0)]).kept == [FULL.id]
    assert put(core, [record(2, tier="documents")]).skipped == 1


def test_filters_and_namespace_bound_an_export(core: Core) -> None:
    put(core, [record(1, type="lesson"), record(2), record(3, namespace="acme/api"), record(4, namespace="acme/web")])
    assert [one.id[-1] for one in exported(core, type=["lesson"])] == ["1"]
    assert [one.id[-1] for one in exported(core, namespace="acme/api")] == ["1", "2", "3"]
    assert [one.id[-1] for one in exported(core, namespace="acme", reach="subtree")] == ["3", "4"]


def test_what_is_inside_the_namespace_and_out_of_reach_is_counted(core: Core) -> None:
    put(core, [record(1), record(2, namespace="acme"), record(3, namespace="acme/api"), record(4, namespace="other")])
    said = [{"role": "user", "content": "We decided that the cache is Valkey"}]
    ask(core, msgspec.convert({"turns": said, "session": "s1", "namespace": "acme/web"}, Observe))
    assert ask(core, ExportMemories(namespace="acme")).left_out["inside"] == 2
    assert ask(core, ExportMemories(namespace="acme", source=["manual"])).left_out["inside"] == 1
    assert ask(core, ExportMemories(namespace="acme/api")).left_out["inside"] == 0
    for call in (ExportMemories(), ExportMemories(namespace="acme", reach="subtree")):
        assert "inside" not in ask(core, call).left_out


def test_links_to_what_is_out_of_reach_are_left_out(core: Core) -> None:
    link = Link(origin=f"{1:032x}", target=f"{2:032x}", kind="shared_from", created_at=3.5)
    put(core, [record(1, namespace="acme", relations=[link]), record(2, namespace="other", relations=[link])])
    assert [one.relations for one in exported(core)] == [[link], [link]]
    assert [one.relations for one in exported(core, namespace="acme", reach="exact")] == [[]]


def test_the_same_import_twice_changes_nothing(core: Core) -> None:
    put(core, [FULL, record(2)])
    before = len(list(ask(core, Operations())))
    again = put(core, [FULL, record(2)])
    assert (again.unchanged, again.created, again.replaced, again.kept, again.operation) == (2, 0, 0, [], None)
    assert len(list(ask(core, Operations()))) == before


def test_the_later_change_wins_unless_told_otherwise(core: Core) -> None:
    put(core, [record(1, "stored", updated_at=10.0)])
    assert put(core, [record(1, "older", updated_at=9.0)]).kept == [f"{1:032x}"]
    assert put(core, [record(1, "as old", updated_at=10.0)]).kept == [f"{1:032x}"]
    assert put(core, [record(1, "newer", updated_at=11.0)]).replaced == 1
    assert found(core, "newer") == ["newer"]
    assert put(core, [record(1, "older", updated_at=9.0)], overwrite=True).replaced == 1
    assert found(core, "older") == ["older"]
    assert not any(hit.bm25 for hit in search(core, "newer stored"))  # the words are gone


def test_a_dry_run_tells_the_same_and_changes_nothing(core: Core) -> None:
    put(core, [record(1), record(2), record(3)])
    records = [
        record(1),
        record(2, "new", updated_at=99.0),
        record(3, "old", updated_at=1.0),
        record(4, namespace="new"),
    ]
    before = exported(core)
    told = put(core, records, dry_run=True)
    assert exported(core) == before
    done = put(core, records)
    assert msgspec.structs.replace(done, operation=None) == msgspec.structs.replace(told, dry_run=False)
    assert (told.created, told.replaced, told.unchanged, told.kept) == (1, 1, 1, [f"{3:032x}"])


def test_an_import_of_several_calls_is_undone_as_one(core: Core) -> None:
    put(core, [record(1, "was here")])
    first = put(core, [record(1, "came", updated_at=99.0), record(2)])
    second = put(core, [record(3), FULL], operation=first.operation, overwrite=True)
    assert second.operation == first.operation
    undone = undo(core, first.operation)
    assert exported(core) == [record(1, "was here")]
    with pytest.raises(Conflict, match="was undone meanwhile"):
        put(core, [record(4)], operation=first.operation)
    undo(core, undone.operation)  # all of it is there again
    assert len(exported(core)) == 3


def test_only_an_import_can_be_gone_on_with(core: Core) -> None:
    added, imported = add(core, "Something"), put(core, [record(2)])
    for operation in (added.operation, "0" * 32, imported.operation[:8]):
        with pytest.raises(Invalid, match="is not the id of an import"):
            put(core, [record(1)], operation=operation)
    assert len(exported(core)) == 2


def test_a_deleted_memory_is_brought_back_with_its_links(core: Core) -> None:
    add(core, "Deploys take 30 seconds")
    second = add(core, "Deploys take 60 seconds", dedup_threshold=0.5)
    records = exported(core)
    delete(core, second.id)
    assert put(core, records, overwrite=True).created == 1
    assert exported(core) == records


def test_what_was_deleted_here_later_than_it_was_changed_there_is_left_out(core: Core, clock: Any) -> None:
    first, second = add(core, "Deploys take 30 seconds"), add(core, "The cache is Valkey")
    records = exported(core)
    clock.advance(60)
    delete(core, first.id)
    deleted = delete(core, second.id)
    for dry_run in (True, False):
        done = put(core, records, dry_run=dry_run)
        assert (done.created, sorted(done.deleted), done.operation) == (0, sorted([first.id, second.id]), None)
    undo(core, deleted.operation)
    assert put(core, records).unchanged == 1
    later = [msgspec.structs.replace(one, updated_at=clock() + 1) for one in records if one.id == first.id]
    assert (put(core, later).created, len(exported(core))) == (1, 2)


def test_votes_of_both_sides_and_the_larger_count_are_kept(core: Core) -> None:
    here, there = (Vote(by=name, useful=True, note="", at=1.0, cited=[]) for name in ("desk", "laptop"))
    put(core, [record(1, "old", access_count=7, votes=[here]), record(2, votes=[here]), record(3, "new", votes=[here])])
    coming = [
        record(1, "changed", updated_at=99.0, access_count=3, votes=[there]),
        record(2, votes=[there]),
        record(3, "older", updated_at=1.0, votes=[there]),
    ]
    done = put(core, coming)
    assert (done.changed, done.kept) == ([f"{1:032x}", f"{2:032x}"], [f"{3:032x}"])
    found = exported(core)
    assert [one.content for one in found] == ["changed", coming[1].content, "new"]
    assert found[0].access_count == 7
    assert [one.votes for one in found] == [[here, there]] * 3
    again = put(core, coming)
    assert (again.operation, again.unchanged) == (None, 2)
    undo(core)
    assert [one.votes for one in exported(core)] == [[here]] * 3


def test_what_was_erased_is_left_out_unless_told_otherwise_and_no_namespace_is_made_for_it(core: Core) -> None:
    records = [record(1, "The vault is open", namespace="acme"), record(2, "The door is open")]
    put(core, records)
    ask(core, Erase(ids=[records[0].id]))
    records[0].namespace = "swamp"
    for dry_run in (True, False):
        done = put(core, records, dry_run=dry_run)
        assert (done.created, done.unchanged, done.erased, done.operation) == (0, 1, 1, None)
    done = put(core, [*records, record(3, "The shed is open")])
    assert (done.created, done.unchanged, done.erased) == (1, 1, 1)
    assert core.store.namespaces.find_number("swamp") is None
    done = put(core, records, overwrite=True)
    assert (done.created, done.erased) == (1, 0)
    assert len(exported(core)) == 3


def test_what_was_said_around_a_memory_brings_nothing_back_that_was_erased(core: Core) -> None:
    """Neither with a memory that was deleted since, nor with one that was changed elsewhere, nor without a session."""
    secret, said = "Zephyrine sings in the choir", {"turns": 1, "metadata": {"session": "s1"}}
    records = [
        record(1, secret, **said),
        record(2, "Herons fish at dawn", neighbours=secret, **said),
        record(3, "Storks nest on roofs", neighbours=f"{secret}\nHerons fish at dawn", **said),
        record(4, "Cranes dance", neighbours=secret),
        record(5, "Of another session", neighbours="Said before", turns=1, metadata={"session": "s2"}),
    ]
    put(core, records)
    ask(core, Erase(matching="zephyrine"))
    assert [one.neighbours for one in exported(core)] == ["", "Herons fish at dawn", "", "Said before"]
    delete(core, f"{2:032x}")
    delete(core, f"{5:032x}")
    done = put(core, [msgspec.structs.replace(one, updated_at=4e9, importance=0.25) for one in records])
    assert (done.created, len(done.changed), done.erased) == (2, 2, 1)
    assert [one.neighbours for one in exported(core)] == ["", "Herons fish at dawn", "", "Said before"]
    put(core, records, overwrite=True)
    assert [one.neighbours for one in exported(core)] == [one.neighbours for one in records]


def test_a_turn_in_l0_is_not_doubled_by_the_memory_that_it_will_be(core: Core) -> None:
    key = f"{7:032x}"
    turn = {"role": "user", "content": "We decided that the cache is Valkey", "id": key}
    ask(core, msgspec.convert({"turns": [turn]}, Observe))
    assert put(core, [record(7)]).kept == [key]


def test_the_account_of_turns_stays_right(core: Core) -> None:
    operation = put(core, [FULL, record(2, turns=1)]).operation
    put(core, [record(2, turns=3, namespace="elsewhere", updated_at=99.0)])
    assert core.store.find_problems() == []
    undo(core)
    undo(core, operation)
    assert core.store.find_problems() == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"content": " "}, "content is empty"),
    ({"content": "a\0b"}, "NUL"),
    ({"content": "x" * (1024 * 1024 + 1)}, "limit is"),
    ({"namespace": "a//b"}, "empty part"),
    ({"type": ""}, "type"),
    ({"source": "a\nb"}, "source"),
    ({"metadata": {"x": float("nan")}}, "finite"),
    ({"importance": 1.5}, "importance"),
    ({"importance": float("nan")}, "importance"),
    ({"tier": "L0"}, "turn of L0"),
    ({"created_at": -1.0}, "1970"),
    ({"updated_at": float("inf")}, "1970"),
    ({"expires_at": 1e15}, "1970"),
    ({"access_count": -1}, "access count"),
    ({"turns": -1}, "number of turns"),
    ({"path": "a.md", "start_line": 0}, "counted from 1"),
    ({"path": "a.md", "start_line": 3, "end_line": 2}, "cannot be the last"),
    ({"start_line": 3}, "without the path"),
    ({"superseded_by": "3f9a"}, "32 lower-case"),
    ({"contradicts": ["../x"]}, "32 lower-case"),
    (
        {"relations": [Link(origin="a" * 32, target="b" * 32, kind="x", created_at=1.0)]},
        "does not belong to this memory",
    ),
    ({"neighbours": "a\0"}, "NUL"),
]


@each(("fields", "reason"), BAD, ids=map(str, range(len(BAD))))
def test_a_record_that_cannot_be_is_refused_and_nothing_of_its_call_is_written(
    core: Core, fields: dict[str, Any], reason: str
) -> None:
    bad = msgspec.structs.replace(record(2), **fields)
    with pytest.raises(Invalid, match=reason) as refused:
        put(core, [record(1), bad])
    assert refused.value.data == {"index": 1}
    assert exported(core) == []


def test_an_id_that_is_given_twice_is_refused(core: Core) -> None:
    with pytest.raises(Invalid, match="that of memory 0 as well"):
        put(core, [record(1), record(1, "Another")])
    bad = msgspec.structs.replace(record(1), id="../../etc")
    with pytest.raises(Invalid, match="32 lower-case"):
        put(core, [bad])
