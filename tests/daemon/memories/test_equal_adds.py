"""What two agents added alike to a shared namespace stays for one when the other takes its add back, or it expires."""

from typing import Any

import pytest

from memoryd.client.errors import Conflict, NotFound
from memoryd.client.protocol import Add, Added, AddMany, Get, NewMemory, Undo, Undone
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store.caller import Caller
from workbench import ask

ONE, OTHER = (Caller("agent", f"acme/{name}", name, name.encode()) for name in ("one", "other"))
TEXT = "The staging database is called heron"
DAY_S = 86400.0


@pytest.fixture(autouse=True)
def _at_home(core: Core) -> None:
    for caller in (ONE, OTHER):
        own = Add(memory=NewMemory(content="A note of its own"), namespace=caller.namespace)
        ask(core, own, caller=caller)


def add(core: Core, caller: Caller, **options: Any) -> Added:
    call = Add(memory=NewMemory(content=TEXT, **options), namespace="acme")
    return ask(core, call, caller=caller)


def undo(core: Core, caller: Caller, operation: str) -> Undone:
    return ask(core, Undo(operation=operation, namespace="acme"), caller=caller)


def is_there(core: Core, id: str) -> bool:
    try:
        reading.get(core, Get(id=id))
    except NotFound:
        return False
    return True


def test_an_undo_does_not_take_what_another_agent_added_as_well(core: Core) -> None:
    first, second = add(core, ONE), add(core, OTHER)
    assert (second.id, second.outcome) == (first.id, "merged")
    with pytest.raises(Conflict, match=f"was added again by {second.operation[:8]} and stays"):
        undo(core, ONE, first.operation)
    assert is_there(core, first.id)
    undo(core, OTHER, second.operation)
    undo(core, ONE, first.operation)
    assert not is_there(core, first.id)


def test_the_same_holds_for_adds_of_many(core: Core) -> None:
    first = add(core, ONE)
    call = AddMany(memories=[NewMemory(content=TEXT)], namespace="acme")
    second = ask(core, call, caller=OTHER)
    assert second.merged == 1
    with pytest.raises(Conflict, match="was added again"):
        undo(core, ONE, first.operation)


def test_the_first_undo_of_the_second_leaves_the_memory_as_the_first_added_it(core: Core) -> None:
    first = add(core, ONE, expires_at=core.clock() + DAY_S)
    before = reading.get(core, Get(id=first.id))
    second = add(core, OTHER)
    undo(core, OTHER, second.operation)
    assert reading.get(core, Get(id=first.id)) == before


@pytest.mark.parametrize(("second", "lasts"), [({}, True), ({"pinned": True}, True), ({"expires_in": 1.0}, False)])
def test_the_longer_life_wins_whoever_may_change_the_memory(core: Core, second: dict[str, Any], lasts: bool) -> None:
    now = core.clock()
    first = add(core, ONE, expires_at=now + 2 * DAY_S)
    if within := second.pop("expires_in", None):
        second["expires_at"] = now + within * DAY_S
    add(core, OTHER, **second)
    memory = reading.get(core, Get(id=first.id))
    assert memory.expires_at == (None if lasts else now + 2 * DAY_S)
