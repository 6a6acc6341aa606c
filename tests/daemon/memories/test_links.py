"""Links of contradiction: listed for who reaches both memories, dismissed, and restored."""

import pytest

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Disagreements, DismissLink, Done, Links
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import changing, reading
from memoryd.daemon.store import links as stored
from workbench import LIMIT_S, add, delete, search

FIVE, TEN = "The limit of every request is 5 seconds", "The limit of every request is 10 seconds"


def listed(core: Core, namespace: str = "", limit: int = 20) -> Disagreements:
    return reading.list_links(core, Links(namespace=namespace, limit=limit))


def dismiss(core: Core, one: str, other: str, restore: bool = False) -> Done:
    return changing.dismiss(core, DismissLink(id=one, other=other, restore=restore)).result(LIMIT_S)


def test_a_link_is_listed_with_both_memories_and_dismissed_for_good(core: Core) -> None:
    assert listed(core).links == []
    old, new = add(core, FIVE).id, add(core, TEN).id
    [link] = listed(core).links
    assert (link.newer.content, link.older.content) == (TEN, FIVE)
    assert "will not be again" in dismiss(core, old[:8], new).message
    assert listed(core).links == []
    assert [hit.contradicts for hit in search(core, "limit")] == [[], []]
    with pytest.raises(NotFound, match="are not linked"):
        dismiss(core, old, new)


def test_a_dismissal_is_taken_back_once(core: Core) -> None:
    old, new = add(core, FIVE).id, add(core, TEN).id
    before = listed(core)
    dismiss(core, old, new)
    assert "are linked again" in dismiss(core, old, new, restore=True).message
    assert listed(core) == before
    with pytest.raises(NotFound, match="have no dismissed link"):
        dismiss(core, old, new, restore=True)


def test_who_does_not_reach_both_sees_no_link(core: Core) -> None:
    add(core, FIVE, "a")
    other = add(core, TEN, "a")
    assert len(listed(core, "a").links) == 1
    assert listed(core, "b").links == []
    delete(core, other.id)
    assert listed(core, "a").links == []


def test_a_dismissed_pair_is_not_linked_again_and_others_are(core: Core) -> None:

    old, new, third = add(core, FIVE).id, add(core, TEN).id, add(core, FIVE.replace("5", "20")).id
    dismiss(core, old, new)
    for one, other in ((old, new), (new, old)):
        core.store.write(
            lambda t, one=one, other=other: stored.add(t.connection, one, other, "contradicts", 1.0)
        ).result()
    assert {frozenset((link.newer.id, link.older.id)) for link in listed(core).links} == {
        frozenset((third, old)),
        frozenset((third, new)),
    }
    assert len(listed(core, limit=1).links) == 1
