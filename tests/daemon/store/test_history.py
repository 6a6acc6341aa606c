"""The operation log and undo: every kind of operation, again and again, in conflict, within reach, at random."""

import random
from typing import Any
from unittest.mock import Mock

import pytest

from memoryd.client.errors import AmbiguousId, Conflict, Invalid, NotFound
from memoryd.client.protocol import (
    Get,
    History,
    List,
    Memory,
    NewTurn,
    Observe,
    Operations,
    Tag,
    Undo,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store.actor import Actor, act_as
from workbench import add, add_many, ask, delete, disk_and_memory, undo, update


def everything(core: Core) -> dict[str, Memory]:
    return {memory.id: memory for memory in ask(core, List(all_states=True, limit=1000))}


def operations(core: Core, namespace: str = "") -> list[tuple[str, str, str | None]]:
    return [(o.id, o.kind, o.undone_by) for o in ask(core, Operations(namespace=namespace))]


def test_undoing_a_delete_restores_the_memories_with_their_links(core: Core) -> None:
    old = add(core, "The limit is 30 seconds for every request")
    new = add(core, "The limit is 60 seconds for every request", dedup_threshold=0.5)
    assert new.contradicts == [old.id]
    before = everything(core)
    deleted = delete(core, old.id)
    assert everything(core)[new.id].contradicts == []
    undo(core)
    assert everything(core) == before
    delete(core, old.id, new.id)
    undo(core)
    assert everything(core) == before
    assert deleted.ids == [old.id]


def test_an_operation_cannot_be_undone_twice(core: Core) -> None:
    added = add(core, "first thing")
    undone = undo(core)
    with pytest.raises(Conflict, match=f"undone by operation {undone.operation[:8]};"):
        undo(core, added.operation)
    redone = undo(core, undone.operation)
    with pytest.raises(Conflict, match="undo that operation itself"):
        undo(core, redone.operation)
    assert undo(core, added.operation).ids == [added.id]
    assert everything(core) == {}


def test_what_was_changed_again_since_is_a_conflict_that_names_the_later_operations(core: Core) -> None:
    added = add(core, "first thing")
    later = [update(core, added.id, importance=n / 10).operation for n in (1, 2)]
    with pytest.raises(Conflict, match="undo those first") as refused:
        undo(core, added.operation)
    assert refused.value.data["operations"] == later
    for operation in reversed(later):
        undo(core, operation)
    undo(core, added.operation)
    assert everything(core) == {}


def test_a_change_cannot_be_done_again_once_what_it_changed_was_undone(core: Core) -> None:
    added = add(core, "first thing")
    changed = update(core, added.id, importance=1.0)
    redo = undo(core, changed.operation).operation
    gone = undo(core, added.operation).operation
    with pytest.raises(Conflict) as refused:
        undo(core, redo)
    assert refused.value.data["operations"] == [gone]
    assert everything(core) == {}
    undo(core, gone)
    undo(core, redo)
    assert everything(core)[added.id].importance == 1.0


def test_an_operation_is_named_by_a_prefix_as_a_memory_is(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ["abcd0000" + letter * 24 for letter in "0123"]
    monkeypatch.setattr("secrets.token_hex", Mock(side_effect=ids))
    memories = [f"{number:032x}" for number in range(2)]
    for memory in memories:
        add(core, f"Text of {memory}", id=memory)
    for name in (lambda id: undo(core, id), lambda id: ask(core, History(operation=id))):
        with pytest.raises(AmbiguousId, match="abcd is not unique: abcd0000, abcd0000") as refused:
            name("abcd")
        assert refused.value.data == {"candidates": ids[:2]}
        with pytest.raises(NotFound, match="No operation has an id that begins with abce"):
            name("abce")
        for wrong in ("12", "ABCD", "a" * 33):
            with pytest.raises(Invalid, match="is not an id"):
                name(wrong)
    assert ask(core, History(operation=ids[1][:9])).operation.id == ids[1]
    assert undo(core, ids[0][:9]).undone == ids[0]


def test_a_prefix_says_nothing_of_operations_out_of_reach(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ["abcd" + letter * 28 for letter in "0123"]
    monkeypatch.setattr("secrets.token_hex", Mock(side_effect=ids))
    add(core, "Her plan", "team/her", id="1" * 32)
    add(core, "My plan", "team/me", id="2" * 32)
    assert ask(core, History(operation="abcd", namespace="team/me")).operation.id == ids[1]
    said = []
    for unknown in (ids[0], ids[3]):
        with pytest.raises(NotFound) as refused:
            undo(core, unknown, namespace="team/me")
        said.append(str(refused.value).replace(unknown, ""))
    assert said == ["No operation has an id that begins with ."] * 2
    assert undo(core, "abcd", namespace="team/me").undone == ids[1]


def test_only_what_is_within_reach_as_a_whole_can_be_undone_and_is_listed(core: Core) -> None:
    hers = add(core, "Her plan", "team/her")
    ours = add(core, "Our plan", "team")
    with pytest.raises(NotFound):
        undo(core, hers.operation, namespace="team/me")
    assert [id for id, _, _ in operations(core, "team/me")] == [ours.operation]
    both = delete(core, hers.id, ours.id)
    with pytest.raises(NotFound):
        undo(core, both.operation, namespace="team/me")
    undo(core, both.operation)
    assert set(everything(core)) == {hers.id, ours.id}
    with pytest.raises(NotFound):
        ask(core, Undo(operation=hers.operation, namespace="team/her/inner", reach="exact"))


def test_who_made_an_operation_is_shown_where_it_was_called(core: Core) -> None:
    with act_as(Actor("ci", "s1", "agent.py (7)")):
        added = add(core, "Our plan", "team")
        removed = delete(core, added.id)
    undo(core, removed.operation)
    log = ask(core, Operations())
    assert [(o.token, o.session, o.process) for o in log] == [("", "", ""), *[("ci", "s1", "agent.py (7)")] * 2]
    changes = ask(core, History(id=added.id))
    assert [change.process for change in changes] == ["agent.py (7)", "agent.py (7)", ""]
    seen = ask(core, History(id=added.id, namespace="team", reach="exact"))
    assert [change.process for change in seen] == ["agent.py (7)", "", ""]  # the deletion was called at the root
    listed = ask(core, Operations(namespace="team", reach="exact"))
    assert [operation.token for operation in listed] == ["", "", "ci"]


def test_history_tells_each_change_also_of_a_deleted_memory(core: Core) -> None:
    added = add(core, "first thing", "team")
    update(core, added.id, importance=1.0)
    delete(core, added.id)
    listed = ask(core, History(id=added.id[:8])).changes
    assert [(change.kind, change.action) for change in listed] == [
        ("add", "created"),
        ("update", "updated"),
        ("delete", "deleted"),
    ]
    assert listed[1].changed == {"importance": (0.5, 1.0)}
    assert listed[0].changed["content"] == (None, "first thing")
    assert listed[2].changed["content"] == ("first thing", None)
    with pytest.raises(NotFound):
        ask(core, History(id=added.id, namespace="others"))


def test_an_operation_says_what_it_did_to_each_memory_also_when_later_ones_changed_it_again(core: Core) -> None:
    first = add(core, "Herons fish at dawn", "a")
    changed = update(core, first.id, content="Herons fish at dusk")
    update(core, first.id, pinned=True)
    made = ask(core, History(operation=changed.operation))
    assert (made.operation.kind, made.operation.memories) == ("update", 1)
    [change] = made.changes
    assert (change.id, change.namespace, change.action) == (first.id, "a", "updated")
    assert change.preview == "Herons fish at dusk"
    assert change.changed == {"content": ("Herons fish at dawn", "Herons fish at dusk")}
    gone = delete(core, first.id)
    [change] = ask(core, History(operation=gone.operation))
    assert (change.action, change.preview) == ("deleted", "Herons fish at dusk")
    [change] = ask(core, History(operation=first.operation))
    assert change.action == "created"
    with pytest.raises(NotFound):
        ask(core, History(operation=first.operation, namespace="b"))


def test_the_turns_that_an_operation_deleted_from_l0_are_shown(core: Core) -> None:
    turns = [NewTurn(role="user", content="We deploy the API on Tuesdays")]
    [id] = ask(core, Observe(turns=turns)).ids
    [change] = ask(core, History(operation=delete(core, id).operation))
    assert (change.id, change.action, change.preview) == (id, "deleted", "We deploy the API on Tuesdays")


def test_the_log_is_read_by_time_kind_and_page(core: Core, clock: Any) -> None:
    ids = []
    for word in ("one", "two", "three"):
        ids.append(add(core, word).operation)
        clock.advance(10)
    gone = delete(core, ask(core, List(limit=1)).memories[0].id).operation
    start = clock.now

    def listed(**chosen: Any) -> list[str]:
        return [one.id for one in ask(core, Operations(**chosen))]

    assert listed() == [gone, *ids[::-1]]
    assert listed(offset=1, limit=2) == ids[:0:-1]
    assert listed(before=start - 10) == ids[1::-1]
    assert listed(after=start - 10) == [gone]
    assert listed(kind=["delete"]) == [gone]
    assert listed(kind=["delete", "add"], limit=1, offset=3) == [ids[0]]


@pytest.mark.parametrize("seed", range(2))
def test_undoing_everything_in_turn_leads_back_through_every_state(core: Core, seed: int) -> None:
    """Random operations, each state noted; then undo after undo, with an undo of the undo now and then."""
    dice = random.Random(seed)
    states: list[dict[str, Memory]] = [everything(core)]
    for step in range(40):
        _random_operation(core, dice, step)
        states.append(everything(core))
    assert core.store.find_problems() == []
    for earlier, later in zip(reversed(states[:-1]), reversed(states[1:]), strict=True):
        undone = undo(core)
        assert everything(core) == earlier
        if dice.random() < 0.3:
            undo(core, undone.operation)
            assert everything(core) == later
            undo(core, undone.undone)
            assert everything(core) == earlier
    assert everything(core) == {}
    assert disk_and_memory(core) == ({}, {})
    assert core.store.find_problems() == []


WORDS = ["heron", "egret", "stork", "crane", "ibis", "bittern", "spoonbill", "avocet"]


def _random_operation(core: Core, dice: random.Random, step: int) -> Any:
    known = [memory.id for memory in everything(core).values()]
    alive = [memory.id for memory in everything(core).values() if memory.superseded_by is None]
    text = f"{' '.join(dice.sample(WORDS, 4))} {step % 7}"
    choice = (
        dice.choice(["add", "add", "add_many", "update", "tag", "delete", "supersede", "again"]) if known else "add"
    )
    if choice == "add":
        return add(core, text, dice.choice(["", "a", "a/b"]), metadata={"n": step})
    if choice == "add_many":
        return add_many(core, [f"{text} {n}" for n in range(dice.randrange(1, 4))], dice.choice(["", "a"]))
    if choice == "update":
        return update(core, dice.choice(known), content=text, metadata={"u": step})
    if choice == "tag":
        return ask(core, Tag(id=dice.choice(known), tags=[f"t{step}"]))
    if choice == "delete":
        return delete(core, *dice.sample(known, min(len(known), 2)))
    if choice == "supersede" and alive:
        return add(core, f"{text} anew", supersedes=dice.choice(alive))
    memory = reading.get(core, Get(id=dice.choice(known)))
    return add(core, memory.content.upper(), memory.namespace, type=memory.type)
