"""README.md: what its first sessions show, how it is installed, its commands. `test_guides.py` runs its blocks."""

import re
from pathlib import Path

import memoryd
from guide import read_blocks
from memoryd.client.programs.memctl.commands import list_commands

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_second_session_is_given_what_was_decided_in_the_first() -> None:
    first, second = (block for block in read_blocks(README) if block.title.startswith("Claude Code"))
    assert any("Valkey" in line for line in first.lines if line.startswith("> "))
    assert any("Valkey" in line for line in second.lines if line.startswith("⎿ "))


def test_what_is_installed_is_what_a_release_of_this_version_builds() -> None:
    names = re.findall(r"dist/([\w.-]+?\.(?:whl|tar\.gz))", README)
    version = memoryd.__version__
    assert set(names) == {f"memoryd-{version}-py3-none-any.whl", f"memoryd-{version}.tar.gz"}


def test_the_table_of_commands_names_every_command() -> None:
    table = README.split("## memctl\n")[1].split("\n\n")[0]
    named = set(re.findall(r"`([^`]+)`", table))
    missing = {name for name in list_commands() if name not in named and f"{name.split()[0]} …" not in named}
    assert missing == set(), "add it to the table of commands in README.md"
    firsts = {name.split()[0] for name in list_commands()}
    assert {name for name in named if name not in list_commands() and name.removesuffix(" …") not in firsts} == set()
