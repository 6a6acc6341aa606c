"""Changing: each field, metadata key by key, tags, deletes; all within reach."""

from typing import Any

import pytest

from each import each
from memoryd.client.errors import Invalid, NotFound
from memoryd.client.protocol import Get, List, Memory, Tag
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from workbench import add, ask, delete, found, search, update


def get(core: Core, id: str) -> Memory:
    return reading.get(core, Get(id=id))


def tag(core: Core, id: str, *tags: str, **values: Any) -> Memory:
    memory: Memory = ask(core, Tag(id=id, tags=list(tags), values=values)).memory
    return memory


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "Storks nest on roofs"},
        {"type": "lesson"},
        {"summary": "in short"},
        {"summary": ""},
        {"importance": 1.0},
        {"expires_at": 2e9},
        {"expires_at": None},
        {"pinned": True},
        {"metadata": {"a": 1}},
        {"content": "Storks nest on roofs", "type": "lesson", "importance": 0.0, "pinned": False},
    ],
    ids=str,
)
def test_an_update_sets_the_given_fields_and_the_time_and_nothing_else(
    core: Core, clock: Any, fields: dict[str, Any]
) -> None:
    id = add(core, "Herons fish at dawn", expires_at=1.9e9, summary="s", metadata={}).id
    before = get(core, id)
    clock.advance(5)
    changed = update(core, id, **fields)
    expected = {**{name: getattr(before, name) for name in before.__struct_fields__}, **fields, "updated_at": clock()}
    assert changed.memory == get(core, id) == Memory(**expected)


def test_changed_content_is_searched_by_its_new_words_and_meaning_only(core: Core) -> None:
    id = add(core, "Herons fish at dawn").id
    update(core, id, content="Storks nest on roofs")
    assert search(core, "storks nest on roofs")[0].similarity == pytest.approx(1.0, abs=1e-5)
    assert search(core, "herons").hits[0].bm25 is None
    assert add(core, "Storks nest on roofs").id == id


def test_a_changed_type_moves_the_memory_to_the_duplicates_of_that_type(core: Core) -> None:
    id = add(core, "The grey heron fishes at dawn near the old mill").id
    update(core, id, type="lesson")
    near = "A grey heron fishes at dawn near an old mill"
    assert add(core, near, type="lesson", dedup_threshold=0.7).id == id
    assert add(core, near, type="fact", dedup_threshold=0.7).outcome == "created"


@pytest.mark.parametrize(
    ("given", "replace", "left"),
    [
        ({"b": 3}, False, {"a": 1, "b": 3}),
        ({"a": None}, False, {"b": {"x": 1}}),
        ({"absent": None}, False, {"a": 1, "b": {"x": 1}}),
        ({"b": {"y": 2}}, False, {"a": 1, "b": {"y": 2}}),
        ({}, False, {"a": 1, "b": {"x": 1}}),
        ({"c": 1}, True, {"c": 1}),
        ({}, True, {}),
        ({"c": None}, True, {}),
    ],
)
def test_metadata_is_merged_key_by_key_unless_it_is_replaced(
    core: Core, given: dict[str, Any], replace: bool, left: dict[str, Any]
) -> None:
    id = add(core, "Herons fish", metadata={"a": 1, "b": {"x": 1}}).id
    assert update(core, id, metadata=given, replace_metadata=replace).memory.metadata == left


@each(
    "fields",
    [
        {},
        {"replace_metadata": True},
        {"content": " "},
        {"content": "a\0"},
        {"type": ""},
        {"summary": "\0"},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": "x" * 70_000}},
    ],
)
def test_an_update_of_nothing_or_to_what_cannot_be_is_refused(core: Core, fields: dict[str, Any]) -> None:
    id = add(core, "Herons fish").id
    before = get(core, id)
    with pytest.raises(Invalid):
        update(core, id, **fields)
    assert get(core, id) == before


def test_tags_are_a_list_without_repeats_and_can_be_filtered_and_found(core: Core) -> None:
    id = add(core, "Herons fish").id
    assert tag(core, id, "bird", "water", "bird", project="lake").metadata == {
        "tags": ["bird", "water"],
        "project": "lake",
    }
    assert tag(core, id, "water", "grey").metadata["tags"] == ["bird", "water", "grey"]
    assert found(core, "grey") == ["Herons fish"]
    assert ask(core, List(where={"tags": "grey"})).total == 1
    assert search(core, "herons fish")[0].similarity == pytest.approx(1.0, abs=1e-5)  # tags move no vector


def test_a_delete_is_all_or_none(core: Core) -> None:
    ids = [add(core, f"Note {n}").id for n in range(3)]
    with pytest.raises(NotFound):
        delete(core, ids[0], "0" * 32)
    with pytest.raises(Invalid):
        delete(core, ids[0], "%")
    with pytest.raises(Invalid, match="Give ids of what to delete"):
        delete(core)
    assert ask(core, List()).total == 3
    assert delete(core, ids[0][:12], ids[0], ids[2]).ids == [ids[0], ids[2]]
    assert [memory.id for memory in ask(core, List())] == [ids[1]]
    assert found(core, "note", limit=9) == ["Note 1"]
    assert core.embedding.active is not None
    assert len(core.embedding.active.index) == 1


@pytest.mark.parametrize("change", ["update", "tag", "delete", "get"])
def test_what_is_out_of_reach_cannot_be_changed_by_its_full_id(core: Core, change: str) -> None:
    hers = add(core, "Her plan", "team/her").id
    calls = {
        "update": lambda: update(core, hers, importance=1.0, namespace="team/me"),
        "tag": lambda: ask(core, Tag(id=hers, tags=["x"], namespace="team/me")),
        "delete": lambda: delete(core, hers, namespace="team/me"),
        "get": lambda: reading.get(core, Get(id=hers, namespace="team/me")),
    }
    with pytest.raises(NotFound):
        calls[change]()
    assert get(core, hers).updated_at == get(core, hers).created_at
    assert reading.get(core, Get(id=hers, namespace="team/her/inner")).id == hers
