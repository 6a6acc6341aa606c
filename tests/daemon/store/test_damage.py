"""One damaged page: indexes and full text are created again; for a table the command that reads it out is named."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from test_recovering import break_pages, pages_of

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import NewMemory, Verification, Verify
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.rescue import recover
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, add_many, ask, found, running, search, wait_until

NUMBER = 200
COMMAND = "memctl repair --recover"
QUESTION = "crane 150 stands in the reeds"
DERIVED = ("memories_fts_data", "memories_filter", "memories_created")
TURNS = pytest.param("turns", marks=pytest.mark.slow)  # which are few, and looked for by many numbers
TABLES = ("memories", "vec_embeddings", "sqlite_autoindex_memories_1", TURNS, "settings", "sqlite_sequence")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a database of which all is well."""
    folder = tmp_path_factory.mktemp("sound")
    with running(folder, CountingEmbedder()) as core:
        new = [NewMemory(content=f"Crane {n} {'stands in the reeds ' * 40}") for n in range(NUMBER)]
        add_many(core, new, "acme/api", dedup=False)
        add(core, "Herons fish at dawn", "acme", pinned=True, metadata={"tags": ["birds"]})
    return folder / "data"


@pytest.fixture
def copied(sound: Path, folder: Path) -> Path:
    shutil.copytree(sound, folder / "data")
    return folder / "data" / FILE_NAME


def break_one(path: Path, name: str) -> None:
    pages = pages_of(path, name)
    break_pages(path, [pages[len(pages) // 2]])


def verify(core: Core, repair: bool = False) -> Verification:
    return ask(core, Verify(repair=repair), report=lambda progress: None)


def list_trees(path: Path) -> Iterator[str]:
    connection = apsw.Connection(str(path))
    found: Any = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0").fetchall()
    connection.close()
    yield from (name for (name,) in found)
    yield "sqlite_sequence"


@pytest.mark.parametrize("name", DERIVED)
def test_a_start_on_a_damaged_index_searches_as_before_once_it_was_repaired(
    copied: Path, folder: Path, name: str
) -> None:
    break_one(copied, name)
    with running(folder, CountingEmbedder()) as core:
        wait_until(lambda: search_whole(core))
        wait_until(lambda: is_writable(core))
        assert verify(core, repair=True).repairs[0][18:].startswith("damage was repaired in memories")
        after = verify(core)
        assert (after.problems, after.repairs, after.memories) == ([], [], NUMBER + 2)
        assert found(core, "herons fish at dawn")[0] == "Herons fish at dawn"


def start_and_repair(folder: Path) -> None:
    """Start on a folder, which reads some tables, and repair what is damaged."""
    with closing(Store(folder)) as store:
        store.rebuild().result()
        assert store.find_problems() == []


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_table_is_left_as_it_is_and_whoever_meets_it_is_given_the_command(copied: Path, name: str) -> None:
    break_one(copied, name)
    before = copied.read_bytes()
    with pytest.raises(StorageFailed, match=COMMAND):
        start_and_repair(copied.parent)
    assert copied.read_bytes() == before
    target = copied.parent / "new"
    target.mkdir()
    assert NUMBER + 1 - 20 < recover(copied, target).rows["memories"] <= NUMBER + 1


def is_writable(core: Core) -> bool:
    """Return whether an add succeeds; one that does not says what to do."""
    try:
        add(core, "A stork")
    except StorageFailed as error:
        if "It is being repaired; ask again later." in error.message:
            return False
        raise
    return True


def search_whole(core: Core) -> bool:
    """Return whether a search finds something by words and by vectors."""
    try:
        hits = search(core, QUESTION)
    except StorageFailed:
        return False
    return not hits.degraded and bool(hits) and hits[0].similarity is not None


def test_a_page_that_is_lost_while_the_daemon_runs_is_reported_with_the_command_when_it_is_met(
    copied: Path, folder: Path
) -> None:
    with running(folder, CountingEmbedder()) as core:
        break_pages(copied, pages_of(copied, "memories")[3:5])
        assert verify(core).problems
        with pytest.raises(StorageFailed, match=COMMAND):
            verify(core, repair=True)
        wait_until(lambda: reads_with_advice(core))


def reads_with_advice(core: Core) -> bool:
    """Return whether a read that meets the damage names the command."""
    try:
        with core.store.reading() as connection:
            connection.pragma("shrink_memory")  # what it read before the damage
            connection.execute("SELECT sum(length(content)) FROM memories NOT INDEXED").fetchall()
    except StorageFailed as error:
        return COMMAND in error.message
    return False


def test_a_repair_that_fails_is_not_tried_at_each_search(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(copied.parent)
    tried = []

    def fail(transaction: Any) -> None:
        tried.append(1)
        raise StorageFailed("no")

    monkeypatch.setattr(store, "_rebuild", fail)
    for _ in range(3):
        store.repair_soon()
        wait_until(lambda: not store._repairing)
    store.close()
    assert tried == [1]


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_a_damaged_page_of_any_table_or_index_is_repaired_or_can_be_read_out(sound: Path, folder: Path) -> None:
    names = list(list_trees(sound / FILE_NAME))
    repaired = 0
    for name in names:
        data = folder / name
        shutil.copytree(sound, data)
        break_one(data / FILE_NAME, name)
        try:
            start_and_repair(data)
            repaired += 1
        except StorageFailed as error:
            assert COMMAND in str(error), name  # noqa: PT017
            (data / "new").mkdir()
            recover(data / FILE_NAME, data / "new")
            Store(data / "new").close()
        shutil.rmtree(data)
    assert len(names) > 80
    assert repaired > 30
