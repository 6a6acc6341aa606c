"""A copy that somebody else made: nothing comes with it that acts later, and no token that nobody here gave out."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memoryd.client.errors import Conflict, StorageFailed
from memoryd.client.protocol import AddToken, Delete, Erase, NewTurn, Observe, Undo
from memoryd.daemon.store import erasures, upkeep
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.upkeep import rescue
from memoryd.daemon.upkeep.rescue import Restored
from workbench import CountingEmbedder, add, ask, running

TRIGGER = "CREATE TRIGGER leak AFTER INSERT ON memories BEGIN INSERT INTO stolen VALUES (new.content); END"


@pytest.fixture
def copy(folder: Path) -> Path:
    """A database with a memory and a token."""
    with running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
        core.tokens.add(AddToken(name="ours", namespace="acme")).result(30)
    shutil.copy(folder / "data" / FILE_NAME, folder / "copy.sqlite")
    return folder / "copy.sqlite"


def change(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for sql in statements:
        connection.execute(sql)
    connection.close()


def restore(copy: Path, keep_tokens: bool = False) -> Restored:
    target = copy.parent / "restored"
    target.mkdir()
    return rescue.restore(copy, target, copy.parent / "data" / FILE_NAME, keep_tokens)


def read_names(copy: Path) -> set[str]:
    connection = apsw.Connection(str(copy.parent / "restored" / FILE_NAME))
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    return names


def test_triggers_views_and_tables_of_others_are_dropped_and_shown(copy: Path) -> None:
    change(
        copy,
        "CREATE TABLE stolen (content TEXT)",
        TRIGGER,
        "CREATE VIEW seen AS SELECT content FROM memories",
        "CREATE INDEX own ON memories (summary)",
    )
    found = restore(copy)
    assert found.dropped == ["trigger leak", "view seen", "index own", "table stolen"]
    assert found.memories == 1
    assert read_names(copy).isdisjoint({"leak", "seen", "own", "stolen"})


def test_a_trigger_that_was_changed_is_made_again(copy: Path) -> None:
    change(
        copy,
        "DROP TRIGGER memories_added",
        "CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN DELETE FROM tokens; END",
        "DROP INDEX memories_created",
    )
    assert restore(copy).dropped == ["trigger memories_added"]
    store = Store(copy.parent / "restored")
    assert store.find_problems() == []
    store.close()


def test_another_table_under_a_known_name_is_refused(copy: Path) -> None:
    change(copy, "ALTER TABLE settings ADD COLUMN more TEXT")
    with pytest.raises(StorageFailed, match="The table settings differs from"):
        restore(copy)


def test_tokens_that_are_not_in_force_here_are_left_out_unless_they_are_wanted(copy: Path) -> None:
    change(
        copy, "INSERT INTO tokens (name, hash, namespace, role, created_at) VALUES ('theirs', x'00', '', 'lead', 1.0)"
    )
    assert restore(copy).left_out["tokens"] == ["theirs (lead of the root)"]
    shutil.rmtree(copy.parent / "restored")
    assert restore(copy, keep_tokens=True).left_out["tokens"] == []


def test_a_folder_that_is_not_observed_and_is_not_here_is_named(copy: Path) -> None:
    change(
        copy,
        f"INSERT INTO pauses VALUES ('folder', '/nowhere/private', 1.0), ('folder', '{copy.parent}', 1.0)",
        "INSERT INTO pauses VALUES ('session', 'monday', 1.0)",
    )
    assert restore(copy).left_out["pauses"] == ["/nowhere/private"]


def test_what_is_of_others_in_the_database_itself_is_named_and_dropped_by_repair(copy: Path) -> None:
    data = copy.parent / "data"
    change(data / FILE_NAME, "CREATE TABLE stolen (content TEXT)", TRIGGER)
    with closing(Store(data)) as store:
        named = ["trigger leak", "table stolen"]
        assert store.find_problems() == [f"schema: the {name} is not part of memoryd" for name in named]
        store.rebuild().result()
        assert store.find_problems() == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIRTUAL TABLE theirs USING fts5 (content)",
        "CREATE TABLE theirs (token INTEGER REFERENCES tokens (id))",
        "CREATE TABLE theirs (m TEXT REFERENCES memories (summary) ON DELETE CASCADE)",
    ],
)
def test_a_table_of_others_that_could_keep_rows_or_break_deletes_does_not_come_with_a_copy(
    copy: Path, sql: str
) -> None:
    change(copy, sql)
    assert "table theirs" in restore(copy).dropped
    with closing(Store(copy.parent / "restored")) as store:
        assert store.find_problems() == []


def test_what_was_erased_here_is_erased_again_from_an_older_copy(folder: Path) -> None:
    """What the copy has as deleted, too. It is noted: an import leaves it out, and a backfill its session."""
    with running(folder, CountingEmbedder()) as core:
        kept, gone, deleted = (add(core, f"The shelf holds {word}").id for word in ("jars", "herons", "owls"))
        ask(core, Observe(turns=[NewTurn(role="user", content="We decided to sell the herons")], session="s1"))
        ask(core, Erase(ids=[deleted]))
        former = add(core, "The shelf holds wombats").id
        ask(core, Delete(ids=[former]))
        upkeep.clear_log(core.store)
        shutil.copy(folder / "data" / FILE_NAME, folder / "copy.sqlite")
        ask(core, Erase(ids=[gone, former]))
        later = add(core, "The shelf holds bees").id
        ask(core, Erase(ids=[later]))
        ask(core, Erase(session="s1"))
    report = restore(folder / "copy.sqlite").left_out
    assert {gone, former} <= set(report["erased"])
    assert not {kept, deleted, later} & set(report["erased"])
    with closing(Store(folder / "restored")) as store:
        with store.reading() as connection:
            assert erasures.was_erased_from(connection, "s1")
            every = [kept, gone, deleted, former, later]
            assert erasures.select_erased(connection, every) == {gone, deleted, former, later}
        assert store.find_problems() == []
    restored = b"".join(path.read_bytes() for path in (folder / "restored").iterdir())
    assert [word for word in (b"herons", b"wombat", b"jars") if word in restored] == [b"jars"]
    (folder / "restored").rename(folder / "restored-data")
    (folder / "restored").mkdir()
    (folder / "restored-data").rename(folder / "restored/data")
    with running(folder / "restored", CountingEmbedder()) as core, pytest.raises(Conflict, match="for good"):
        ask(core, Undo())
