"""Memory as two tools for any agent framework: functions, their JSON schemas, and namespaces from templates.

    from memoryd.client.tools import SCHEMAS, manage_memory, search_memory     # at the project of the folder

    tools = MemoryTools(Client(namespace=namespace(("acme", "{user}"), user="jana")))
    tools.schemas                                  # name, description and parameters (JSON Schema) of each
    tools.call("search_memory", '{"query": "…"}')  # a model's tool call; errors are returned as text for the model

`AsyncMemoryTools` is the same with await for an `AsyncClient`.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memoryd.client.calls import add, search, update
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.prompt_text import say_later
from memoryd.client.protocol import Call, Delete, Hits
from memoryd.client.times import iso
from memoryd.client.transport.sync import Client

if TYPE_CHECKING:
    from memoryd.client.transport.aio import AsyncClient

ACTIONS = ("create", "update", "delete")
MAX_RESULTS = 100
SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "name": "manage_memory",
        "description": "Remember something for later sessions, or correct or remove what is remembered. Use it when "
        "the user states a preference, a decision, a correction or a fact that will matter again. One thing per call, "
        "in a sentence that is understood without this conversation.",
        "parameters": {
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "what to remember; for update the new text"},
                "action": {"type": "string", "enum": list(ACTIONS), "default": "create"},
                "id": {"type": "string", "description": "of the memory to update or delete, as search_memory gives it"},
            },
            "additionalProperties": False,
        },
    },
    {
        "name": "search_memory",
        "description": "Search what was remembered in earlier sessions, by meaning and by words. Use it before asking "
        "the user for something that they may have said before.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what to look for, in plain words"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": 10},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
)


class _ToolCall(NamedTuple):
    """A call, and how its result is described to the model that asked for it."""

    call: Call[Any]
    describe: Callable[[Any], str]


def namespace(template: str | Sequence[str], **values: str) -> tuple[str, ...]:
    """Return the namespace of a template such as `("acme", "{user}", "{agent}")`.

    Raise `Invalid` for a name without a value, and for a value that is empty or has a slash, since it would give
    another namespace.
    """
    parts = template.split("/") if isinstance(template, str) else tuple(template)
    return tuple(re.sub(r"\{(\w*)\}", lambda match: _value(match[1], values), part) for part in parts)


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        names = ", ".join(sorted(values)) or "nothing"
        raise Invalid(f"The namespace needs a value for {{{name}}}; given: {names}.", {"missing": name})
    value = values[name]
    if not isinstance(value, str) or not value.strip() or "/" in value:
        raise Invalid(f"The value {value!r} for {{{name}}} cannot be a part of a namespace.", {"key": name})
    return value


class _Tools:
    """The part that both kinds share: which actions are permitted, and how a model's tool call becomes a call."""

    def __init__(self, actions: Sequence[str]) -> None:
        unknown = [action for action in actions if action not in ACTIONS]
        if unknown or not actions:
            raise Invalid(f"Actions are {', '.join(ACTIONS)}; not {', '.join(unknown) or 'none'}.")
        self._actions = tuple(actions)

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """Name, description and parameters of both tools, with the permitted actions."""
        schemas: list[dict[str, Any]] = json.loads(json.dumps(SCHEMAS))
        action = schemas[0]["parameters"]["properties"]["action"]
        action["enum"] = list(self._actions)
        if "create" not in self._actions:
            del action["default"]
        return schemas

    def _make_order(self, name: str, arguments: Mapping[str, Any] | str) -> _ToolCall:
        """Return the call for a model's tool call; raise `Invalid` if its name or arguments are wrong."""
        makers: dict[str, Callable[..., _ToolCall]] = {
            "manage_memory": self._make_change,
            "search_memory": _make_search,
        }
        if name not in makers:
            raise Invalid(f"There is no tool {name}; there are {', '.join(makers)}.")
        try:
            fields = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
        except (ValueError, TypeError, RecursionError):
            raise Invalid(f"The arguments of {name} are no JSON object.") from None
        known = next(schema for schema in SCHEMAS if schema["name"] == name)["parameters"]["properties"]
        if not isinstance(fields, dict) or not fields.keys() <= known.keys():
            raise Invalid(f"{name} takes {', '.join(known)}.")
        return makers[name](**fields)

    def _make_change(self, content: str | None = None, action: str = "create", id: str | None = None) -> _ToolCall:
        if action not in self._actions:
            raise Invalid(f"The action {action!r} is not permitted; {', '.join(self._actions)} are.")
        if action == "create" and id is not None:
            raise Invalid("A new memory gets its id by itself; leave id out, or use the action update.")
        if action != "create" and not id:
            raise Invalid(f"To {action} a memory, give its id; search_memory finds it.")
        if action == "delete":
            return _ToolCall(Delete(ids=[str(id)]), lambda result: f"deleted memory {result.ids[0]}")
        if not isinstance(content, str):
            raise Invalid(f"To {action} a memory, give its content.")
        if action == "update":
            return _ToolCall(update(str(id), content=content), lambda result: f"updated memory {result.memory.id}")
        return _ToolCall(add(content), _format_added)


