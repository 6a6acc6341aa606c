"""The schema: new, opened again, of the version before, of an older or newer one, of somebody else."""

import shutil
import stat
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

import graphs
from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import Get, History, ImportMemories, List, Record
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.memories import reading
from memoryd.daemon.store import migrations
from memoryd.daemon.store.schema import FORMER_VERSION, VERSION
from memoryd.daemon.store.schema import main as print_schema
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, ask, delete, found, running, search, undo, update, wait_until

RELEASES = sorted(
    (Path(__file__).parents[2] / "data" / "databases").glob("schema_*.sqlite"),
    key=lambda path: int(path.stem.removeprefix("schema_")),
)
FORMER = RELEASES[0]
# Whose words a memory is was added to what it was.
_HISTORY = (
    "SELECT id, operation, memory, namespace, text_hash, json_remove(before, '$.row.origin') FROM history ORDER BY id"
)
SHARING = FORMER.with_name("shared_12.sqlite")  # by make_shared.py


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
        with pytest.raises(StorageFailed, match=r"cannot be used|differs from memoryd's schema"):
            Store(folder)
        assert schema(path) == before


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


def test_there_is_a_database_of_this_schema_and_of_the_one_that_it_brings_along() -> None:
    """Who raises the version runs tests/data/databases/make.py."""
    assert [path.name for path in RELEASES] == [f"schema_{number}.sqlite" for number in (FORMER_VERSION, VERSION)]
    assert [schema(path)[-1][1] for path in RELEASES] == [str(FORMER_VERSION), str(VERSION)]


