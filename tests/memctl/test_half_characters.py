r"""Half an emoji in JSON (`\ud83d` alone), as JavaScript writes it: it becomes U+FFFD, and all else comes in."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fake_daemon import Memctl

from memoryd.client import Client
from memoryd.client.protocol import Record

HALF, WHOLE, KEPT = "Deploys \ud83d are on Tuesday", "Cakes 🍰 are on Friday", "Deploys \ufffd are on Tuesday"
SAMPLES = Path(__file__).parent.parent / "data" / "imports"


def record(number: int, text: str) -> str:
    made = Record(id=f"{number:032x}", namespace="", type="fact", content=text, created_at=1.0, updated_at=1.0)
    return json.dumps({**msgspec.to_builtins(made), "metadata": {"note": text}})


def line(text: str) -> str:
    return json.dumps({"content": text})


def entity(text: str) -> str:
    return json.dumps({"type": "entity", "name": "ops", "entityType": "team", "observations": [text]})


def write_mem0(path: Path) -> None:
    results = [{"id": str(number), "memory": text} for number, text in enumerate((HALF, WHOLE))]
    path.write_text(json.dumps({"results": results}))


def write_claude_mem(path: Path) -> None:
    """Its lists are JSON within the database."""
    shutil.copy(SAMPLES / "claude-mem.db", path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE observations SET narrative = ?, facts = ?", (WHOLE, json.dumps([HALF])))
        connection.execute("UPDATE observations SET concepts = ?", (json.dumps([HALF]),))
    connection.close()


def write_notes(path: Path) -> None:
    """The name of a file is no UTF-8."""
    path.mkdir()
    (path / "MEMORY.md").write_text(f"- {KEPT}\n")
    (path / os.fsdecode(b"2026-01-02-\xff.md")).write_text(f"- {WHOLE}\n")


SOURCES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "lines": (lambda path: path.write_text(f"{record(1, HALF)}\n{record(2, WHOLE)}\n"), ["import"]),
    "a list": (lambda path: path.write_text(f"[{record(1, HALF)}, {record(2, WHOLE)}]"), ["import"]),
    "new lines": (lambda path: path.write_text(f"{line(HALF)}\n{line(WHOLE)}\n"), ["import"]),
    "mcp-memory": (lambda path: path.write_text(f"{entity(HALF)}\n{entity(WHOLE)}\n"), ["import", "--from"]),
    "mem0": (write_mem0, ["import", "--from"]),
    "claude-mem": (write_claude_mem, ["import", "--from"]),
    "memory-md": (write_notes, ["import", "--from"]),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_half_a_character_is_replaced_and_nothing_left_out(
    memctl: Memctl, client: Client, tmp_path: Path, kind: str
) -> None:
    write, words = SOURCES[kind]
    write(tmp_path / "source")
    done = memctl(*words, *([kind] if "--from" in words else []), str(tmp_path / "source"))
    assert done.code == 0
    assert "left out" not in done.out.replace("left out: prompts of users", "")
    stored = [memory.content for memory in client.list(limit=100).memories]
    assert any(KEPT in text for text in stored)
    assert any(WHOLE in text for text in stored)
