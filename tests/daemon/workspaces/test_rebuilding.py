"""The index is derived: deleting the database and indexing again gives the same search results. With the real model."""

import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from workbench import Process, wait_until

QUERIES = 100
FILES = 60
MAX_BYTES = 6_000


def documentation() -> Iterator[Path]:
    """Yield texts that packages of this Python installed."""
    site = Path(sys.modules["pytest"].__file__ or "").parent.parent
    for pattern in ("**/*.md", "**/*.rst", "**/METADATA", "**/*.txt"):
        for path in sorted(site.glob(pattern)):
            if 200 < path.stat().st_size < MAX_BYTES:
                yield path


def some_files(root: Path) -> list[Path]:
    files = []
    for number, source in enumerate(documentation()):
        if number == FILES:
            break
        path = root / "memory" / f"part{number % 7}" / f"{number:03}-{source.stem.lower()}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        files.append(path)
    return files


def settle(client: Client) -> None:
    wait_until(lambda: client.workspaces("notes").workspaces[0].indexing is None, 120)
    client.index_workspace("notes")
    wait_until(lambda: client.status().pending_embeddings == 0, 240)


def results(client: Client, queries: list[str]) -> list[list[tuple[Any, ...]]]:
    """Return what each query finds; not the score's last digits, nor which ids."""
    return [
        [
            (hit.path, hit.start_line, hit.end_line, hit.content, hit.namespace, round(hit.score, 4), hit.created_at)
            for hit in client.search(query, limit=10, touch=False)
        ]
        for query in queries
    ]


def questions(files: list[Path], dice: random.Random) -> list[str]:
    """Return pieces of what is in the files, a few words each, some of them shuffled."""
    words = [path.read_text(errors="replace").split() for path in files]
    found = []
    while len(found) < QUERIES:
        text = dice.choice([text for text in words if len(text) > 20])
        start = dice.randrange(len(text) - 8)
        query = text[start : start + dice.randrange(2, 9)]
        if len(found) % 3 == 0:
            dice.shuffle(query)
        found.append(" ".join(query))
    return found


def are_alike(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    """Return whether two results are the same; of those that share the last score some may have been cut off."""
    last = one[-1][5] if one else 0.0
    above = [[hit for hit in hits if hit[5] > last] for hits in (one, other)]
    return above[0] == above[1] and [hit[5] for hit in one] == [hit[5] for hit in other]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_index_built_anew_finds_the_same_as_one_that_followed_every_change(folder: Path, model_dir: Path) -> None:
    root, dice = folder / "notes", random.Random(7)
    files = some_files(root)
    assert len(files) >= 50
    late = files[::3]  # these come, change and move while the daemon watches, so that rows are in another order
    for path in late:
        path.rename(path.with_suffix(".later"))
    process = Process(folder, environment={"MEMORYD_MODEL_DIR": str(model_dir)}).start()
    try:
        with process.client() as client:
            wait_until(lambda: client.status().model.state == "ready")
            client.add_workspace(root)
            client.index_workspace("notes")
            for path in dice.sample(late, len(late)):
                path.with_suffix(".later").rename(path)
                client.index_workspace("notes")
            for path in dice.sample(files, 20):
                path.write_text(f"# Moved\n\nA new line here.\n\n{path.read_text(errors='replace')}")
            for number, path in enumerate(dice.sample(files, 10)):
                files[files.index(path)] = path.rename(root / "memory" / f"moved-{number}.md")
            settle(client)
            queries = questions(files, dice)
            before = results(client, queries)
            chunks = client.workspaces("notes").workspaces[0].chunks
        process.stop()
        shutil.rmtree(process.data)
        process.start()
        with process.client() as client:
            wait_until(lambda: client.status().model.state == "ready")
            client.add_workspace(root)
            settle(client)
            assert client.workspaces("notes").workspaces[0].chunks == chunks
            after = results(client, queries)
    finally:
        process.stop()
    different = [query for query, *found in zip(queries, before, after, strict=True) if not are_alike(*found)]
    assert different == []
    assert sum(map(len, before)) > 9 * QUERIES
