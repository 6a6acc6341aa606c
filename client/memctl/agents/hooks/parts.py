"""What memoryd writes into an agent's configuration files: entries for the hooks, and one for the MCP server.

A part is a value with three operations on a text: put our entries in, take them out, say which are there. Ours is what
runs `memctl hook … --agent NAME` or `memctl mcp`; no agent is shown a field that it does not know.
"""

import re
import shlex
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from memoryd.client.memctl.agents.hooks import jsontext, tomltext
from memoryd.client.memctl.agents.hooks.hosts import HOSTS
from memoryd.client.memctl.agents.hooks.jsontext import NotJson

SERVER = "memoryd"
_OURS = re.compile(r"(?:^|[/\s'\"])(?:memctl|memoryd\.client\.memctl)['\"]? hook [a-z-]+ --agent ([a-z-]+)\s*$")


class Part(Protocol):
    """Our entries in one text."""

    def added(self, text: str, command: Sequence[str]) -> str:
        """Return a text that has none of our entries with them; raise `NotJson` or `NotToml`."""

    def removed(self, text: str) -> str:
        """Return the text without our entries."""

    def entries(self, text: str) -> list[Any]:
        """Return our entries in the text."""


class Hooks(NamedTuple):
    """The hooks of an agent, in JSON: `hooks.EVENT` is an array of entries, or of groups that hold entries."""

    agent: str
    unit: int = 1  # in which part of a second the agent gives limits
    grouped: bool = True
    head: tuple[tuple[str, Any], ...] = ()  # members that the file must begin with

    def added(self, text: str, command: Sequence[str]) -> str:
        """Return the text with one entry for each event."""
        for key, value in self.head:
            if jsontext.value_at(text, (key,)) is None:
                text = jsontext.add_member(text, (), key, value)
        for event, hook in HOSTS[self.agent].events.items():
            entry = self._entry(shlex.join([*command, "hook", event, "--agent", self.agent]), hook.timeout_s)
            matcher = {"matcher": hook.matcher} if hook.matcher else {}
            text = jsontext.add_element(
                text, ("hooks", hook.name), {**matcher, "hooks": [entry]} if self.grouped else entry
            )
        return text

    def _entry(self, command: str, timeout_s: int) -> dict[str, Any]:
        kind = {"type": "command"} if self.grouped else {}
        name = {"name": SERVER} if self.agent == "gemini" else {}
        return {**kind, **name, "command": command, "timeout": timeout_s * self.unit}

    def removed(self, text: str) -> str:
        """Return the text without our entries, and without what is empty for that."""
        for event in list(_object(jsontext.value_at(text, ("hooks",)))):
            text = self._without(text, event)
        return text

    def _without(self, text: str, event: str) -> str:
        path: jsontext.Path = ("hooks", event)
        before = text
        for at, group in _reverse(jsontext.value_at(text, path)):
            entries = _array(_object(group).get("hooks")) if self.grouped else [group]
            if entries and all(map(self._is_ours, entries)):
                text = jsontext.remove(text, (*path, at))
                continue
            for inner, entry in _reverse(entries):
                if self._is_ours(entry):
                    text = jsontext.remove(text, (*path, at, "hooks", inner))
        return _prune(text, before, path)

    def _is_ours(self, entry: Any) -> bool:
        command = _object(entry).get("command")
        found = _OURS.search(command) if isinstance(command, str) else None
        return found is not None and found[1] == self.agent

    def entries(self, text: str) -> list[Any]:
        """Return our entries, each with its event and matcher, sorted by event: a file may have these in any order."""
        found = []
        for event, given in _object(jsontext.value_at(text, ("hooks",))).items():
            for group in _array(given):
                inner = _array(_object(group).get("hooks")) if self.grouped else [group]
                matcher = _object(group).get("matcher", "")
                found += [(event, matcher, entry) for entry in inner if self._is_ours(entry)]
        return sorted(found, key=itemgetter(0))


class Server(NamedTuple):
    """The MCP server in JSON: a member of `mcpServers`."""

    def added(self, text: str, command: Sequence[str]) -> str:
        """Return the text with the server."""
        if jsontext.value_at(text, ("mcpServers",)) is not None and self._there(text) is not None:
            raise NotJson(f"it has an MCP server of the name {SERVER} that is not this one")
        return jsontext.add_member(text, ("mcpServers",), SERVER, server_entry(command))

    def _there(self, text: str) -> Any:
        return _object(jsontext.value_at(text, ("mcpServers",))).get(SERVER)

    def removed(self, text: str) -> str:
        """Return the text without the server."""
        if not self.entries(text):
            return text
        return _prune(jsontext.remove(text, ("mcpServers", SERVER)), text, ("mcpServers",))

    def entries(self, text: str) -> list[Any]:
        """Return the server, if it is ours."""
        there = self._there(text)
        return [there] if _is_server(there) else []


class TomlServer(NamedTuple):
    """The MCP server in TOML: a block of lines between marks."""

    def added(self, text: str, command: Sequence[str]) -> str:
        """Return the text with the server."""
        return tomltext.add_block(text, self.block(command))

    def block(self, command: Sequence[str]) -> str:
        """Return the lines that make the server known."""
        value = server_entry(command)
        arguments = ", ".join(map(_toml, value["args"]))
        return f"[mcp_servers.{SERVER}]\ncommand = {_toml(value['command'])}\nargs = [{arguments}]\n"

    def removed(self, text: str) -> str:
        """Return the text without the server."""
        return tomltext.remove_block(text)

    def entries(self, text: str) -> list[Any]:
        """Return the server, if it is ours."""
        there = _object(tomltext.parse(text).get("mcp_servers")).get(SERVER)
        return [there] if _is_server(there) and tomltext.BEGIN in text else []


def server_entry(command: Sequence[str]) -> dict[str, Any]:
    """Return how an agent starts the MCP server."""
    return {"command": command[0], "args": [*command[1:], "mcp"]}


def _is_server(value: Any) -> bool:
    arguments = _array(_object(value).get("args"))
    program = str(_object(value).get("command", "")).rpartition("/")[2]
    return arguments[-1:] == ["mcp"] and (program == "memctl" or "memoryd.client.memctl" in arguments)


def _prune(text: str, before: str, path: jsontext.Path) -> str:
    """Return the text without what is empty at a path and the object around it, if something was taken out."""
    while text != before and path and not jsontext.value_at(text, path):
        text, path = jsontext.remove(text, path), path[:-1]
    return text


def _toml(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a basic string is written as in JSON


def _reverse(value: Any) -> list[tuple[int, Any]]:
    """Return the elements of an array with their places, the last one first."""
    return list(enumerate(_array(value)))[::-1]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
