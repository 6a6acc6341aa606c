"""README and the guides: their blocks are run in order as a reader would, and show what really comes out."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from each import each
from guide import CHECKOUT, NOT_RUN, Reader, is_like, list_commands, read_blocks, replay
from memoryd.client.programs.memctl import commands
from memoryd.client.programs.memctl.arguments import parse

PAGES = {
    str(path.relative_to(CHECKOUT)): path.read_text()
    for path in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md")))
}
# Pages whose blocks another test runs, and which one.
ELSEWHERE = {
    "docs/anthropic.md": "tests/integrations/test_on_packages.py",
    "docs/containers.md": "tests/e2e/test_elsewhere.py",
    "docs/langgraph.md": "tests/integrations/test_on_packages.py",
    "docs/machines.md": "tests/e2e/test_elsewhere.py",
    "docs/openai-agents.md": "tests/integrations/test_on_packages.py",
    "docs/sharing.md": "tests/daemon/shared/test_joining.py",
}
_RUN_HERE = [name for name, page in PAGES.items() if name not in ELSEWHERE and read_blocks(page)]


@pytest.fixture
def reader(folder: Path, model_dir: Path) -> Iterator[Reader]:
    made = Reader(folder, model_dir)
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", _RUN_HERE)
def test_what_a_page_shows_is_what_comes_out(name: str, reader: Reader) -> None:
    others = [
        f"{name}:{block.number}: it shows\n{block.text}\nand this comes out\n{text}"
        for block, text in replay(reader, PAGES[name])
        if not is_like(block.text, text)
    ]
    assert not others, "\n\n".join([*others, f"to write what comes out: python tests/guide.py {name}"])


def test_each_page_that_is_run_elsewhere_is_there() -> None:
    assert ELSEWHERE.keys() <= PAGES.keys()
    for name, test in ELSEWHERE.items():
        if test.endswith(".py"):
            assert Path(name).stem in (CHECKOUT / test).read_text()


@each("name", PAGES)
def test_code_of_a_page_is_in_blocks_that_are_run(name: str) -> None:
    """What is only indented nobody would run."""
    outside = re.sub(r"(?ms)^ *```.*?^ *```$", "", PAGES[name])
    assert re.findall(r"(?m)^ {4,}(?:memctl|\$|pip|python|sudo|systemctl) .*$", outside) == []


@each("name", PAGES)
def test_what_a_command_says_stands_in_blocks(name: str) -> None:
    outside = re.sub(r"(?ms)^ *```.*?^ *```$", "", PAGES[name])
    assert re.findall(r"(?m)^(?:memctl:|\$) .*$", outside) == []


def test_each_line_that_is_not_run_is_still_there_and_names_what_there_is() -> None:
    assert NOT_RUN.keys() <= {command for page in PAGES.values() for command in list_commands(page)}
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    for line in NOT_RUN:
        for extras in re.findall(r"memoryd\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= project["optional-dependencies"].keys()
        for target in re.findall(r"^make (\w+)$", line):
            assert re.search(rf"^{target}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)


def list_calls() -> Iterator[tuple[str, str]]:
    """Yield the page and the words of every call of memctl that a page writes, in blocks and in sentences."""
    for name, page in PAGES.items():
        for call in [*list_commands(page), *re.findall(r"`(memctl [^`…]+)`", page.replace("\n", " "))]:
            if call.startswith("memctl ") and not set("|<>;$&\n").intersection(call):
                yield name, call


@each(("name", "call"), [*list_calls()])
def test_every_call_of_memctl_is_one_that_it_takes(name: str, call: str) -> None:
    examples = {"OP": "7", "EVENT": "prompt"}
    words = [examples.get(word, word) for word in shlex.split(call, comments=True)[1:]]
    if " ".join(words) not in commands.list_commands():  # a sentence may name a command alone
        parse(words)
