"""After any sequence of edits the index is the one that a new database would have: chunks, links, vectors."""

import random
from operator import eq
from pathlib import Path
from typing import Any

import msgspec
import pytest
from notes import write

from memoryd.client.protocol import List
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import fulltext
from memoryd.daemon.workspaces import indexing, registry
from workbench import CountingEmbedder, ask, disk_and_memory, running, wait_until

STEPS = 40
NAMES = ("memory/a.md", "memory/b.md", "memory/sub/c.md", "memory/2026-01-02.md", "MEMORY.md")
FRONTS = ("", "---\ntype: decision\n---\n", "---\ntags: [x]\npinned: true\n---\n", "---\nexpires: 2030-01-01\n---\n")
PARTS = (
    "# Birds\n\nHerons stand still.",
    "# Birds\n\nHerons stand still.",
    "## Eggs\n\nThey are [[blue]] or [[green]].",
    "Plain words without a heading.",
    "- one\n- two [[b]]\n- three",
    "```\ncode [[no]]\n```",
    "word " * 400,
    "# Fish",
)


def anything(dice: random.Random) -> str:
    return dice.choice(FRONTS) + "\n\n".join(dice.choices(PARTS, k=dice.randrange(8))) + "\n"


def step(root: Path, dice: random.Random) -> None:
    path = root / dice.choice(NAMES)
    other = root / dice.choice(NAMES)
    for folder in (path.parent, other.parent):
        folder.mkdir(parents=True, exist_ok=True)
    match dice.randrange(5):
        case 0 if path.exists():
            path.unlink()
        case 1 if path.exists():
            path.rename(other)
        case 2 if path.exists():
            path.write_text(path.read_text() + dice.choice(PARTS))
        case _:
            path.write_text(anything(dice))


def state(core: Core) -> dict[str, Any]:
    """Return what the index holds, without ids: a chunk of a file that was moved keeps its own."""
    with core.store.reading() as connection:
        mentions = connection.execute(
            "SELECT m.id, n.name FROM mentions n JOIN memories m ON m.row = n.memory"
        ).fetchall()
    page = ask(core, List(limit=1000, all_states=True))
    told = {memory.id: msgspec.json.encode(msgspec.structs.replace(memory, id="")) for memory in page}
    assert len(told) == page.total
    return {"memories": sorted(told.values()), "mentions": sorted((told[id], name) for id, name in mentions)}


def settle(core: Core) -> None:
    wait_until(lambda: core.embedding.count_pending() == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_any_sequence_of_edits_the_index_is_what_a_new_one_would_be(folder: Path, root: Path, seed: int) -> None:
    dice = random.Random(seed)
    write(root, "MEMORY.md", anything(dice))
    with running(folder / "followed", CountingEmbedder()) as core:
        workspace = registry.add(core, str(root), None, ())
        for _ in range(STEPS):
            for _ in range(dice.randrange(1, 4)):
                step(root, dice)
            indexing.index(core, workspace)
        settle(core)
        followed = state(core)
        wait_until(lambda: eq(*disk_and_memory(core)))  # the index follows the commit
        assert fulltext.find_problems(core.store.path) == []
    with running(folder / "anew", CountingEmbedder()) as core:
        indexing.index(core, registry.add(core, str(root), None, ()))
        settle(core)
        assert state(core) == followed
