"""What `--help` shows: examples that work, within 80 columns, every argument explained."""

import argparse
import ast
import re
from pathlib import Path

import pytest
from fake_daemon import Memctl

import memoryd.client as client_package
from each import each
from memoryd.client.programs.memctl.arguments import command_of
from memoryd.client.programs.memctl.commands import GROUPS, list_commands

NARROW = 80


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.client.programs.memctl.arguments.columns", lambda: NARROW)


@each("name", sorted(list_commands()))
def test_every_argument_is_explained(name: str) -> None:
    actions = command_of(name)[1]._actions
    assert [action.dest for action in actions if not action.help] == []
    metavars = [action for action in actions if action.nargs != 0 and not action.choices]
    assert [action.dest for action in metavars if not action.metavar and action.help != argparse.SUPPRESS] == []


def test_the_help_of_memctl_fits_a_narrow_terminal(memctl: Memctl) -> None:
    brief, text = memctl("--help").out, memctl("--help", "--all").out
    assert [line for line in f"{brief}{text}".splitlines() if len(line) > NARROW] == []
    assert all(f"\n{group}:\n" in text for group in GROUPS)
    assert (memctl("help").out, memctl("help", "--all").out) == (brief, text)
    assert len(brief.splitlines()) < 40
    assert "All commands: memctl help --all" in brief


def test_the_help_of_a_command_leaves_rare_options_out_unless_all_are_wanted(memctl: Memctl) -> None:
    brief, text = memctl("search", "--help").out, memctl("search", "--help", "--all").out
    assert memctl("help", "search").out == brief
    assert re.findall(r"(?m)^  (--[a-z-]+)", brief) == [
        *("--all", "--limit", "--reach", "--type", "--where", "--after", "--before", "--on", "--namespace", "--json")
    ]
    assert brief.endswith("\n11 more options: memctl search --help --all\n")
    assert re.findall(r"(?m)^  (--[a-z-]+)", text)[:3] == ["--like", "--all", "--limit"]
    assert "more options" not in text


@each("first", sorted({name.split()[0] for name in list_commands() if " " in name}))
def test_the_help_of_a_command_with_verbs_fits_a_narrow_terminal(first: str, memctl: Memctl) -> None:
    text = memctl(first, "--help").out
    assert [line for line in text.splitlines() if len(line) > NARROW] == []


def test_each_command_of_a_module_has_its_row_in_the_table_and_each_row_its_command() -> None:
    folder = Path(str(client_package.__file__)).parent / "programs"
    rows = {(f"{row.folder}.{row.module}", name) for name, row in list_commands().items()}
    commands = _commands_in(folder)
    assert commands - rows == set(), "give each of these a row in client/programs/memctl/commands.py"
    assert rows - commands == set(), "give each of these a row in COMMANDS of its module"


def _commands_in(folder: Path) -> set[tuple[str, str]]:
    """Return (module, name) of each key of a dict named COMMANDS in the modules of the client."""
    found = set()
    for path in folder.rglob("*.py"):
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text()
        for node in ast.parse(text).body if "COMMANDS" in text else []:
            names = {ast.unparse(target) for target in getattr(node, "targets", [])}
            if isinstance(node, ast.Assign) and "COMMANDS" in names and isinstance(node.value, ast.Dict):
                found |= {(module, str(ast.literal_eval(key))) for key in node.value.keys if key}
    return found
