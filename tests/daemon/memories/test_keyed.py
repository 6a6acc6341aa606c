"""Memories with keys: put, read and deleted by key; never merged; with history, undo, time to live."""

from types import SimpleNamespace
from typing import Any

import pytest

from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import (
    Delete,
    ExportMemories,
    Get,
    GetContext,
    History,
    ImportMemories,
    KeyedEntry,
    List,
    Memory,
    Namespaces,
    NewMemory,
    Put,
    Search,
    Share,
    WhyNot,
)
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store.caller import USER, Caller
from workbench import CountingEmbedder, add, ask, options_of, running, undo, wait_until


def put(core: Core, key: str, content: str, namespace: str = "", caller: Caller = USER, **options: Any) -> Any:
    call = {name: options.pop(name) for name in ("searchable", "ttl_s") if name in options}
    memory = NewMemory(content=content, **options)
    entry = KeyedEntry(key=key, memory=memory, **call)
    done = ask(core, Put(entries=[entry], namespace=namespace), caller=caller)
    [outcome] = done.results
    return SimpleNamespace(id=outcome.id, outcome=outcome.outcome, operation=done.operation)


def get(core: Core, key: str, namespace: str = "", **options: Any) -> Memory:
    return ask(core, Get(key=key, namespace=namespace, **options))


def search(core: Core, query: str, **fields: Any) -> list[str | None]:
    return [hit.key for hit in ask(core, Search(query=query, **options_of(fields)))]


def test_a_key_names_one_memory_whose_content_is_replaced(core: Core, clock: Any) -> None:
    made = put(core, "cache", "We cache in Redis", metadata={"port": 6379, "old": 1}, type="decision", pinned=True)
    before = get(core, "cache")
    clock.advance(5)
    again = put(core, "cache", "We cache in Valkey", metadata={"port": 6380})
    after = get(core, "cache")
    assert (made.outcome, again.outcome, made.id) == ("created", "updated", again.id)
    assert (after.content, after.metadata, after.type, after.pinned) == (
        "We cache in Valkey",
        {"port": 6380},
        "fact",
        False,
    )
    assert (after.created_at, after.updated_at) == (before.created_at, clock())
    assert search(core, "valkey") == ["cache"]
    assert search(core, "redis", mode="lexical") == []
    actions = [change.action for change in ask(core, History(id=made.id)).changes]
    assert actions == ["created", "updated"]
    undo(core, again.operation)
    assert get(core, "cache").content == "We cache in Redis"
    undo(core, made.operation)
    with pytest.raises(NotFound, match="no memory with the key 'cache'"):
        get(core, "cache")


def test_the_same_again_changes_nothing_but_its_time(core: Core, clock: Any) -> None:
    put(core, "cache", "We cache in Redis", metadata={"a": [1]})
    clock.advance(5)
    again = put(core, "cache", "We cache in Redis", metadata={"a": [1]})
    assert (again.outcome, again.operation) == ("unchanged", None)
    assert get(core, "cache").updated_at == clock()


def test_a_key_is_of_one_namespace(core: Core) -> None:
    for place in ("", "acme", "acme/api"):
        put(core, "cache", "We cache in Redis", place)
    assert len({get(core, "cache", place).id for place in ("", "acme", "acme/api")}) == 3
    with pytest.raises(NotFound):
        get(core, "cache", "acme/web")
    ask(core, Delete(keys=["cache"], namespace="acme"))
    with pytest.raises(NotFound):
        get(core, "cache", "acme")
    assert get(core, "cache", "acme/api")


def test_keyed_memories_are_never_merged_by_their_text(core: Core) -> None:
    one, two = put(core, "one", "Herons fish at dawn"), put(core, "two", "Herons fish at dawn")
    plain = add(core, "Herons fish at dawn")
    assert len({one.id, two.id, plain.id}) == 3
    assert add(core, "Herons fish at dawn").id == plain.id
    assert set(search(core, "herons", distinct=False)) == {"one", "two", None}


@pytest.mark.parametrize("key", ["", "k" * 513, "a\0b"])
def test_what_cannot_be_a_key_is_refused(core: Core, key: str) -> None:
    with pytest.raises(Invalid, match="1 to 512 bytes"):
        put(core, key, "Herons fish")


