"""`kill -9` of the real daemon while it indexes or removes a workspace: each file is in the index whole, old or new."""

import hashlib
import random
import time
from pathlib import Path
from typing import Any

import apsw
import pytest
from killing import open_snapshot

from memoryd.client.protocol import Verify
from memoryd.daemon.workspaces.documents.files import read
from workbench import wait_until

LIVES = 8
FILES = 150
WORDS = "heron egret stork crane ibis bittern spoonbill avocet plover dunlin snipe".split()

Lines = set[tuple[int, int, str]]


class Notes:
    """Files that change at random; what every version of each holds, by the hash of its bytes."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root, self.dice = root, dice
        self.versions: dict[bytes, Lines] = {}

    def change(self, number: int) -> None:
        path = self.root / "memory" / f"{number % 5}" / f"{number}.md"
        if path.exists() and self.dice.random() < 0.1:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = (f"# Part {n}\n\n{' '.join(self.dice.choices(WORDS, k=90))}\n" for n in range(self.dice.randrange(12)))
        text = "\n".join(parts)
        path.write_text(text)
        self.versions[hashlib.sha256(text.encode()).digest()] = self.lines(path)

    def lines(self, path: Path) -> Lines:
        document = read(self.root, path.relative_to(self.root).as_posix())
        assert document is not None
        return {(chunk.start_line, chunk.end_line, chunk.content) for chunk in document.chunks}

    def now(self) -> dict[str, Lines]:
        return {str(path): self.lines(path) for path in self.root.rglob("*.md")}


@pytest.fixture
def notes(folder: Path) -> Notes:
    made = Notes(folder / "notes", random.Random(LIVES))
    for number in range(FILES):
        made.change(number)
    return made


def indexed(process: Any) -> dict[str, tuple[bytes, Lines]]:
    """Return the hash and the chunks of each file of the index; check what must hold at any moment."""
    with open_snapshot(process) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        hashes = connection.execute("SELECT w.root || '/' || f.path, f.hash FROM files f JOIN workspaces w")
        files: dict[str, tuple[bytes, Lines]] = {path: (hash, set()) for path, hash in hashes}
        rows: Any = connection.execute(
            "SELECT path, start_line, end_line, content FROM memories WHERE tier = 'documents'"
        )
        for path, *chunk in rows:
            files[path][1].add(tuple(chunk))
    return files


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_file_is_whole_in_the_index_whenever_the_daemon_is_killed(process: Any, notes: Notes) -> None:
    dice = notes.dice
    with process.client() as client:
        client.add_workspace(notes.root)
    for _ in range(LIVES):
        time.sleep(dice.random())  # not to wait for anything: at any moment of a pass
        for number in dice.sample(range(FILES), 40):
            notes.change(number)
        time.sleep(dice.random() * 0.5)
        process.kill()
        for hash, lines in indexed(process).values():
            assert lines == notes.versions[hash]
        for number in dice.sample(range(FILES), 10):
            notes.change(number)  # while nobody watches
        process.start()
    expected = notes.now()
    wait_until(lambda: {path: lines for path, (_, lines) in indexed(process).items()} == expected, 60)
    with process.client() as client:
        assert client.call(Verify()).problems == []


@pytest.mark.slow
def test_what_a_killed_removal_left_is_removed_after_the_restart(process: Any, notes: Notes) -> None:
    with process.client() as client:
        client.add_workspace(notes.root)
        client.index_workspace("notes")
    process.kill()
    connection = apsw.Connection(str(process.data / "memoryd.sqlite"))
    connection.pragma("foreign_keys", True)
    connection.execute("DELETE FROM workspaces")  # all that a removal does at first
    connection.close()
    process.start()
    with process.client() as client:
        wait_until(lambda: client.stats().memories == 0)
        assert client.call(Verify()).problems == []
