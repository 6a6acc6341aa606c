"""Turns of L0 are deleted with what was made of them, brought back, shown in the history, and not changed."""

import pytest

from conversing import observe, problems
from memoryd.client.errors import NotFound
from memoryd.client.protocol import Delete, Deleted, Get, History, List
from memoryd.daemon.core.core import Core
from workbench import add, ask, undo

SAID = "The spare key lies below the third flower pot"


def say(core: Core) -> str:
    id = observe(core, SAID, session="s1").turns[0].id
    assert id
    return id


def delete(core: Core, *ids: str) -> Deleted:
    return ask(core, Delete(ids=list(ids)))


def test_the_history_of_a_turn_shows_its_deletion_and_its_return(core: Core) -> None:
    id = say(core)
    assert list(ask(core, History(id=id))) == []
    undo(core, delete(core, id).operation)
    changes = list(ask(core, History(id=id)))
    assert [(change.kind, change.action) for change in changes] == [("delete", "deleted"), ("undo", "created")]
    assert changes[0].changed["content"] == (SAID, None)


def test_what_was_deleted_is_said_to_be_gone_and_how_it_comes_back(core: Core) -> None:
    for id in (say(core), add(core, "The wiki is at port 8081").id):
        operation = delete(core, id).operation[:8]
        with pytest.raises(NotFound, match=f"{id[:8]} is gone since operation {operation} .delete.; `memctl undo"):
            ask(core, Get(id=id[:8]))


def test_what_was_made_of_a_turn_goes_and_comes_back_with_it(core: Core) -> None:
    before = add(core, "Session s1: earlier", created_at=1.0, source="session_summary", metadata={"session": "s1"}).id
    id = say(core)
    made = {"type": "note", "source": "session_summary"}
    summary = add(core, f"Session s1: {SAID}", metadata={"session": "s1"}, **made).id
    other = add(core, f"Session s2, otherwise: {SAID}", metadata={"session": "s2"}, **made).id
    fact = add(core, "A key is below a pot", source="extraction", metadata={"turns": [id]}).id
    gone = delete(core, id)
    assert set(gone.derived) == {summary, fact}
    assert {memory.id for memory in ask(core, List())} == {before, other}
    undo(core, gone.operation)
    assert {memory.id for memory in ask(core, List())} == {before, other, summary, fact}
    assert problems(core) == []
