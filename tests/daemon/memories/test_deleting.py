"""Deleting by filter: what is left, what stays, one undo, a dry run, who may."""

from typing import Any

import pytest

from each import each
from memoryd.client.errors import Forbidden, Invalid, StorageFailed
from memoryd.client.protocol import Delete, Deleted, List, NewMemory, NewTurn, Observe
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import deleting
from memoryd.daemon.store.caller import USER, Caller
from workbench import add, add_many, ask, search, undo


def delete_by(core: Core, caller: Caller = USER, **fields: Any) -> Deleted:
    return ask(core, Delete(**fields), caller=caller)


def count(core: Core, **fields: Any) -> int:
    return ask(core, List(**fields)).total


def fill(core: Core, count: int) -> Core:
    add_many(core, [NewMemory(content=f"note {n} on herons", metadata={"n": n}) for n in range(count)])
    return core


@pytest.fixture
def filled(core: Core) -> Core:
    """More than are deleted in one part."""
    return fill(core, 450)


@pytest.fixture
def few(core: Core) -> Core:
    return fill(core, 12)


@pytest.mark.slow
def test_what_a_filter_leaves_is_deleted_in_parts_and_one_undo_brings_it_back(filled: Core) -> None:
    before = list(ask(filled, List(limit=1000)))
    done = delete_by(filled, where={"n": {"$gte": 10}})
    assert (done.count, done.documents, done.dry_run) == (440, 0, False)
    assert count(filled) == 10
    found = search(filled, "herons", limit=50, touch=False)
    assert {hit.content for hit in found} == {f"note {n} on herons" for n in range(10)}
    undo(filled, done.operation)
    assert list(ask(filled, List(limit=1000))) == before
    assert len(search(filled, "herons", limit=50)) == 50


def test_a_dry_run_names_what_it_would_delete_and_deletes_nothing(few: Core) -> None:
    dry = delete_by(few, where={"n": {"$in": [3, 1]}}, dry_run=True)
    listed = list(ask(few, List(ids=dry.ids)))
    assert (dry.count, dry.operation, dry.dry_run) == (2, None, True)
    assert {memory.metadata["n"] for memory in listed} == {1, 3}
    assert count(few) == 12


def test_a_delete_without_any_filter_is_refused(few: Core) -> None:
    with pytest.raises(Invalid, match="Give ids of what to delete, or a filter"):
        delete_by(few, namespace="", reach="all")
    assert count(few) == 12


def test_turns_in_l0_are_deleted_too_and_come_back(core: Core) -> None:
    turns = [NewTurn(role="user", content=text) for text in ("The heron is blue", "The stork is white")]
    ask(core, Observe(turns=turns, session="s1"))
    add(core, "About storks", metadata={"session": "s1", "role": "note"})
    dry = delete_by(core, where={"session": "s1", "role": {"$ne": "note"}}, dry_run=True)
    done = delete_by(core, where={"session": "s1"})
    assert (dry.count, done.count) == (2, 3)
    assert not search(core, "heron stork").hits
    undo(core, done.operation)
    assert len(search(core, "heron stork").hits) == 3


def test_reach_is_the_namespace_and_what_is_in_it_unless_it_is_given(core: Core) -> None:
    for place in ("acme", "acme/api", "acme/api/alpha"):
        add(core, f"A note of {place}", place, metadata={"old": True})
    assert delete_by(core, namespace="acme/api", where={"old": True}, dry_run=True).count == 2
    assert delete_by(core, namespace="acme/api", where={"old": True}, reach="visible", dry_run=True).count == 2
    assert delete_by(core, namespace="acme/api", where={"old": True}, reach="exact").count == 1


def test_an_agent_deletes_what_is_its_own_or_nothing(core: Core) -> None:
    for place in ("acme", "acme/api"):
        add(core, f"A note of {place}", place, metadata={"old": True})
    agent = Caller("agent", "acme/api")
    with pytest.raises(Forbidden):
        delete_by(core, agent, namespace="acme/api", where={"old": True}, reach="visible")
    assert count(core) == 2
    assert delete_by(core, agent, namespace="acme/api", where={"old": True}).count == 1


@pytest.mark.slow
def test_an_error_in_the_middle_says_how_much_is_deleted(filled: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = deleting.delete_found, []

    def fail_later(*args: Any) -> None:
        calls.append(args)
        if len(calls) > 1:
            raise StorageFailed("The disk is full.")
        real(*args)

    monkeypatch.setattr(deleting, "delete_found", fail_later)
    with pytest.raises(StorageFailed, match="first 200 of 450 are deleted") as caught:
        delete_by(filled, where={"n": {"$gte": 0}})
    assert caught.value.data["deleted"] == 200
    undo(filled, caught.value.data["operations"][0])
    assert count(filled) == 450


def test_a_place_that_is_named_outright_is_a_filter(few: Core) -> None:
    for place in ("acme", "acme/api"):
        add_many(few, [NewMemory(content=f"storks of {place}")], namespace=place)
    for empty in ({"namespace": "acme"}, {"namespace": "acme", "reach": "visible"}, {"reach": "subtree"}):
        with pytest.raises(Invalid, match="Give ids of what to delete, or a filter"):
            delete_by(few, **empty)
    assert delete_by(few, namespace="acme", reach="exact").count == 1
    assert delete_by(few, namespace="acme", reach="subtree").count == 1
    assert count(few) == 12


@each("more", [{"type": ["fact"]}, {"where": {"n": 1}}, {"dry_run": True}, {"all_states": True}])
def test_ids_and_a_filter_are_not_given_together(few: Core, more: dict[str, Any]) -> None:
    id = ask(few, List(limit=1)).memories[0].id
    with pytest.raises(Invalid, match="not both"):
        delete_by(few, ids=[id], **more)
    assert count(few) == 12
