"""One damaged page, of whatever table or index: the daemon starts, repairs it, and says what could not be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from test_recovering import break_pages, pages_of

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import NewMemory, Verification, Verify
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import database
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, add_many, found, running, search, wait_until

NUMBER = 200
QUESTION = "crane 150 stands in the reeds"
IMPORTANT = (
    "memories",
    "vec_embeddings",
    "memories_fts_data",
    "memories_filter",
    "sqlite_autoindex_memories_1",
    "turns",
)


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
    return database.verify(core, lambda progress: None, Verify(repair=repair))


def list_trees(path: Path) -> Iterator[str]:
    connection = apsw.Connection(str(path))
    found: Any = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0").fetchall()
    connection.close()
    yield from (name for (name,) in found)
    yield "sqlite_sequence"


@pytest.mark.parametrize("name", IMPORTANT)
def test_a_start_on_a_damaged_page_searches_as_before_once_it_was_repaired(
    copied: Path, folder: Path, name: str
) -> None:
    break_one(copied, name)
    with running(folder, CountingEmbedder()) as core:
        wait_until(lambda: search_whole(core))
        wait_until(lambda: is_writable(core))
        assert verify(core, repair=True).repairs[0][18:].startswith("damage was repaired in ")
        after = verify(core)
        assert (after.problems, after.repairs) == ([], [])
        lost = NUMBER + 2 - after.memories
        assert 0 <= lost < 20 if name == "memories" else lost == 0
        assert found(core, "herons fish at dawn")[0] == "Herons fish at dawn"


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


def test_a_page_that_is_lost_while_the_daemon_runs_is_repaired_when_it_is_met(copied: Path, folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        pages = pages_of(copied, "memories")
        break_pages(copied, pages[3:5])
        problems = verify(core).problems
        assert problems
        verify(core, repair=True)
        wait_until(lambda: search_whole(core))
        after = verify(core)
        assert after.problems == []
        assert NUMBER + 1 - 20 < after.memories < NUMBER + 1
        with core.store.reading() as connection:
            rows = {row for (row,) in connection.execute("SELECT row FROM memories")}
        assert set(core.store.positions.read_rows(core.store.facts.list_places()).tolist()) == rows


def test_numbers_are_not_used_twice_when_their_counter_was_lost(copied: Path, folder: Path) -> None:
    break_one(copied, "sqlite_sequence")
    with running(folder, CountingEmbedder()) as core:
        wait_until(lambda: is_writable(core))
        operation = add(core, "A heron").operation
    assert operation > 1_000_000


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
def test_a_damaged_page_of_any_table_or_index_is_repaired(sound: Path, folder: Path) -> None:
    names = list(list_trees(sound / FILE_NAME))
    for name in names:
        data = folder / name
        shutil.copytree(sound, data)
        break_one(data / FILE_NAME, name)
        store = Store(data)
        store.rebuild().result()
        assert store.find_problems() == [], name
        store.close()
        shutil.rmtree(data)
    assert len(names) > 80
