"""import of JSON lines that say what is to be remembered."""

from pathlib import Path

import pytest
from fake_daemon import Memctl
from test_memctl_tiers import lines

from each import each

pytestmark = pytest.mark.usefixtures("daemon")


def test_each_memory_comes_to_its_place_or_is_merged(memctl: Memctl, folder: Path) -> None:
    path = folder / "new.jsonl"
    path.write_text(
        lines(
            {"content": "The gateway is written in Go", "namespace": "acme/chat"},
            {"content": "We use Valkey", "type": "decision"},
            {"content": "we use valkey", "type": "decision"},
        )
    )
    would = memctl("import", str(path), "--namespace", "acme", "--dry-run").out
    assert would == "3 memories would be added in acme/chat, acme. Nothing was changed.\n"
    told = memctl("import", str(path), "--namespace", "acme")
    assert told.out == "Added in acme/chat, acme: 2 memories, 1 merged into others.\n"
    assert [memory["origin"] for memory in memctl("list", "--json").json] == ["import", "import"]


def test_lines_are_ones_own_where_one_says_so(memctl: Memctl, folder: Path) -> None:
    (folder / "own.jsonl").write_text(lines({"content": "The gateway is written in Go", "origin": "agent"}))
    memctl("import", str(folder / "own.jsonl"), "--mine")
    assert [memory["origin"] for memory in memctl("list", "--json").json] == ["person"]


@each(
    ("text", "message"),
    [
        ('{"content": "a"}\n{"text": "b"}\n', "Line 2 of"),
        ('{"content": "a"}\nnonsense\n', "Line 2 of"),
        ('{"content": 5}\n', "Line 1 of"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_sent(memctl: Memctl, folder: Path, text: str, message: str) -> None:
    path = folder / "new.jsonl"
    path.write_text(text)
    told = memctl("import", str(path))
    assert (told.code, told.out) == (1, "")
    assert message in told.err
    assert memctl("list", "--json").json == []
