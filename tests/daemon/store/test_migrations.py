"""The schema: new, opened again, of the last release, of a newer one, of somebody else."""

import shutil
import stat
from pathlib import Path

import apsw
import msgspec
import pytest

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import Get, History
from memoryd.daemon.memories import reading
from memoryd.daemon.store import migrations, rows
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, found, running

RELEASES = sorted(
    (Path(__file__).parents[2] / "data" / "databases").glob("schema_*.sqlite"),
    key=lambda path: int(path.stem.removeprefix("schema_")),
)


def schema(path: Path) -> list[tuple[str, ...]]:
    connection = apsw.Connection(str(path))
    listed = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()
    version = connection.execute("PRAGMA user_version").get
    connection.close()
    return [*listed, ("version", str(version), "")]


def test_a_new_database_has_the_newest_schema_and_is_private(folder: Path) -> None:
    Store(folder).close()
    assert schema(folder / FILE_NAME)[-1] == ("version", str(len(migrations.MIGRATIONS)), "")
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600


def test_opening_again_changes_nothing_and_closing_leaves_one_file(folder: Path) -> None:
    Store(folder).close()
    before = schema(folder / FILE_NAME)
    Store(folder).close()
    assert schema(folder / FILE_NAME) == before
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_each_migration_is_one_transaction_with_its_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(folder).close()
    released = migrations.MIGRATIONS
    broken = "CREATE TABLE half (a); SELECT no_such_function();"
    monkeypatch.setattr(migrations, "MIGRATIONS", (*released, "CREATE TABLE whole (a);", broken))
    with pytest.raises(StorageFailed, match="cannot be used"):
        Store(folder)
    names = [name for _, name, _ in schema(folder / FILE_NAME)]
    assert "whole" in names
    assert "half" not in names
    assert names[-1] == str(len(released) + 1)


def test_what_history_knows_of_deleted_successors_is_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
    connection = apsw.Connection(str(folder / FILE_NAME))
    migrations.migrate(connection)
    monkeypatch.undo()
    memory = (
        "INSERT INTO memories SELECT ?, ?, 1, 'fact', 'manual', 'L1', 0.5, 1, 1, NULL, 0, NULL, 0, ?, NULL, NULL, NULL,"
        " 0, '', x'00', x'00', '', '{}', '', 'text'"
    )
    connection.execute("INSERT INTO namespaces VALUES (1, '')")
    connection.execute("INSERT INTO operations (kind, at, namespace) VALUES ('add', 1, ''), ('delete', 2, '')")
    connection.executemany(memory, [(1, "a" * 32, "b" * 32), (3, "c" * 32, None)])
    deleted = msgspec.json.encode({"row": {"row": 2, "superseded_by": "c" * 32}, "links": [], "turn": None}).decode()
    connection.executemany(
        "INSERT INTO history (operation, memory, namespace, before) VALUES (?, ?, '', ?)",
        [(1, "b" * 32, None), (2, "b" * 32, deleted)],
    )
    connection.close()
    store = Store(folder)
    try:
        assert store.build_mask(Filter(), 1.0).list_rows() == [3]
        store.write(lambda transaction: rows.delete(transaction.connection, [3])).result()
        assert store.build_mask(Filter(), 1.0).list_rows() == [1]
    finally:
        store.close()


def test_a_database_of_a_newer_memoryd_is_refused_and_left_alone(folder: Path) -> None:
    Store(folder).close()
    path = folder / FILE_NAME
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {len(migrations.MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageFailed, match="newer memoryd"):
        Store(folder)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(folder: Path) -> None:
    path = folder / FILE_NAME
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageFailed, match="not one of memoryd"):
        Store(folder)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"This is no database at all. " * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(folder: Path, content: bytes) -> None:
    path = folder / FILE_NAME
    path.write_bytes(content)
    with pytest.raises(StorageFailed, match=r"cannot be used|cannot be opened"):
        Store(folder)
    assert path.read_bytes() == content


def test_a_folder_that_is_missing_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot be opened"):
        Store(folder / "missing")


def test_there_is_a_database_of_every_release() -> None:
    """Who adds a migration runs tests/data/databases/make.py; the present schema is among them."""
    numbers = range(1, len(migrations.MIGRATIONS) + 1)
    assert [path.name for path in RELEASES] == [f"schema_{number}.sqlite" for number in numbers]
    assert [schema(path)[-1][1] for path in RELEASES] == [str(number) for number in numbers]


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_a_migration_that_was_released_is_not_edited(
    folder: Path, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has run it has what it made then, and would never get the change."""
    monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[: RELEASES.index(release) + 1])
    connection = apsw.Connection(str(folder / FILE_NAME))
    migrations.migrate(connection)
    connection.close()
    assert {*schema(folder / FILE_NAME)} - {*schema(release)} == set()


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_the_database_of_a_release_opens_with_all_it_holds(folder: Path, release: Path) -> None:
    (folder / "data").mkdir()
    shutil.copy(release, folder / "data" / FILE_NAME)
    with running(folder, CountingEmbedder()) as core:
        assert schema(core.store.path)[-1] == ("version", str(len(migrations.MIGRATIONS)), "")
        assert core.store.find_problems() == []
        assert found(core, "Which cache do we use?")[0] == "We use Valkey as the cache"
        memory = reading.get(core, Get(id="ab" * 16))
        assert (memory.namespace, memory.metadata) == ("acme/api", {"project": "api"})
        assert [change.action for change in reading.read_changes(core, History(id="ab" * 16))] == [
            "created",
            "updated",
        ]
        assert add(core, "we use valkey as the cache", "acme/api", type="decision").outcome == "merged"
