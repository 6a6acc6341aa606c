"""The namespaces that hold memories: by prefix, within reach."""

from typing import Any

import pytest

from each import each
from memoryd.client.protocol import Namespaces
from memoryd.daemon.core.core import Core
from workbench import add, ask, delete

PLACES = ["", "acme/api/docs", "acme/api/notes", "acme/web/docs", "beta", "beta/docs"]


@pytest.fixture
def filled(core: Core) -> Core:
    for place in PLACES:
        add(core, f"A note of {place}", place)
    add(core, "Another one", "beta")
    return core


def names(core: Core, **fields: Any) -> list[str]:
    return [one.name for one in ask(core, Namespaces(**fields)).namespaces]


@each(
    ("fields", "found"),
    [
        ({}, PLACES),
        ({"prefix": "acme"}, PLACES[1:4]),
        ({"prefix": "ac"}, []),
        ({"prefix": "acme/*/docs"}, ["acme/api/docs", "acme/web/docs"]),
        ({"prefix": "*/*/*/*"}, []),
        ({"limit": 2, "offset": 1}, PLACES[1:3]),
        ({"namespace": "beta", "reach": "exact"}, ["beta"]),
        ({"namespace": "acme", "reach": "subtree"}, PLACES[1:4]),
        ({"namespace": "beta/docs"}, ["", "beta", "beta/docs"]),
        ({"namespace": "nowhere", "reach": "exact"}, []),
    ],
)
def test_namespaces_are_chosen_by_their_parts(filled: Core, fields: dict[str, Any], found: list[str]) -> None:
    assert names(filled, **fields) == found


def test_counts_are_of_living_memories(filled: Core) -> None:
    counts = {one.name: one.memories for one in ask(filled, Namespaces()).namespaces}
    assert counts == dict.fromkeys(PLACES, 1) | {"beta": 2}
    assert ask(filled, Namespaces(limit=2)).total == len(PLACES)


def test_a_namespace_without_memories_is_not_listed(core: Core) -> None:
    assert names(core) == []
    id = add(core, "A note", "acme").id
    add(core, "A note that is over", "beta", expires_at=1.0)
    assert names(core) == ["acme"]
    delete(core, id)
    assert names(core) == []