def _format_added(result: Any) -> str:
    return f"created memory {result.id}" if result.outcome == "created" else f"known already: memory {result.id}"


def _make_search(query: str = "", limit: int = 10) -> _ToolCall:
    if not isinstance(query, str) or not query.strip():
        raise Invalid("To search, give a query.")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_RESULTS:
        raise Invalid(f"The limit is a number from 1 to {MAX_RESULTS}.")
    return _ToolCall(search(query, limit=limit), _format_hits)


def _format_hits(hits: Hits) -> str:
    """Return hits as JSON for a model to read."""
    items = [
        {
            "id": hit.id,
            "content": hit.content,
            "type": hit.type,
            "created_at": iso(hit.created_at),
            "score": round(hit.score, 3),
            **({"disagrees_with": hit.contradicts_texts} if hit.contradicts else {}),
            **({"later": say_later(hit.later)} if hit.later else {}),
        }
        for hit in hits
    ]
    return json.dumps(items, ensure_ascii=False)


class MemoryTools(_Tools):
    """Both tools on a `Client`, in its namespace. `actions` are those that `manage_memory` permits."""

    def __init__(self, client: Client, actions: Sequence[str] = ACTIONS) -> None:
        super().__init__(actions)
        self._client = client

    def manage_memory(self, content: str | None = None, action: str = "create", id: str | None = None) -> str:
        """Create, update or delete one memory and say so; raise `Invalid` when the arguments do not fit together."""
        return self._run(self._make_change(content, action, id))

    def search_memory(self, query: str, limit: int = 10) -> str:
        """Return the best memories for a query as a JSON list of id, content, type, created_at and score."""
        return self._run(_make_search(query, limit))

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a model's tool call; an error is returned as text that begins with `error:`."""
        try:
            return self._run(self._make_order(name, arguments))
        except MemorydError as error:
            return f"error: {error.message}"

    def _run(self, order: _ToolCall) -> str:
        return order.describe(self._client.call(order.call))


class AsyncMemoryTools(_Tools):
    """Both tools on an `AsyncClient`."""

    def __init__(self, client: "AsyncClient", actions: Sequence[str] = ACTIONS) -> None:
        super().__init__(actions)
        self._client = client

    async def manage_memory(self, content: str | None = None, action: str = "create", id: str | None = None) -> str:
        """Create, update or delete one memory and say so; raise `Invalid` when the arguments do not fit together."""
        return await self._run(self._make_change(content, action, id))

    async def search_memory(self, query: str, limit: int = 10) -> str:
        """Return the best memories for a query as a JSON list of id, content, type, created_at and score."""
        return await self._run(_make_search(query, limit))

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a model's tool call; an error is returned as text that begins with `error:`."""
        try:
            return await self._run(self._make_order(name, arguments))
        except MemorydError as error:
            return f"error: {error.message}"

    async def _run(self, order: _ToolCall) -> str:
        return order.describe(await self._client.call(order.call))


@functools.cache
def _default_tools() -> MemoryTools:
    return MemoryTools(Client())


def manage_memory(content: str | None = None, action: str = "create", id: str | None = None) -> str:
    """Create, update or delete one memory of this process's namespace and say so."""
    return _default_tools().manage_memory(content, action, id)


def search_memory(query: str, limit: int = 10) -> str:
    """Return the best memories for a query as a JSON list of id, content, type, created_at and score."""
    return _default_tools().search_memory(query, limit)
