"""The schema: new, opened again, of the version before, of an older or newer one, of somebody else."""

import re
import shutil
import stat
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

from absent import needs
from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import Get, History, ImportMemories, List, Operations, Record
from memoryd.daemon.memories import reading
from memoryd.daemon.store import jobs, migrations
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.schema import main as print_schema
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, ask, found, running, undo

RELEASES = sorted(
    (Path(__file__).parents[2] / "data" / "databases").glob("schema_*.sqlite"),
    key=lambda path: int(path.stem.removeprefix("schema_")),
)


FORMER = RELEASES[0]


def schema(path: Path) -> list[tuple[str, ...]]:
    connection = apsw.Connection(str(path))
    listed = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()
    version = connection.execute("PRAGMA user_version").get
    connection.close()
    return [*listed, ("version", str(version), "")]


def test_a_new_database_has_the_newest_schema_and_is_private(folder: Path) -> None:
    Store(folder).close()
    assert schema(folder / FILE_NAME)[-1] == ("version", str(VERSION), "")
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600


def test_opening_again_changes_nothing_and_closing_leaves_one_file(folder: Path) -> None:
    Store(folder).close()
    before = schema(folder / FILE_NAME)
    Store(folder).close()
    assert schema(folder / FILE_NAME) == before
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_step_that_fails_or_makes_another_schema_leaves_the_database_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / FILE_NAME
    shutil.copy(FORMER, path)
    before = schema(path)
    for step in (f"{migrations.STEP} SELECT no_such_function();", "DROP TABLE pauses;"):
        monkeypatch.setattr(migrations, "STEP", step)
        with pytest.raises(StorageFailed, match=r"cannot be used|is not the one that memoryd makes"):
            Store(folder)
        assert schema(path) == before


def test_a_database_of_a_newer_memoryd_is_refused_and_left_alone(folder: Path) -> None:
    Store(folder).close()
    path = folder / FILE_NAME
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
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


def test_there_is_a_database_of_this_schema_and_of_the_one_before() -> None:
    """Who raises the version runs tests/data/databases/make.py."""
    assert [path.name for path in RELEASES] == [f"schema_{number}.sqlite" for number in (VERSION - 1, VERSION)]
    assert [schema(path)[-1][1] for path in RELEASES] == [str(VERSION - 1), str(VERSION)]


@needs()
def test_the_schema_of_a_version_is_not_edited_without_another_version(folder: Path) -> None:
    """Whoever has a database of it would never get the change."""
    shutil.copy(RELEASES[-1], folder / FILE_NAME)
    connection = apsw.Connection(str(folder / FILE_NAME))
    migrations.migrate(connection)  # which makes the tables of a new capability and changes no other
    assert migrations.find_schema_problems(connection) == []
    connection.close()


def test_an_older_database_is_refused_with_what_to_do_and_left_alone(folder: Path) -> None:
    path = folder / FILE_NAME
    shutil.copy(FORMER, path)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {VERSION - 2}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageFailed, match=rf"schema {VERSION - 2}, .* `memctl export > FILE`.* `memctl import FILE`"):
        Store(folder)
    assert path.read_bytes() == before


def test_what_an_older_version_exported_is_imported(folder: Path) -> None:
    """The file is what `memctl export` of schema 9 wrote."""
    lines = (FORMER.parent / "schema_9.jsonl").read_bytes().splitlines()
    with running(folder, CountingEmbedder()) as core:
        records = [msgspec.json.decode(line, type=Record) for line in lines]
        ask(core, ImportMemories(records=records))
        assert found(core, "Which cache do we use?")[0] == "We use Valkey as the cache"
        assert reading.get(core, Get(id="ab" * 16)).metadata == {"project": "api"}
        assert len(ask(core, List(reach="all"))) == 4


def test_operations_of_the_schema_before_get_ids_and_keep_order_undos_and_history(folder: Path) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / FILE_NAME
    shutil.copy(FORMER, path)
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO settings VALUES ('numbers_key', 'ab')")
    connection.execute("UPDATE operations SET undone_by = 2 WHERE id = 1")
    connection.execute(
        "INSERT INTO runs (job, started_at, took_ms, by, outcome, counts, operation, error)"
        " VALUES ('sweep', 1.0, 1.0, 'hand', 'done', '{}', 2, '')"
    )
    connection.execute("UPDATE sqlite_sequence SET seq = 99 WHERE name = 'operations'")
    columns = "kind, at, namespace, memories, undone_by, token, session, process"
    logged = connection.execute(f"SELECT id, {columns} FROM operations ORDER BY id").fetchall()
    changes = connection.execute("SELECT * FROM history ORDER BY id").fetchall()
    connection.close()
    with running(folder, CountingEmbedder()) as core:
        with core.store.reading() as connection:
            assert connection.execute(f"SELECT number, {columns} FROM operations ORDER BY number").fetchall() == logged
            assert connection.execute("SELECT * FROM history ORDER BY id").fetchall() == changes
            assert connection.execute("SELECT value FROM settings WHERE name = 'numbers_key'").get is None
            [run] = jobs.read_latest(connection, "sweep", 1)
        listed = ask(core, Operations(reach="all", limit=100)).operations[::-1]
        assert len(listed) == len(logged) > 2
        assert all(re.fullmatch("[0-9a-f]{32}", one.id) for one in listed)
        assert listed[0].undone_by == listed[1].id == run.operation
        assert undo(core, listed[-1].id).undone == listed[-1].id
        with core.store.reading() as connection:
            assert connection.execute("SELECT max(number) FROM operations").get == 100


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_the_database_of_a_release_opens_with_all_it_holds(folder: Path, release: Path) -> None:
    (folder / "data").mkdir()
    shutil.copy(release, folder / "data" / FILE_NAME)
    with running(folder, CountingEmbedder()) as core:
        assert schema(core.store.path)[-1] == ("version", str(VERSION), "")
        assert core.store.find_problems() == []
        assert found(core, "Which cache do we use?")[0] == "We use Valkey as the cache"
        memory = reading.get(core, Get(id="ab" * 16))
        assert (memory.namespace, memory.metadata) == ("acme/api", {"project": "api"})
        assert [change.action for change in ask(core, History(id="ab" * 16))] == [
            "created",
            "updated",
        ]
        assert add(core, "we use valkey as the cache", "acme/api", type="decision").outcome == "merged"


def test_the_schema_that_is_printed_makes_the_tables_that_a_database_has(capsys: pytest.CaptureFixture[str]) -> None:
    print_schema()
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(capsys.readouterr().out)
        assert migrations.find_schema_problems(connection) == []
