"""The entries that memoryd writes into an agent's configuration files: for the hooks, and for the MCP server.

Each part has three operations on a text: add our entries to a text without them (or raise `NotJson`, `NotToml` or
`NotOurs`), remove them, and list them. An entry is ours if it runs `memctl hook … --agent NAME` or `memctl mcp`; it has
only fields that the agent knows.
"""

import json
import re
import shlex
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.programs.hooks import jsontext, tomltext
from memoryd.client.programs.hooks.hosts import HOSTS, Host
from memoryd.client.programs.hooks.jsontext import NotJson

SERVER = "memoryd"
_OURS = re.compile(
    r"(?:^|[/\s'\"])(?:memctl|memoryd\.client\.(?:programs\.)?memctl)['\"]? hook [a-z-]+ --agent ([a-z-]+)\s*$"
)


class Hooks(NamedTuple):
    """The hooks of an agent, in JSON: `hooks.EVENT` is an array of entries, or of groups with entries."""

    agent: str

    @property
    def host(self) -> Host:
        """The agent's row."""
        return HOSTS[self.agent]

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the text with one entry for each event."""
        for key, value in self.host.head:
            if jsontext.value_at(text, (key,)) is None:
                text = jsontext.add_member(text, (), key, value)
        kind = {} if self.host.flat else {"type": "command"}
        name = {"name": SERVER} if self.host.named else {}
        for event, hook in self.host.events.items():
            own = shlex.join([*command, "hook", event, "--agent", self.agent])
            entry: dict[str, Any] = {**kind, **name, "command": own, "timeout": hook.timeout_s * self.host.unit}
            if not self.host.flat:
                entry = {**({"matcher": hook.matcher} if hook.matcher else {}), "hooks": [entry]}
            text = jsontext.add_element(text, ("hooks", hook.name), entry)
        return text

    def remove(self, text: str, former: str = "{}") -> str:
        """Remove our entries, and then empty containers unless they are in `former`."""
        for event in list(_read_object(jsontext.value_at(text, ("hooks",)))):
            text = self._remove_event(text, event, former)
        return text

    def _remove_event(self, text: str, event: str, former: str) -> str:
        path: jsontext.Path = ("hooks", event)
        before = text
        for at, group in _reverse(jsontext.value_at(text, path)):
            entries = [group] if self.host.flat else _read_array(_read_object(group).get("hooks"))
            if entries and all(map(self._is_ours, entries)):
                text = jsontext.remove(text, (*path, at))
                continue
            for inner, entry in _reverse(entries):
                if self._is_ours(entry):
                    text = jsontext.remove(text, (*path, at, "hooks", inner))
        return _prune(text, before, path, former)

    def _is_ours(self, entry: Any) -> bool:
        command = _read_object(entry).get("command")
        match = _OURS.search(command) if isinstance(command, str) else None
        return match is not None and match[1] == self.agent

    def read_entries(self, text: str) -> list[Any]:
        """Return our entries with their events and matchers, sorted by event, since their order may vary."""
        entries = []
        for event, groups in _read_object(jsontext.value_at(text, ("hooks",))).items():
            for group in _read_array(groups):
                inner = [group] if self.host.flat else _read_array(_read_object(group).get("hooks"))
                matcher = _read_object(group).get("matcher", "")
                entries += [(event, matcher, entry) for entry in inner if self._is_ours(entry)]
        return sorted(entries, key=itemgetter(0))


class JsonServer(NamedTuple):
    """The MCP server in JSON: a member of `mcpServers`."""

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the text with the server."""
        if self._find_server(text) is not None:
            raise NotJson(f"it has an MCP server of the name {SERVER} that is not this one")
        return jsontext.add_member(text, ("mcpServers",), SERVER, build_server_entry(command))

    def _find_server(self, text: str) -> Any:
        return _read_object(jsontext.value_at(text, ("mcpServers",))).get(SERVER)

    def remove(self, text: str, former: str = "{}") -> str:
        """Remove the server, and containers that are empty then unless they are in `former`."""
        if not self.read_entries(text):
            return text
        return _prune(jsontext.remove(text, ("mcpServers", SERVER)), text, ("mcpServers",), former)

    def read_entries(self, text: str) -> list[Any]:
        """Return the server, if it is ours."""
        there = self._find_server(text)
        return [there] if _is_server(there) else []


