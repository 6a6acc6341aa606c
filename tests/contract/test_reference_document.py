"""docs/reference.md has an entry for each method of the clients, which says what the code says."""

from importlib import import_module
from typing import Any

import pytest
from reference_document import PAGE, document, list_errors, sort_methods

from each import each
from memoryd.client import Client, NotFound

UNKNOWN = "f" * 32
# What the methods are called with that take more than an id, or another name for it.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "dismiss_link": {"id": UNKNOWN, "other": UNKNOWN},
    "erase": {"ids": [UNKNOWN]},
    "feedback": {"id": UNKNOWN, "useful": True},
    "flush": {"turns": [{"role": "user", "content": "We deploy on Tuesdays"}], "workspace": "absent"},
    "graph_nodes": {"node": "4711"},
    "index_workspace": {"workspace": "absent"},
    "operation": {"operation": UNKNOWN},
    "pause_job": {"name": "absent"},
    "remember": {"text": "We deploy on Tuesdays", "workspace": "absent"},
    "remove_workspace": {"workspace": "absent"},
    "resume_job": {"name": "absent"},
    "revoke_token": {"name": "absent"},
    "run_job": {"name": "absent"},
    "settle_change": {"id": UNKNOWN, "verdict": "both"},
    "share": {"to": "acme"},
    "undo": {"operation": UNKNOWN},
    "update": {"id": UNKNOWN, "content": "x"},
    "why_not": {"id": UNKNOWN, "query": "x"},
    "workspaces": {"workspace": "absent"},
}
BY_POSITION = ("confirm", "delete", "forget", "share")


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == document(), "run: make protocol"


def test_each_module_of_the_contract_says_its_title() -> None:
    modules = [import_module(name) for name in sort_methods()]
    assert [module.__name__ for module in modules if ": " not in (module.__doc__ or "")] == [], (
        "write: Title: what it is."
    )


@each("name", [name for names in sort_methods().values() for name in names if NotFound in list_errors(name)])
def test_what_is_said_to_raise_not_found_does(name: str, client: Client) -> None:
    ids = [UNKNOWN] if name in BY_POSITION else []
    arguments = ARGUMENTS.get(name, {} if ids else {"id": UNKNOWN})
    with pytest.raises(NotFound):
        getattr(client, name)(*ids, **arguments)
