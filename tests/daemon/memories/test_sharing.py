from typing import Any

import pytest

from each import each
from memoryd.client.errors import AmbiguousId, Conflict, Invalid, NotFound
from memoryd.client.protocol import ExportMemories, Feedback, Get, History, Memory, Share, Shared, Update
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from workbench import add, ask, delete, disk_and_memory, found, insert, undo

PLACE = "acme/api/alpha"


def share(core: Core, *ids: str, to: str, namespace: str = PLACE, **options: Any) -> Shared:
    return ask(core, Share(ids=list(ids), to=to, namespace=namespace, **options))


def get(core: Core, id: str) -> Memory:
    return reading.get(core, Get(id=id))


def links(core: Core, kind: str) -> set[tuple[str, str]]:
    with core.store.reading() as connection:
        return {(a, b) for a, b in connection.execute("SELECT origin, target FROM links WHERE kind = ?", (kind,))}


def test_a_copy_is_a_memory_of_its_own_with_all_that_is_known(core: Core) -> None:
    options = {"metadata": {"team": "api"}, "importance": 0.9, "pinned": True, "created_at": 5.0, "source": "notes"}
    id = add(core, "Deploys are on Tuesday", PLACE, summary="Tuesday", **options).id
    [one] = share(core, id, to="acme")
    copy, original = get(core, one.id), get(core, id)
    assert (one.outcome, one.origin) == ("copied", id)
    assert copy.namespace == "acme"
    assert (copy.content, copy.summary, copy.metadata) == (original.content, "Tuesday", {"team": "api"})
    assert (copy.importance, copy.pinned, copy.created_at, copy.source) == (0.9, True, 5.0, "notes")
    assert links(core, "shared_from") == {(copy.id, id)}
    assert found(core, "Tuesday", namespace="acme/other") == ["Deploys are on Tuesday"]


def test_a_move_keeps_the_id_and_changes_the_namespace(core: Core) -> None:
    id = add(core, "Deploys are on Tuesday", PLACE).id
    shared = share(core, id, to="acme", move=True)
    assert [(one.id, one.outcome) for one in shared] == [(id, "moved")]
    assert get(core, id).namespace == "acme"
    assert found(core, "Tuesday", namespace="acme/other") == ["Deploys are on Tuesday"]
    assert found(core, "Tuesday", namespace=PLACE, reach="exact") == []
    assert disk_and_memory(core)[0] == disk_and_memory(core)[1]


@pytest.mark.parametrize("move", [False, True])
def test_a_share_is_one_operation_that_undo_takes_back(core: Core, move: bool) -> None:
    ids = [add(core, f"The {word} thought", PLACE).id for word in ("quick", "brown", "lazy")]
    before = [get(core, id) for id in ids]
    shared = share(core, *ids, to="acme", move=move)
    assert len(shared) == 3
    undone = undo(core, shared.operation)
    assert [get(core, id) for id in ids] == before
    assert found(core, "thought", namespace="acme", reach="exact") == []
    undo(core, undone.operation)
    assert len(found(core, "thought", namespace="acme", reach="exact")) == 3
    stored, held = disk_and_memory(core)
    assert stored == held


def test_what_the_target_knows_is_merged_as_add_does(core: Core) -> None:
    known = add(core, "Deploys are on Tuesday", "acme", metadata={"by": "ops"}).id
    id = add(core, "deploys are  on Tuesday", PLACE, metadata={"seen": 1}).id
    [one] = share(core, id, to="acme")
    assert (one.id, one.outcome) == (known, "merged")
    assert get(core, known).metadata == {"by": "ops", "seen": 1}
    assert get(core, id).superseded_by is None


def test_a_moved_memory_that_the_target_knows_is_superseded_by_that(core: Core) -> None:
    known = add(core, "Deploys are on Tuesday", "acme").id
    id = add(core, "Deploys are on Tuesday", PLACE).id
    [one] = share(core, id, to="acme", move=True)
    assert (one.id, one.outcome) == (known, "merged")
    assert (get(core, id).namespace, get(core, id).superseded_by) == (PLACE, known)
    assert found(core, "Tuesday", namespace=PLACE) == ["Deploys are on Tuesday"]


@pytest.mark.parametrize("move", [False, True])
def test_what_disagrees_with_the_target_is_kept_and_linked(core: Core, move: bool) -> None:
    there = add(core, "The timeout of a request is 30 s in production", "acme").id
    here = add(core, "The timeout of a request is 60 s in production", PLACE).id
    [one] = share(core, here, to="acme", move=move)
    assert one.outcome == ("moved" if move else "copied")
    assert get(core, there).contradicts == [one.id]
    assert reading.get(core, Get(id=there, namespace="acme/other")).contradicts == [one.id]


