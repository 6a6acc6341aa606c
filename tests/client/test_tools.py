"""Tools for agent frameworks: what a model may ask, what it is told, whose namespace it is."""

import json
from typing import Any

import pytest

from each import each
from memoryd.client import AsyncClient, Client, Invalid, NotFound, tools
from memoryd.client.tools import AsyncMemoryTools, MemoryTools, namespace


@pytest.fixture
def made(client: Client) -> MemoryTools:
    return MemoryTools(client)


def id_of(reply: str) -> str:
    return reply.rsplit(" ", 1)[1]


def test_a_memory_is_created_found_updated_and_deleted(made: MemoryTools) -> None:
    reply = made.manage_memory("We use Valkey")
    assert reply.startswith("created memory ")
    [hit] = json.loads(made.search_memory("valkey"))
    assert hit.keys() == {"id", "content", "type", "created_at", "score"}
    assert (hit["id"], hit["content"]) == (id_of(reply), "We use Valkey")
    assert made.manage_memory("We use Redis", "update", hit["id"]) == f"updated memory {hit['id']}"
    assert [hit["content"] for hit in json.loads(made.search_memory("redis"))] == ["We use Redis"]
    assert made.manage_memory(action="delete", id=hit["id"]) == f"deleted memory {hit['id']}"
    assert json.loads(made.search_memory("redis")) == []


@each(
    ("arguments", "sentence"),
    [
        ({}, "give its content"),
        ({"content": 5}, "give its content"),
        ({"content": "x", "id": "abcd"}, "leave id out"),
        ({"action": "update", "content": "x"}, "give its id"),
        ({"action": "update", "id": "abcd"}, "give its content"),
        ({"action": "delete"}, "give its id"),
        ({"action": "drop"}, "not permitted"),
    ],
)
def test_what_does_not_fit_together_is_refused(made: MemoryTools, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        made.manage_memory(**arguments)
    assert sentence in made.call("manage_memory", arguments)


@each("limit", [0, -1, 101, True, "5", 2.5])
def test_a_limit_is_a_number_within_bounds(made: MemoryTools, limit: Any) -> None:
    with pytest.raises(Invalid, match="from 1 to 100"):
        made.search_memory("x", limit)


@each(
    ("name", "arguments", "sentence"),
    [
        ("forget", "{}", "no tool forget"),
        ("search_memory", "{", "no JSON object"),
        ("search_memory", "[" * 100_000, "no JSON object"),
        ("search_memory", "[]", "takes query, limit"),
        ("search_memory", {"query": "x", "user": "y"}, "takes query, limit"),
        ("search_memory", "", "give a query"),
        ("manage_memory", {"action": "delete", "id": "abcd"}, "No memory has an id that begins with abcd"),
    ],
)
def test_a_models_mistake_comes_back_as_text(made: MemoryTools, name: str, arguments: Any, sentence: str) -> None:
    reply = made.call(name, arguments)
    assert reply.startswith("error: ")
    assert sentence in reply


def test_only_permitted_actions_are_offered_and_done(client: Client) -> None:
    made = MemoryTools(client, actions=("create",))
    assert made.schemas[0]["parameters"]["properties"]["action"]["enum"] == ["create"]
    with pytest.raises(Invalid, match="not permitted"):
        made.manage_memory(action="delete", id="abcd")
    assert tools.SCHEMAS[0]["parameters"]["properties"]["action"]["enum"] == ["create", "update", "delete"]
    for wrong in ((), ("create", "drop")):
        with pytest.raises(Invalid, match="Actions are"):
            MemoryTools(client, actions=wrong)


def test_schemas_name_the_functions_and_their_parameters(made: MemoryTools) -> None:
    for schema in made.schemas:
        function = getattr(made, schema["name"])
        names = list(function.__code__.co_varnames[1 : function.__code__.co_argcount])
        assert names == list(schema["parameters"]["properties"])


async def test_the_same_with_await(daemon: Any) -> None:
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        made = AsyncMemoryTools(client)
        id = id_of(await made.manage_memory("We use Valkey"))
        assert id in await made.search_memory("valkey")
        assert await made.call("manage_memory", {"action": "delete", "id": id}) == f"deleted memory {id}"
        assert (await made.call("search_memory", "{")).startswith("error: ")
        with pytest.raises(NotFound):
            await made.manage_memory(action="delete", id=id)


def test_the_functions_of_the_module_use_the_namespace_of_the_process(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(daemon.socket))
    monkeypatch.setenv("MEMORYD_NAMESPACE", "acme/jana")
    tools._default_tools.cache_clear()
    try:
        id = id_of(tools.manage_memory("We use Valkey"))
        assert id in tools.search_memory("valkey")
        with daemon.client() as memory:
            assert memory.get(id).namespace == "acme/jana"
    finally:
        tools._default_tools()._client.close()
        tools._default_tools.cache_clear()


def test_a_template_becomes_a_namespace() -> None:
    assert namespace(("acme", "{user}", "{agent}"), user="jana", agent="coder") == ("acme", "jana", "coder")
    assert namespace("acme/team-{team}", team="7", other="unused") == ("acme", "team-7")
    assert namespace(("acme",)) == ("acme",)


def test_a_template_without_its_value_names_the_missing_key() -> None:
    with pytest.raises(Invalid, match=r"needs a value for \{agent\}; given: user") as caught:
        namespace(("acme", "{user}", "{agent}"), user="jana")
    assert caught.value.data == {"missing": "agent"}


@each("value", ["", " ", "jana/secret", "../jana", None])
def test_a_value_cannot_lead_into_another_namespace(value: Any) -> None:
    with pytest.raises(Invalid, match="cannot be a part"):
        namespace(("acme", "{user}"), user=value)
