"""Changes of JSON and TOML texts: what is put in can be taken out, and the rest stays as it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd import __version__
from memoryd.client.programs.hooks import jsontext, tomltext
from memoryd.client.programs.hooks.entries import FilePart, Hooks, JsonServer, TomlServer
from memoryd.client.programs.hooks.hosts import HOSTS

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
FOREIGN = st.dictionaries(st.text(), VALUES, max_size=4)
ENTRY = st.fixed_dictionaries({"type": st.just("command"), "command": st.text()})
GROUPS = st.lists(st.fixed_dictionaries({"hooks": st.lists(ENTRY, max_size=2)}), min_size=1, max_size=2)
INDENTS = st.sampled_from([None, 1, 2, 4, "\t"])
PARTS: list[FilePart] = [*map(Hooks, HOSTS), JsonServer()]
COMMAND = ["/opt/a 'b'/memctl"]


@st.composite
def configurations(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A configuration as an agent's user may have it, and how it is written."""
    value = draw(FOREIGN)
    value.pop("hooks", None)
    value.pop("mcpServers", None)
    if draw(st.booleans()):
        names = [event.name for host in HOSTS.values() for event in host.events.values()]
        value["hooks"] = draw(st.dictionaries(st.sampled_from(names), GROUPS, min_size=1, max_size=2))
    if draw(st.booleans()):
        value["mcpServers"] = draw(
            st.dictionaries(st.text().filter(lambda name: name != "memoryd"), FOREIGN, min_size=1)
        )
    text = json.dumps(value, indent=draw(INDENTS), ensure_ascii=draw(st.booleans()))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return value, draw(st.sampled_from(["", "\n", "  \n"])) + text + draw(st.sampled_from(["", "\n"]))


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: getattr(part, "agent", "server"))
@given(configuration=configurations())
def test_any_foreign_configuration_is_preserved(part: FilePart, configuration: tuple[dict[str, Any], str]) -> None:
    value, text = configuration
    made = part.add(text, COMMAND)
    assert part.read_entries(made)
    assert part.read_entries(text) == []
    said = json.loads(made)
    assert {key: said[key] for key in value if key not in ("hooks", "mcpServers")} == {
        key: value[key] for key in value if key not in ("hooks", "mcpServers")
    }
    for event, groups in value.get("hooks", {}).items():
        assert said["hooks"][event][: len(groups)] == groups
    for name, server in value.get("mcpServers", {}).items():
        assert said["mcpServers"][name] == server
    head = dict(part.host.head) if isinstance(part, Hooks) else {}
    assert json.loads(part.remove(made)) == {**head, **value}


@each(
    ("text", "path", "left"),
    [
        ('{"a": 1, "b": 2}', ("a",), '{"b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
        ('{\n  "a": [1, 2, 3]\n}', ("a", 1), '{\n  "a": [1, 3]\n}'),
        ('{"a": [ 1 ]}', ("a", 0), '{"a": []}'),
        ('{"a": 1}', ("b",), '{"a": 1}'),
        ('{"a": {"b": "}],{"}, "c": []}', ("a", "b"), '{"a": {}, "c": []}'),
        ('{"a": 1, "a": 2}', ("a",), '{"a": 1}'),
    ],
)
def test_one_thing_is_taken_out(text: str, path: jsontext.Path, left: str) -> None:
    assert jsontext.remove(text, path) == left


@each("text", ["", "a = 1", "a = 1\n", "\n\n", "[t]\na = 1\r\n", "# only a comment", "a = nan\n"])
def test_a_toml_block_goes_without_a_trace(text: str) -> None:
    part = TomlServer()
    made = part.add(text, COMMAND)
    (entry,) = part.read_entries(made)
    assert (entry["command"], entry["args"], entry["env_vars"][0]) == (COMMAND[0], ["mcp"], "MEMORYD_SOCKET")
    assert part.remove(made) == text
    assert part.add(made, COMMAND) == made


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1))
def test_any_path_is_quoted_for_toml_and_for_the_shell(name: str) -> None:
    import shlex

    command = ["/" + name.replace("\0", "") + "/memctl"]
    assert tomltext.parse(TomlServer().add("", command))["mcp_servers"]["memoryd"]["command"] == command[0]
    text = Hooks("codex").add("{}", command)
    entries = Hooks("codex").read_entries(text)
    assert len(entries) == 6
    assert shlex.split(entries[0][2]["command"])[0] == command[0]


@each(
    ("agent", "folder", "about"),
    [("claude-code", "claude-code", ".claude-plugin"), ("codex", "codex/memoryd", ".codex-plugin")],
)
def test_a_plugin_has_what_an_installation_writes(agent: str, folder: str, about: str) -> None:
    place = Path(__file__).parents[3] / "client/programs/hooks/plugins" / folder
    files = ("hooks/hooks.json", ".mcp.json", f"{about}/plugin.json")
    hooks, server, plugin = (json.loads((place / name).read_text()) for name in files)
    assert hooks == json.loads(Hooks(agent).add("{}", ["memctl"]))
    assert plugin["version"] == __version__
    if agent == "claude-code":
        assert server == json.loads(JsonServer().add("{}", ["memctl"]))
    else:
        assert server["mcpServers"] == tomltext.parse(TomlServer().add("", ["memctl"]))["mcp_servers"]