def test_a_link_to_what_one_does_not_see_is_like_a_missing_one(core: Core) -> None:
    there = add(core, "The timeout of a request is 30 s in production", "acme").id
    here = add(core, "The timeout of a request is 60 s in production", "acme").id
    share(core, here, to="acme/ops", namespace="", move=True)
    assert reading.get(core, Get(id=there, namespace="acme/api")).contradicts == []
    assert get(core, there).contradicts == [here]


@each("to", ["acme/api/alpha", "acme/api/beta", "acme/api/alpha/in", "other"])
def test_memories_are_shared_outward_only(core: Core, to: str) -> None:
    id = add(core, "Deploys are on Tuesday", PLACE).id
    with pytest.raises(Invalid):
        share(core, id, to=to)
    assert get(core, id).namespace == PLACE


def test_all_are_shared_or_none(core: Core) -> None:
    id = add(core, "Deploys are on Tuesday", PLACE).id
    outer = add(core, "It lies outside", "acme").id
    with pytest.raises(NotFound):
        share(core, id, "d" * 32, to="acme")
    with pytest.raises(Invalid, match="is in acme already"):
        share(core, id, outer, to="acme")
    assert found(core, "Tuesday", namespace="acme") == ["It lies outside"]


def test_nothing_to_share_an_ambiguous_id_and_a_superseded_memory_are_refused(core: Core) -> None:
    with pytest.raises(Invalid, match="Give the ids"):
        share(core, to="acme")
    for last in "01":
        insert(core.store, f"One of two {last}", PLACE, id="abcd" + last * 28)
    with pytest.raises(AmbiguousId):
        share(core, "abcd", to="acme")
    old = add(core, "Deploys are on Tuesday", PLACE).id
    add(core, "Deploys are on Monday now", PLACE, supersedes=old, dedup=False)
    with pytest.raises(Conflict, match="superseded"):
        share(core, old, to="acme")


def test_the_past_of_a_shared_memory_stays_private(core: Core) -> None:
    id = add(core, "A half-baked thought", PLACE).id
    ask(core, Update(id=id, content="Deploys are on Tuesday"))
    share(core, id, to="acme", move=True)
    seen = ask(core, History(id=id, namespace="acme/beta"))
    assert [(change.kind, change.action) for change in seen] == [("share", "created")]
    assert "half-baked" not in str(seen)
    assert [change.kind for change in ask(core, History(id=id))] == ["add", "update", "share"]


@pytest.mark.parametrize("move", [False, True])
def test_what_was_said_beside_a_shared_memory_stays_private(core: Core, move: bool) -> None:
    id = add(core, "It is blue", PLACE, neighbours=["My salary is nobody's business"]).id
    [one], operation = (shared := share(core, id, to="acme", move=move)).memories, shared.operation
    records = ask(core, ExportMemories(namespace="acme/beta")).records
    assert [(record.id, record.neighbours) for record in records] == [(one.id, "")]
    with core.store.reading() as connection:
        texts = "SELECT c.content FROM contexts c JOIN memories m ON m.row = c.memory WHERE m.id = ?"
        assert connection.execute(texts, (one.id,)).get is None
    undo(core, operation)
    [back] = ask(core, ExportMemories(namespace=PLACE)).records
    assert back.neighbours == "My salary is nobody's business"


@pytest.mark.parametrize("is_known", [False, True])
def test_why_a_moved_memory_was_found_useful_stays_private(core: Core, is_known: bool) -> None:
    if is_known:
        add(core, "Deploys are on Tuesday", "acme")
    id = add(core, "Deploys are on Tuesday", PLACE).id
    ask(core, Feedback(id=id, useful=True, note="Kim was sick", namespace=PLACE))
    [one], operation = (shared := share(core, id, to="acme", move=True)).memories, shared.operation
    [there] = ask(core, ExportMemories(namespace="acme/beta")).records
    assert [(vote.useful, vote.note) for vote in there.votes] == [(True, "")]
    assert (there.id == id, one.outcome) == ((False, "merged") if is_known else (True, "moved"))
    assert (found := get(core, there.id).usefulness) is not None
    assert (found.useful, found.notes) == (1, [])
    undo(core, operation)
    back = get(core, id).usefulness
    assert back is not None
    assert back.notes == ["Kim was sick"]


def test_the_history_of_a_deleted_memory_that_was_shared_for_a_while(core: Core) -> None:
    id = add(core, "Deploys are on Tuesday", PLACE).id
    operation = share(core, id, to="acme", move=True).operation
    undo(core, operation)
    delete(core, id)
    seen = ask(core, History(id=id, namespace=PLACE))
    assert [change.kind for change in seen] == ["add", "share", "undo", "delete"]
    assert [change.action for change in ask(core, History(id=id, namespace=PLACE, reach="exact"))] == [
        "created",
        "deleted",
        "created",
        "deleted",
    ]
    with pytest.raises(NotFound):
        ask(core, History(id=id, namespace="acme/beta"))
