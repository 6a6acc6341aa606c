"""README.md: its blocks are run in order as a reader would, with the default model, and show what really comes out."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from absent import needs
from memoryd.client.memctl.arguments import parse
from memoryd.client.memctl.commands import list_commands

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
GUIDES = "\n".join(path.read_text() for path in sorted((CHECKOUT / "docs").glob("*.md")))

# Lines of shell blocks that are not run here, and why not. Whoever adds one says who runs it instead.
NOT_RUN = {
    "git clone … && cd memoryd": "it needs the network; all of this runs in a checkout",
    "make demo": "it makes an environment of its own; test_memctl_demo.py runs the command",
    "make test": "that is what runs this",
    ".venv/bin/memctl demo --decay": "test_memctl_demo.py runs it",
    "pip install 'memoryd[daemon,mcp,web]'": "it needs the network",
    "pip install 'memoryd[daemon,shared]'": "it needs the network",
    "memctl service install": "it changes the user's systemd; test_memctl_systemd.py runs it",
}
NEAR = 0.05  # between the score in README and that of another processor's arithmetic


class Block(NamedTuple):
    """A block of code: its language, its lines, and the number of its first line."""

    language: str
    lines: list[str]
    number: int


def blocks() -> list[Block]:
    found: list[Block] = []
    is_open = False
    for number, line in enumerate(README.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_open = not is_open
            if is_open:
                found.append(Block(line.strip().removeprefix("```"), [], number + 1))
        elif is_open:
            found[-1].lines.append(line)
    return found


def commands() -> list[str]:
    """Return the lines of all shell blocks, without their comments."""
    lines = [line for block in blocks() if block.language == "sh" for line in block.lines]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def shown() -> Iterator[tuple[str, str]]:
    """Yield each call of a console block and the output that is shown for it."""
    for block in blocks():
        if block.language == "console":
            for call, *output in (part.split("\n") for part in "\n".join(block.lines).split("$ ")[1:]):
                yield call, "\n".join(output).strip()


class Reader:
    """Somebody who types what README says, in a home and with a daemon of their own."""

    def __init__(self, folder: Path, models: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYD_", "XDG_"))}
        self._environment = {
            **kept,
            "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "MEMORYD_MODEL_DIR": str(models),
        }
        (folder / "run").mkdir(mode=0o700)

    def run(self, *words: str) -> str:
        """Run a program and return its output; it must end well."""
        done = self.try_to_run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_to_run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program."""
        return subprocess.run(words, env=self._environment, cwd=CHECKOUT, capture_output=True, text=True, timeout=100)


@pytest.fixture
def reader(folder: Path, model_dir: Path) -> Iterator[Reader]:
    made = Reader(folder, model_dir)
    yield made
    made.try_to_run("memctl", "down")


def without_chance(text: str) -> str:
    """Return a text without ids, dates, times, durations and scores, which differ each time."""
    for pattern, word in (
        (r"\b[0-9a-f]{32}\b", "ID"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\d{4}-\d\d-\d\d", "DATE"),
        (r"\b\d{1,2} [A-Z][a-z]+ \d{4}\b", "DATE"),
        (r"\b[0-9a-f]{8}\b", "ID"),
        (r"\b\d+(\.\d+)? ms\b", "DURATION"),
        (r"(?m)^[01]\.\d{2,3}\b", "SCORE"),
    ):
        text = re.sub(pattern, word, text)
    return text.strip()


def scores(text: str) -> list[float]:
    return [float(score) for score in re.findall(r"(?m)^[01]\.\d{2,3}\b", text)]


def test_what_readme_shows_is_what_comes_out(reader: Reader) -> None:
    output = ""
    for block in blocks():
        if block.language == "python":
            output = reader.run(sys.executable, "-c", "\n".join(block.lines))
        elif block.language == "text":
            assert_shown("\n".join(block.lines), output)
    for call, expected in shown():
        assert_shown(expected, reader.run("bash", "-c", call))
    for command in commands():
        if command == "memctl doctor":
            assert reader.try_to_run("bash", "-c", command).returncode in (0, 1)  # it judges this machine
        elif command.startswith("memctl shared "):  # of a server that nobody has
            done = reader.try_to_run("bash", "-c", f"{command} --yes" if " add " in command else command)
            assert (done.returncode, "failed to resolve host 'db.example'" in done.stderr) == (3, True), done.stderr
        elif command not in NOT_RUN:
            reader.run("bash", "-c", command)


def assert_shown(expected: str, found: str) -> None:
    assert without_chance(found) == without_chance(expected)
    assert scores(found) == pytest.approx(scores(expected), abs=NEAR)


def test_every_block_is_of_a_kind_that_is_run() -> None:
    kinds = [block.language for block in blocks()]
    assert kinds[0] == "python"
    assert set(kinds) == {"python", "text", "console", "sh"}
    assert all(kinds[at - 1] == "python" for at, kind in enumerate(kinds) if kind == "text")
    assert all(block.lines[0].startswith("$ ") for block in blocks() if block.language == "console")


def test_the_first_example_finds_its_memory_and_has_a_context() -> None:
    first = next("\n".join(block.lines) for block in blocks() if block.language == "text")
    assert scores(first)[0] > 0.5
    assert "<memories>" in first


def test_each_line_that_is_not_run_is_still_there_and_names_what_there_is() -> None:
    assert NOT_RUN.keys() <= set(commands())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    for line in NOT_RUN:
        for extras in re.findall(r"memoryd\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= project["optional-dependencies"].keys()
        for target in re.findall(r"^make (\w+)$", line):
            assert re.search(rf"^{target}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)


def calls() -> list[str]:
    """Return every call of memctl that README and the guides write, in blocks and in sentences."""
    inline = re.findall(r"`(memctl [^`…]+)`", f"{README} {GUIDES}".replace("\n", " "))
    return [*(call for call, _ in shown()), *commands(), *inline]


@needs()
@pytest.mark.parametrize("call", [call for call in calls() if re.match(r"(?:\S*/)?memctl ", call)])
def test_every_call_of_memctl_is_one_that_it_takes(call: str) -> None:
    words = ["7" if word == "OP" else word for word in shlex.split(call)[1:]]
    if " ".join(words) not in list_commands():  # a sentence may name a command alone
        parse(words)


@needs()
def test_the_table_of_commands_names_every_command() -> None:
    table = README.split("## memctl\n")[1].split("\n\n")[0]
    named = set(re.findall(r"`([^`]+)`", table))
    missing = {name for name in list_commands() if name not in named and f"{name.split()[0]} …" not in named}
    assert missing == set(), "add it to the table of commands in README.md"
    firsts = {name.split()[0] for name in list_commands()}
    assert {name for name in named if name not in list_commands() and name.removesuffix(" …") not in firsts} == set()
