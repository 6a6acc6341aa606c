"""JSON that is nested deeper than any parser follows: one sentence and nothing sent, wherever memctl reads it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, Memctl

from memoryd.client.programs.hooks import spool

DEEP = "[" * 5000 + "]" * 5000
RECORD = f'{{"id": "{"0f" * 16}", "content": "x", "metadata": {{"a": {DEEP}}}}}\n'
ENTITY = f'{{"type": "entity", "name": "a", "entityType": "b", "observations": {DEEP}}}\n'
MARKDOWN = f"---\nid: {'0f' * 16}\nmetadata: {DEEP}\n---\ntext\n"

COMMANDS: dict[str, tuple[str, Callable[[str], list[str]], str]] = {
    "metadata": ("", lambda path: ["add", "x", "--metadata", f'{{"a": {DEEP}}}'], "must be KEY=VALUE or a JSON object"),
    "records": (RECORD, lambda path: ["import", path], "line 1: Not a JSON object"),
    "a list of records": (f"[{RECORD}]", lambda path: ["import", path], "Not a JSON list"),
    "a Markdown file": (MARKDOWN, lambda path: ["import", str(Path(path).parent)], "the value of metadata is not JSON"),
    "the MCP server's memory": (
        ENTITY,
        lambda path: ["import", "--from", "mcp-memory", path],
        "is not a file of the MCP memory server",
    ),
    "mem0's memories": (DEEP, lambda path: ["import", "--from", "mem0", path], "nor JSON"),
}


@pytest.mark.parametrize(("text", "words", "said"), COMMANDS.values(), ids=COMMANDS)
def test_deep_json_is_refused_with_one_sentence(
    memctl: Memctl, fake: FakeDaemon, folder: Path, text: str, words: Callable[[str], list[str]], said: str
) -> None:
    path = folder / "given" / "input.md"
    path.parent.mkdir()
    path.write_text(text)
    done = memctl(*words(str(path)))
    assert done.code in (1, 2)
    assert done.err.count("\n") == 1
    assert re.search(said, done.err)
    assert fake.calls == []


def test_recursion_without_end_is_no_unexpected_error(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("memoryd.client.programs.memctl.link.Client.call", fail)
    done = memctl("status")
    assert (done.code, done.err) == (1, "memctl: The input is nested too deeply; metadata may be nested 16 deep.\n")


def test_a_deep_line_of_the_spool_stops_no_hook_for_ever(folder: Path) -> None:
    sent = []

    class Link:
        def call(self, method: str, **fields: object) -> None:
            sent.append(method)

    assert spool.append({"method": "observe"})
    with Path(spool.path()).open("a") as file:
        file.write(f'{{"method": "observe", "turns": {DEEP}}}\n')
    assert spool.append({"method": "end_session"})
    spool.replay(Link(), float("inf"))  # type: ignore[arg-type]
    assert (sent, spool.count_waiting()) == (["observe", "end_session"], 0)