def test_an_old_graph_is_dropped_and_made_anew_by_the_next_run_of_its_job(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    shutil.copy(FORMER, folder / "data" / FILE_NAME)
    connection = apsw.Connection(str(folder / "data" / FILE_NAME))
    connection.execute(
        "UPDATE memories SET tier = 'L2';"
        "INSERT INTO nodes (namespace, model, kind, label, size, created_at, updated_at,"
        " centroid) SELECT namespace, 1, 'cluster', 'of old', 1, 1, 1, x'' FROM memories LIMIT 1;"
        "INSERT INTO members SELECT row, 1 FROM memories LIMIT 1"
    )
    connection.close()
    with running(folder, CountingEmbedder()) as core:
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert graphs.groups(core) == []
        graphs.make_graph(core)
        graphs.check(core)
        assert graphs.groups(core) != []


def test_the_schema_of_a_version_is_not_edited_without_another_version(folder: Path) -> None:
    """Whoever has a database of it would never get the change."""
    shutil.copy(RELEASES[-1], folder / FILE_NAME)
    connection = apsw.Connection(str(folder / FILE_NAME))
    assert migrations.find_schema_problems(connection) == []
    connection.close()


def test_an_older_database_is_refused_with_what_to_do_and_left_alone(folder: Path) -> None:
    path = folder / FILE_NAME
    shutil.copy(FORMER, path)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {FORMER_VERSION - 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StorageFailed, match=rf"schema {FORMER_VERSION - 1}, .* `memctl export > FILE`.* `memctl import FILE --mine`"
    ):
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


def test_whose_words_a_memory_is_follows_from_how_it_came_in(folder: Path) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / FILE_NAME
    shutil.copy(FORMER, path)
    sources = ["manual", "mcp", "conversation", "mem0", "langgraph"]
    with closing(apsw.Connection(str(path))) as connection:
        ids = [id for (id,) in connection.execute("SELECT id FROM memories ORDER BY row LIMIT 5")]
        connection.executemany("UPDATE memories SET source = ? WHERE id = ?", list(zip(sources, ids, strict=True)))
        connection.execute("UPDATE memories SET turns = 1 WHERE source = 'conversation'")
        connection.execute("UPDATE history SET before = json_set(before, '$.row.source', 'mcp') WHERE before NOT NULL")
    with running(folder, CountingEmbedder()) as core:
        memories = {memory.id: memory for memory in ask(core, List(reach="all", all_states=True, limit=100))}
        assert [memories[id].origin for id in ids] == ["person", "agent", "heard", "import", "agent"]
        with core.store.reading() as connection:
            origins = connection.execute("SELECT DISTINCT before ->> '$.row.origin' FROM history WHERE before NOT NULL")
            assert origins.fetchall() == [("agent",)]


def test_memories_that_were_shared_with_other_machines_are_this_machines_alone(folder: Path) -> None:
    """It has entries pulled, deleted, erased, in conflict, waiting and refused, and a root that it could only read."""
    (folder / "data").mkdir()
    shutil.copy(SHARING, folder / "data" / FILE_NAME)
    with closing(apsw.Connection(str(SHARING), apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.execute("SELECT count(*) FROM shared_entries").get == 11
        before = connection.execute(_MEMORIES).fetchall()
        links = connection.execute("SELECT * FROM links ORDER BY 1, 2").fetchall()
        past = connection.execute(_HISTORY).fetchall()
    with running(folder, CountingEmbedder()) as core:
        with core.store.reading() as connection:
            assert connection.execute(_MEMORIES).fetchall() == before
            assert connection.execute("SELECT * FROM links ORDER BY 1, 2").fetchall() == links
            assert connection.execute(_HISTORY).fetchall() == past
            assert connection.execute("SELECT name FROM settings WHERE name GLOB 'shared*'").get is None
        assert not [name for _, name, _ in schema(core.store.path) if name.startswith("shared")]
        assert core.store.find_problems() == []
        memories = {memory.id: memory for memory in ask(core, List(reach="all", limit=100))}
        assert len(memories) == len(before) == 11
        for id, memory in memories.items():
            assert id in [hit.id for hit in search(core, memory.content, namespace=memory.namespace, reach="exact")]
            update(core, id, content=f"{memory.content}, says this machine")
        pulled = next(id for id, memory in memories.items() if memory.content == "Deploys happen on Fridays")
        delete(core, pulled)
        assert undo(core).ids == [pulled]


_MEMORIES = """
SELECT m.id, n.name, m.key, m.type, m.content, m.metadata, m.pinned, m.tier, m.created_at, m.superseded_by, m.text_hash
  FROM memories m JOIN namespaces n ON n.id = m.namespace ORDER BY m.row
"""


def test_what_dreams_of_a_workspace_have_seen_is_kept_and_dreams_of_a_namespace_go(folder: Path) -> None:
    path = folder / FILE_NAME
    shutil.copy(FORMER, path)
    dreamt = (
        "INSERT INTO dreams (subject, workspace, at, inputs, result, state, backup) VALUES (?, ?, ?, x'', x'', ?, ?)"
    )
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO workspaces VALUES (7, 'n', '/n', '', 0, 0.0)")
        connection.execute(dreamt, ("workspace 7", 7, 1.0, "done", "old"))
        connection.execute(dreamt, ("workspace 7", 7, 2.0, "unchanged", None))
        connection.execute(dreamt, ("namespace acme", None, 3.0, "done", None))
        connection.execute("INSERT INTO dreamt VALUES (7, x'ab0c', ''), (7, x'01', '2027-01-05')")
    store = Store(folder)
    with store.reading() as connection:
        assert dreams.read_seen(connection, 7) == {b"\xab\x0c": "", b"\x01": "2027-01-05"}
        assert connection.execute("SELECT at, backup FROM dreams ORDER BY id").fetchall() == [(1.0, "old"), (2.0, None)]
    assert store.find_problems() == []
    store.close()


def test_what_was_still_to_be_made_of_turns_is_carried_over(folder: Path) -> None:
    path = folder / FILE_NAME
    shutil.copy(FORMER, path)
    ten_years = 10 * 365 * 86_400.0
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO cognition VALUES ('a1', 'rate'), ('a1', 'embed'), ('b2', 'condense')")
        connection.execute("INSERT INTO thoughts VALUES (1, 's', 'extract', 5.0, 35.0, 2)")
        connection.execute("INSERT INTO thoughts VALUES (1, 's', 'summary', 5.0, ?, 0)", (5.0 + ten_years,))
        heard = (
            "INSERT INTO heard (namespace, session, kind, key, role, created_at, content)"
            " VALUES (1, 's', ?, ?, '', 0, '')"
        )
        connection.executemany(heard, (("extract", "a1"), ("summary", "a1"), ("extract", "b2")))
        connection.execute("INSERT INTO flows VALUES (1, 'extract: not thought about', 3)")
    store = Store(folder)
    with store.reading() as connection:
        waiting = connection.execute("SELECT turn, task, session, due_at, attempts FROM extraction ORDER BY 2, 1")
        assert waiting.fetchall() == [
            ("b2", "condense", None, None, 0),
            ("a1", "embed", None, None, 0),
            ("a1", "extract", "s", 35.0, 2),
            ("b2", "extract", "s", 35.0, 2),
            ("a1", "rate", None, None, 0),
            ("a1", "summary", "s", float("inf"), 0),
        ]
        assert connection.execute("SELECT count FROM flows WHERE kind = 'extract: given up'").get == 3
    assert store.find_problems() == []
    store.close()


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