# Codex passes few variables to servers; without these its tools would talk to another daemon than its hooks.
_PASSED_ON = tuple(f"MEMORYD_{name}" for name in ("SOCKET", "DATA_DIR", "CONFIG", "TOKEN", "NAMESPACE", "MODEL_DIR"))


class TomlServer(NamedTuple):
    """The MCP server in TOML: a block of lines between marks."""

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the text with the server."""
        entry = build_server_entry(command)
        arguments, passed_on = (", ".join(map(_format_toml, words)) for words in (entry["args"], _PASSED_ON))
        table = f"[mcp_servers.{SERVER}]\ncommand = {_format_toml(entry['command'])}\nargs = [{arguments}]\n"
        return tomltext.add_block(text, f"{table}env_vars = [{passed_on}]\n")

    def remove(self, text: str, former: str = "") -> str:
        """Return the text without the server."""
        return tomltext.remove_block(text)

    def read_entries(self, text: str) -> list[Any]:
        """Return the server, if it is ours."""
        there = _read_object(tomltext.parse(text).get("mcp_servers")).get(SERVER)
        is_marked = tomltext.BEGIN in text or tomltext.END in text
        return [there] if is_marked and _is_server(there) else []


class NotOurs(Exception):
    """The whole file should be ours, but memctl did not write it; the message has no full stop."""


class Plugin(NamedTuple):
    """A file that is entirely ours: JavaScript that passes the agent's events to `memctl hook`."""

    agent: str

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the content of the file; `text` must be empty."""
        if text:
            raise NotOurs("it is not a file that memctl wrote")
        folder = Path(__file__).with_name("plugins")
        hook, agent = ((folder / f"{name}.js").read_text(encoding="utf-8") for name in ("hook", self.agent))
        hook = hook.replace('["memctl"]', json.dumps(list(command), ensure_ascii=False), 1)
        return f"{self._title}; `memctl hooks uninstall {self.agent}` deletes it.\n{hook}{agent}"

    def remove(self, text: str, former: str = "") -> str:
        """Return an empty text for a file that is ours, else the text."""
        return "" if self.read_entries(text) else text

    def read_entries(self, text: str) -> list[Any]:
        """Return the whole file, if it is ours."""
        return [text] if text.startswith(self._title) else []

    @property
    def _title(self) -> str:
        return f"// Written by `memctl hooks install {self.agent}`"


FilePart = Hooks | JsonServer | TomlServer | Plugin


def build_server_entry(command: Sequence[str]) -> dict[str, Any]:
    """Return the entry with which an agent starts the MCP server."""
    return {"command": command[0], "args": [*command[1:], "mcp"]}


def _is_server(value: Any) -> bool:
    arguments = _read_array(_read_object(value).get("args"))
    program = str(_read_object(value).get("command", "")).rpartition("/")[2]
    return arguments[-1:] == ["mcp"] and (program == "memctl" or "memoryd.client.programs.memctl" in arguments)


def _prune(text: str, before: str, path: jsontext.Path, former: str) -> str:
    """Remove empty containers at a path and above it unless they are in `former`, if the text has changed."""
    while text != before and path and not jsontext.value_at(text, path) and not _is_there(former, path):
        text, path = jsontext.remove(text, path), path[:-1]
    return text


def _is_there(text: str, path: jsontext.Path) -> bool:
    try:
        return jsontext.value_at(text, path) is not None
    except NotJson:
        return False


def _format_toml(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a basic string is written as in JSON


def _reverse(value: Any) -> list[tuple[int, Any]]:
    """Return the elements of an array with their indexes, the last one first."""
    return list(enumerate(_read_array(value)))[::-1]


def _read_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
