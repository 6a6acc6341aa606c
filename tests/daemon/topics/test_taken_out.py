"""Topics that are taken out and put back: what was erased meanwhile is not in the labels, nor anywhere on disk."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from graphs import maintain, remember
from memoryd.client.protocol import Erase
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing
from memoryd.daemon.registry import finish
from memoryd.daemon.store import copies, rescue
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.topics.tables import graph_names
from memoryd.daemon.topics.tables.graph_names import Label
from taking_out import without
from workbench import LIMIT_S, CountingEmbedder, running

WORD = "quokkafarm"
NAMES = 500  # so many that pages are freed
KEPT = "The heron fishes at dawn"


def fill(core: Core) -> str:
    """Cluster two memories, with labels of a language model as well; return the id of the one that is to be erased."""
    row, _ = remember(core, [f"The {WORD} opens", KEPT])
    maintain(core)

    def name(transaction: Any) -> str:
        connection = transaction.connection
        node = connection.execute("SELECT node FROM members WHERE memory = ?", (row,)).get
        for number in range(NAMES):
            graph_names.keep(connection, node, number.to_bytes(32, "big"), Label(f"Around the {WORD}", "tiny"), 1.0)
        graph_names.label_node(connection, node, b"set", f"Around the {WORD}", "tiny")
        return str(connection.execute("SELECT id FROM memories WHERE row = ?", (row,)).get)

    return core.store.write(name).result(LIMIT_S)


def read_labels(core: Core, table: str) -> list[str]:
    with core.store.reading() as connection:
        return [str(label) for (label,) in connection.execute(f"SELECT label FROM {table}")]


def find_files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]


@pytest.fixture
def erased(folder: Path) -> Path:
    """A folder in which a memory was erased while topics were taken out."""
    with running(folder, CountingEmbedder()) as core:
        id = fill(core)
        assert finish(erasing.erase(core, Erase(ids=[fill_more(core)]))).absent == []
    with without("topics"), running(folder, CountingEmbedder()) as core:
        assert finish(erasing.erase(core, Erase(ids=[id], dry_run=True))).absent == []
        assert finish(erasing.erase(core, Erase(ids=[id]))).absent == ["topics"]
    assert FILE_NAME in find_files(folder)
    return folder


def fill_more(core: Core) -> str:
    (row,) = remember(core, ["Gulls sleep on the roof"])
    with core.store.reading() as connection:
        return str(connection.execute("SELECT id FROM memories WHERE row = ?", (row,)).get)


def test_what_was_erased_while_topics_were_taken_out_is_nowhere_once_they_are_back(erased: Path) -> None:
    with running(erased, CountingEmbedder()) as core:
        assert find_files(erased) == []  # at once, not at the end of the daemon
        maintain(core)
        assert len(read_labels(core, "nodes")) == 1
        assert read_labels(core, "names") == []
        assert core.store.find_problems() == []
    assert find_files(erased) == []


def test_nor_is_it_after_a_restore_of_a_copy_that_was_made_without_topics(erased: Path) -> None:
    copy, restored = erased / "copy.sqlite", erased / "restored"
    shutil.move(erased / "data" / FILE_NAME, copy)
    restored.mkdir()
    rescue.restore(copy, restored)
    assert find_files(restored) == []


def test_nor_after_a_restore_of_an_older_copy_that_was_rewritten_meanwhile(folder: Path) -> None:
    copy, restored = folder / "data" / copies.FOLDER / copies.name_at(0.0), folder / "restored"
    copy.parent.mkdir(parents=True)
    restored.mkdir()
    with running(folder, CountingEmbedder()) as core:
        id = fill(core)
        copies.copy(core.store, copy, lambda: None)
    with without("topics"), running(folder, CountingEmbedder()) as core:
        assert finish(erasing.erase(core, Erase(ids=[id], copies=True))).rewritten == [str(copy)]
    rescue.restore(copy, restored)
    assert find_files(restored) == []
