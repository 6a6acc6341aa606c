"""The namespaces that hold memories: by prefix, within reach."""

from typing import Any

import pytest

from each import each
from memoryd.client.protocol import Namespaces
from memoryd.daemon.core.core import Core
from workbench import add, ask

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
