"""README.md: what its first example shows, and its table of commands. `test_guides.py` runs its blocks."""

import re
from pathlib import Path

from absent import needs
from guide import read_blocks
from memoryd.client.memctl.commands import list_commands

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_example_finds_its_memory_and_has_a_context() -> None:
    blocks = read_blocks(README)
    assert blocks[0].language == "python"
    first = next(block.text for block in blocks if block.language == "text")
    assert float(first.split()[0]) > 0.5
    assert "<memories>" in first


@needs()
def test_the_table_of_commands_names_every_command() -> None:
    table = README.split("## memctl\n")[1].split("\n\n")[0]
    named = set(re.findall(r"`([^`]+)`", table))
    missing = {name for name in list_commands() if name not in named and f"{name.split()[0]} …" not in named}
    assert missing == set(), "add it to the table of commands in README.md"
    firsts = {name.split()[0] for name in list_commands()}
    assert {name for name in named if name not in list_commands() and name.removesuffix(" …") not in firsts} == set()
