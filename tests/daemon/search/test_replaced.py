"""What replaced a memory is found by the words of that memory, and the memory itself is not."""

from typing import Any

import pytest

from memoryd.client.protocol import Search
from memoryd.daemon.core.core import Core
from workbench import add, ask, delete, search

QUESTION = "herons fish at dawn"


def replace(core: Core, *texts: str, **fields: Any) -> list[str]:
    """Add memories of which each supersedes the one before; return their ids."""
    ids: list[str] = []
    for text in texts:
        ids.append(add(core, text, supersedes=ids[-1] if ids else None, **fields).id)
    return ids


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_a_question_that_fits_the_superseded_text_finds_its_successor(core: Core, mode: Any) -> None:
    old, new = replace(core, QUESTION, "storks took over")
    add(core, "cranes dance")
    hit = search(core, QUESTION, mode=mode).hits[0]
    assert (hit.id, hit.newer_than) == (new, old)
    assert hit.confidence > (0.1 if mode == "dense" else 0.5)
    assert old not in {one.id for one in search(core, QUESTION, mode=mode).hits}


def test_of_a_chain_the_last_is_found_and_when_it_is_deleted_the_one_before(core: Core) -> None:
    first, second, last = replace(core, QUESTION, "storks took over", "now it is cranes")
    assert [(hit.id, hit.newer_than) for hit in search(core, QUESTION, floor=0.5).hits] == [(last, first)]
    delete(core, last)
    assert [hit.id for hit in search(core, QUESTION, floor=0.5).hits] == [second]


def test_what_the_caller_does_not_see_speaks_for_nothing(core: Core) -> None:
    old = add(core, QUESTION, "acme/api")
    new = add(core, "storks took over", supersedes=old.id, reach="all")
    assert search(core, QUESTION, floor=0.5).hits[0].id == new.id
    assert search(core, QUESTION, namespace="acme/web", floor=0.5).hits == []


def test_filters_are_about_the_successor(core: Core) -> None:
    replace(core, QUESTION, "storks took over")
    assert search(core, QUESTION, type=["lesson"]).hits == []
    assert len(search(core, QUESTION, type=["fact"]).hits) == 1


def test_it_is_counted_in_the_trace(core: Core) -> None:
    replace(core, QUESTION, "storks took over")
    stages = ask(core, Search(query=QUESTION, explain=True)).explanation.stages
    [stage] = [one for one in stages if one.name == "replaced"]
    assert (stage.notes, stage.left) == ({"formers": 1}, 1)
