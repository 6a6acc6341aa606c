"""Links of contradiction: listed for who reaches both memories, dismissed, and restored."""

from typing import Any

import pytest

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Disagreements, DismissLink, Done, Get, Links
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store import links as stored
from workbench import add, ask, delete, search, undo, update

FIVE, TEN = "The limit of every request is 5 seconds", "The limit of every request is 10 seconds"


def listed(core: Core, namespace: str = "", limit: int = 20) -> Disagreements:
    return ask(core, Links(namespace=namespace, limit=limit))


def dismiss(core: Core, one: str, other: str, restore: bool = False) -> Done:
    return ask(core, DismissLink(id=one, other=other, restore=restore))


def test_a_link_is_listed_with_both_memories_and_dismissed_for_good(core: Core) -> None:
    assert listed(core).links == []
    old, new = add(core, FIVE).id, add(core, TEN).id
    [link] = listed(core).links
    assert (link.newer.content, link.older.content) == (TEN, FIVE)
    assert {hit.content: hit.contradicts_texts for hit in search(core, "limit")} == {TEN: [FIVE], FIVE: [TEN]}
    assert reading.get(core, Get(id=old)).contradicts_texts == [TEN]
    assert "will not be again" in dismiss(core, old[:8], new).message
    assert listed(core).links == []
    assert [hit.contradicts for hit in search(core, "limit")] == [[], []]
    assert reading.get(core, Get(id=old)).contradicts_texts == []
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


def pairs(core: Core) -> set[tuple[str, str]]:
    """Return the contents of linked memories, newer and older."""
    return {(link.newer.content, link.older.content) for link in listed(core).links}


@pytest.mark.parametrize("edited", ["older", "newer"])
def test_a_link_goes_when_an_edit_takes_its_reason_away(core: Core, edited: str) -> None:
    ids = {"older": add(core, FIVE).id, "newer": add(core, TEN).id}
    update(core, ids[edited], content="The staging server is in Leipzig")
    assert pairs(core) == set()


def test_a_link_goes_when_an_edit_makes_both_say_the_same(core: Core) -> None:
    old = add(core, FIVE).id
    add(core, TEN)
    update(core, old, content=TEN + ".")
    assert pairs(core) == set()


@pytest.mark.parametrize("edited", ["older", "newer"])
def test_an_edit_that_makes_two_disagree_links_them(core: Core, edited: str) -> None:
    vague = "The limit of requests"
    old, new = (vague if edited == which else text for which, text in (("older", FIVE), ("newer", TEN)))
    ids = {"older": add(core, old).id, "newer": add(core, new).id}
    assert pairs(core) == set()
    update(core, ids[edited], content=FIVE if edited == "older" else TEN)
    assert pairs(core) == {(TEN, FIVE)}


def test_undoing_an_edit_brings_its_link_back(core: Core) -> None:
    add(core, FIVE)
    new = add(core, TEN).id
    edit = update(core, new, content="The staging server is in Leipzig").operation
    undo(core, edit)
    assert pairs(core) == {(TEN, FIVE)}


def test_a_link_that_no_rule_gave_a_reason_for_survives_an_edit(core: Core) -> None:
    one, other = add(core, "The office is in Berlin").id, add(core, "Nadia leads the mobile team").id
    core.store.write(lambda t: stored.add(t.connection, one, other, "contradicts", 1.0)).result()
    update(core, one, content="The office is in Bremen")
    assert len(pairs(core)) == 1


@pytest.mark.parametrize(
    ("old", "new", "options"),
    [
        (FIVE, TEN, {"type": "conversation"}),
        (FIVE, TEN, {"metadata": {"speaker": "Nadia"}}),
        (FIVE, TEN, {"metadata": {"role": "assistant"}}),
        (f"Nadia: {FIVE}", f"Nadia: {TEN}", {}),
        (f"Nadia: {FIVE}", TEN, {}),
        (FIVE, f"user: {TEN}", {}),
    ],
)
def test_turns_of_talk_are_never_linked(core: Core, old: str, new: str, options: dict[str, Any]) -> None:
    add(core, old, **options)
    added = add(core, new, **options)
    assert (added.outcome, added.contradicts) == ("created", [])
    update(core, added.id, content=new.replace("10", "12"))
    assert pairs(core) == set()


@pytest.mark.parametrize("gone", ["older", "newer"])
def test_what_is_superseded_disagrees_with_nothing_any_more(core: Core, gone: str) -> None:
    ids = {"older": add(core, FIVE).id, "newer": add(core, TEN).id}
    add(core, "Requests wait as long as their caller says", supersedes=ids[gone])
    assert pairs(core) == set()
    assert [hit.contradicts for hit in search(core, "limit of every request")] == [[], []]
