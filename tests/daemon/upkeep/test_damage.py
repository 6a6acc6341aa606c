"""Damage: what meets it names the command that helps; nothing is changed until that is run.

What is readable comes into a new file then, what is derived is made anew, what is lost is told.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import NewMemory, Verification, Verify
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.upkeep import salvage
from memoryd.daemon.upkeep.rescue import list_tables, recover
from workbench import CountingEmbedder, add, add_many, ask, found, running, search, wait_until

NUMBER = 200
COMMAND = "memctl repair --recover"
INDEXES = ("sqlite_autoindex_memories_1", "memories_filter", "memories_created", "memories_fts_data", "sqlite_sequence")


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


@pytest.fixture
def target(folder: Path) -> Path:
    """The folder of the new database."""
    made = folder / "new"
    made.mkdir(mode=0o700)
    return made


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


def break_one(path: Path, name: str) -> None:
    pages = pages_of(path, name)
    break_pages(path, [pages[len(pages) // 2]])


def change(path: Path, statement: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(30_000)
        connection.execute(statement)


def verify(core: Core, repair: bool = False) -> Verification:
    return ask(core, Verify(repair=repair), report=lambda progress: None)


def list_trees(path: Path) -> Iterator[str]:
    with closing(apsw.Connection(str(path))) as connection:
        found: Any = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0").fetchall()
    yield from (name for (name,) in found)
    yield "sqlite_sequence"


def start_and_repair(folder: Path) -> list[str]:
    """Start on a folder and repair; return what is wrong then."""
    with closing(Store(folder)) as store:
        store.rebuild().result()
        return store.find_problems()


@pytest.mark.parametrize("name", ["memories", "vec_embeddings", "settings", *INDEXES, "turns"])
def test_a_damaged_page_is_left_as_it_is_and_the_rest_can_be_read_out(
    copied: Path, target: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(salvage, "PORTION", 50)  # so that few numbers are tried of a table of which nothing is left
    break_one(copied, name)
    before = copied.read_bytes()
    try:
        assert start_and_repair(copied.parent)
    except StorageFailed as error:
        assert COMMAND in str(error)  # noqa: PT017
        assert copied.read_bytes() == before
    read = recover(copied, target).rows["memories"]
    assert read == NUMBER + 1 or (name == "memories" and NUMBER + 1 - 20 < read < NUMBER + 1)
    assert start_and_repair(target) == []


def test_an_index_without_some_rows_is_made_again_by_a_repair(copied: Path, folder: Path) -> None:
    for statement in (
        "UPDATE sqlite_schema SET sql = sql || ' WHERE FALSE' WHERE name = 'memories_text'",
        "UPDATE memories SET text_hash = randomblob(32) WHERE row = 7",
        "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE FALSE', '') WHERE name = 'memories_text'",
    ):
        change(copied, f"PRAGMA writable_schema = ON; {statement}")
    with running(folder, CountingEmbedder()) as core:
        assert any("memories_text" in problem for problem in verify(core).problems)
        assert verify(core, repair=True).problems == []
        assert found(core, "herons fish at dawn")[0] == "Herons fish at dawn"


def test_a_search_over_damaged_full_text_answers_by_meaning_until_a_repair(core: Core) -> None:
    for number in range(30):
        add(core, f"Note {number} about herons")
    change(core.store.path, "UPDATE memories_fts_data SET block = x'0000' WHERE id > 10")
    hits = search(core, "note 7 about herons")
    assert (hits.degraded, hits[0].content) == (["fulltext"], "Note 7 about herons")
    storks = [NewMemory(content=f"Stork {number} nests") for number in range(500)]
    with pytest.raises(StorageFailed, match="`memctl repair` rebuilds indexes and full text"):
        add_many(core, storks, "acme", dedup=False)  # which merges segments
    assert verify(core, repair=True).problems == []
    hits = search(core, "note 7 about herons")
    assert (hits.degraded, hits[0].content) == ([], "Note 7 about herons")
    assert hits[0].bm25 is not None
    add(core, "Storks nest")


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


def test_a_sound_database_comes_over_whole(copied: Path, target: Path) -> None:
    done = recover(copied, target)
    assert done.damaged == []
    assert done.rows["memories"] == NUMBER + 1
    before, after = Store(copied.parent), open_recovered(target)
    with before.reading() as old, after.reading() as new:
        for table in list_tables(new):
            sql = f"SELECT * FROM {table.name}"
            assert sorted(map(repr, old.execute(sql))) == sorted(map(repr, new.execute(sql))), table.name
    before.close()
    after.close()


def test_bytes_that_are_no_text_are_told_and_cost_their_row_alone(copied: Path, target: Path) -> None:
    connection = apsw.Connection(str(copied))
    connection.execute("UPDATE memories SET content = CAST(x'dff0e5' AS TEXT) WHERE row = 7")
    connection.close()
    store = Store(copied.parent)
    assert "memories: not all of them can be read" in store.find_problems()[-1]
    store.close()
    done = recover(copied, target)
    assert (done.damaged, done.rows["memories"]) == (["memories"], NUMBER)
    open_recovered(target).close()


@pytest.mark.parametrize("number", [1, 5])
def test_pages_that_are_lost_cost_the_rows_on_them_and_no_others(
    copied: Path, target: Path, folder: Path, number: int
) -> None:
    pages = pages_of(copied, "memories")
    break_pages(copied, pages[3 : 3 + number])
    done = recover(copied, target)
    assert done.damaged == ["memories"]
    assert NUMBER + 1 > done.rows["memories"] >= (NUMBER + 1) * (1 - 2 * number / len(pages))
    open_recovered(target).close()
    (folder / "again").mkdir()
    target.rename(folder / "again" / "data")
    with running(folder / "again", CountingEmbedder()) as core:
        assert found(core, "herons fish")[0] == "Herons fish at dawn"


def test_a_lost_namespace_does_not_take_its_memories_along(
    copied: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(salvage, "PORTION", 50)  # so that few numbers are tried of a table of which nothing is left
    break_pages(copied, pages_of(copied, "namespaces"))
    done = recover(copied, target)
    assert done.rows["memories"] == NUMBER + 1
    store = open_recovered(target)
    with store.reading() as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM namespaces")}
    store.close()
    assert names
    assert all(str(name).startswith("recovered/") for name in names)


def test_a_file_of_which_nothing_can_be_read_is_refused_with_advice(copied: Path, folder: Path) -> None:
    break_pages(copied, [1])
    with pytest.raises(StorageFailed, match=r"memoryd\.sqlite.*`memctl reset` begins anew"):
        recover(copied, folder / "new")
    (folder / "other").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailed):
        recover(folder / "other", folder / "new")


def test_a_file_of_another_schema_is_refused(copied: Path, target: Path) -> None:
    connection = apsw.Connection(str(copied))
    connection.pragma("user_version", VERSION - 1)
    connection.close()
    with pytest.raises(StorageFailed, match="recover it with the memoryd that wrote it"):
        recover(copied, target)


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_with_a_damaged_page_of_any_table_or_index_the_rest_can_be_read_out(sound: Path, folder: Path) -> None:
    names = list(list_trees(sound / FILE_NAME))
    for name in names:
        data = folder / name
        shutil.copytree(sound, data)
        break_one(data / FILE_NAME, name)
        (data / "new").mkdir()
        read = recover(data / FILE_NAME, data / "new")
        assert start_and_repair(data / "new") == [], name
        assert read.rows["memories"] == NUMBER + 1 or name == "memories", name
        shutil.rmtree(data)
    assert len(names) > 80