def test_an_id_or_a_predecessor_is_not_for_put(core: Core) -> None:
    for field in ({"id": "0f" * 16}, {"supersedes": "abcd"}):
        with pytest.raises(Invalid, match="the key identifies it"):
            put(core, "cache", "Herons fish", **field)


def test_what_is_not_searchable_is_found_by_key_and_lists_alone(core: Core) -> None:
    put(core, "hidden", "Herons fish at dawn", "acme", searchable=False, pinned=True)
    assert search(core, "herons") == []
    id = get(core, "hidden", "acme").id
    why = ask(core, WhyNot(query="herons", id=id))
    assert (why.stage, why.reason) == ("filter", "no search returns it: it is found by its key and in lists only")
    assert [memory.key for memory in ask(core, List())] == ["hidden"]
    assert [one.name for one in ask(core, Namespaces()).namespaces] == ["acme"]
    asked = GetContext(task="herons", namespace="acme")
    assert "Herons" not in preparing.context(core, core.sources, asked).result().text
    put(core, "hidden", "Herons fish at dawn", "acme")
    assert search(core, "herons") == ["hidden"]


@pytest.mark.slow
def test_a_value_may_have_eight_mebibytes(core: Core) -> None:
    put(core, "large", "a large value", metadata={"text": "word " * 1_500_000}, searchable=False)
    assert len(get(core, "large").metadata["text"]) == 7_500_000
    with pytest.raises(Invalid, match="the limit is 8388608"):
        put(core, "larger", "a larger value", metadata={"text": "x" * 9_000_000})


@pytest.mark.slow
def test_large_values_come_whole_in_several_replies(core: Core) -> None:
    for number in range(5):
        put(core, f"large {number}", f"heron number {number}", metadata={"text": "word " * 600_000})
    pages = [ask(core, List(offset=offset)) for offset in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert {len(memory.metadata["text"]) for page in pages for memory in page} == {3_000_000}
    assert [page.total for page in pages] == [5, 5, 5]
    assert [len(search(core, "heron", offset=offset)) for offset in (0, 2, 4, 5)] == [2, 2, 1, 0]


def test_a_time_to_live_begins_again_with_a_read_that_renews(core: Core, clock: Any) -> None:
    put(core, "short", "Herons fish", ttl_s=100.0)
    clock.advance(60)
    assert get(core, "short").expires_at == clock() + 40
    get(core, "short", renew=True)
    wait_until(lambda: get(core, "short").expires_at == clock() + 100)
    clock.advance(101)
    with pytest.raises(NotFound):
        get(core, "short", renew=True)
    again = put(core, "short", "Herons fish", ttl_s=100.0)
    assert (again.outcome, get(core, "short").created_at) == ("updated", clock())


def test_an_undo_does_not_give_a_key_to_two_memories(core: Core) -> None:
    put(core, "cache", "We cache in Redis")
    deleted = ask(core, Delete(keys=["cache"]))
    put(core, "cache", "We cache in Valkey")
    with pytest.raises(Conflict, match="belongs to memory"):
        undo(core, deleted.operation)
    assert get(core, "cache").content == "We cache in Valkey"


def test_a_shared_copy_has_no_key_and_a_move_keeps_it_where_it_is_free(core: Core) -> None:
    id = put(core, "cache", "We cache in Redis", "acme/api").id
    [copy] = ask(core, Share(ids=[id], to="acme")).memories
    assert reading.get(core, Get(id=copy.id)).key is None
    put(core, "cache", "Another thing", "")
    with pytest.raises(Conflict, match="Another memory there"):
        ask(core, Share(ids=[id], to="", move=True))
    assert get(core, "cache", "acme/api").id == id


def test_an_export_brings_keys_along(core: Core, folder: Any) -> None:
    put(core, "cache", "We cache in Redis", metadata={"large": "x" * 100_000}, searchable=False, ttl_s=50.0)
    [record] = ask(core, ExportMemories()).records
    with running(folder / "other", CountingEmbedder()) as other:
        assert ask(other, ImportMemories(records=[record], mine=True)).created == 1
        [back] = ask(other, ExportMemories()).records
    assert back == record
    assert (back.key, back.searchable, back.ttl_s) == ("cache", False, 50.0)
