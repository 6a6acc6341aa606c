"""A damaged file: what is readable comes into a new one, what is derived is made anew, what is lost is told."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import NewMemory
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.upkeep.rescue import list_tables, recover
from workbench import CountingEmbedder, add, add_many, found, running

NUMBER = 300


@pytest.fixture
def damaged(folder: Path) -> Path:
    """A database of 300 memories, their vectors and history; its path."""
    with running(folder, CountingEmbedder()) as core:
        new = [NewMemory(content=f"Crane {n} {'stands in the reeds ' * 40}") for n in range(NUMBER)]
        add_many(core, new, "acme/api", dedup=False)
        add(core, "Herons fish at dawn", "acme", pinned=True, metadata={"tags": ["birds"]})
    return folder / "data" / FILE_NAME


def pages_of(path: Path, name: str) -> list[int]:
    """Return the leaf pages of a table or index."""
    connection = apsw.Connection(str(path))
    try:
        found: Any = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (name,))
        return [page for (page,) in found]
    finally:
        connection.close()


def break_pages(path: Path, pages: list[int]) -> None:
    connection = apsw.Connection(str(path))
    size: Any = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(b"\xa5" * size)


def open_recovered(folder: Path) -> Store:
    store = Store(folder)
    assert store.find_problems() == []
    return store


def test_a_sound_database_comes_over_whole(damaged: Path, folder: Path) -> None:
    target = folder / "new"
    target.mkdir()
    done = recover(damaged, target)
    assert done.damaged == []
    assert done.rows["memories"] == NUMBER + 1
    before, after = Store(damaged.parent), open_recovered(target)
    with before.reading() as old, after.reading() as new:
        for table in list_tables(new):
            sql = f"SELECT * FROM {table.name}"
            assert sorted(map(repr, old.execute(sql))) == sorted(map(repr, new.execute(sql))), table.name
    before.close()
    after.close()


def test_bytes_that_are_no_text_are_told_and_cost_their_row_alone(damaged: Path, folder: Path) -> None:
    connection = apsw.Connection(str(damaged))
    connection.execute("UPDATE memories SET content = CAST(x'dff0e5' AS TEXT) WHERE row = 7")
    connection.close()
    store = Store(damaged.parent)
    assert "memories: not all of them can be read" in store.find_problems()[-1]
    store.close()
    target = folder / "new"
    target.mkdir()
    done = recover(damaged, target)
    assert (done.damaged, done.rows["memories"]) == (["memories"], NUMBER)
    open_recovered(target).close()


@pytest.mark.parametrize("number", [1, 5])
def test_pages_that_are_lost_cost_the_rows_on_them_and_no_others(damaged: Path, folder: Path, number: int) -> None:
    pages = pages_of(damaged, "memories")
    break_pages(damaged, pages[3 : 3 + number])
    target = folder / "new"
    target.mkdir()
    done = recover(damaged, target)
    assert done.damaged == ["memories"]
    assert NUMBER + 1 > done.rows["memories"] >= (NUMBER + 1) * (1 - 2 * number / len(pages))
    open_recovered(target).close()
    target.rename(folder / "again")
    (folder / "again" / "data").mkdir()
    for path in (folder / "again").glob("memoryd.*"):
        path.rename(folder / "again" / "data" / path.name)
    with running(folder / "again", CountingEmbedder()) as core:
        assert found(core, "herons fish")[0] == "Herons fish at dawn"


def test_lost_indexes_full_text_and_vectors_cost_no_memory(damaged: Path, folder: Path) -> None:
    for name in ("memories_filter", "memories_fts_data", "vec_embeddings", "sqlite_autoindex_memories_1"):
        break_pages(damaged, pages_of(damaged, name)[:2])
    target = folder / "new"
    target.mkdir()
    done = recover(damaged, target)
    assert done.rows["memories"] == NUMBER + 1
    open_recovered(target).close()


@pytest.mark.slow
def test_a_lost_namespace_does_not_take_its_memories_along(damaged: Path, folder: Path) -> None:
    break_pages(damaged, pages_of(damaged, "namespaces"))
    target = folder / "new"
    target.mkdir()
    done = recover(damaged, target)
    assert done.rows["memories"] == NUMBER + 1
    store = open_recovered(target)
    with store.reading() as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM namespaces")}
    store.close()
    assert names
    assert all(str(name).startswith("recovered/") for name in names)


def test_a_file_of_which_nothing_can_be_read_is_refused_with_advice(damaged: Path, folder: Path) -> None:
    break_pages(damaged, [1])
    with pytest.raises(StorageFailed, match=r"memoryd\.sqlite.*`memctl reset` begins anew"):
        recover(damaged, folder / "new")
    (folder / "other").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailed):
        recover(folder / "other", folder / "new")


def test_a_file_of_another_schema_is_refused(damaged: Path, folder: Path) -> None:
    connection = apsw.Connection(str(damaged))
    connection.pragma("user_version", VERSION - 1)
    connection.close()
    (folder / "new").mkdir()
    with pytest.raises(StorageFailed, match="recover it with the memoryd that wrote it"):
        recover(damaged, folder / "new")
