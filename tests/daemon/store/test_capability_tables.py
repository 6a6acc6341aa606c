"""The tables of a capability that is added, taken out and put back, on a database that is in use."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from typing import Any

import apsw
import pytest

from memoryd.client.capabilities import CAPABILITIES, CapabilityEntry
from memoryd.client.errors import StorageFailed
from memoryd.daemon.capability import Capability, installed_by_name
from memoryd.daemon.store import migrations, rescue
from memoryd.daemon.store.store import FILE_NAME, Store
from taking_out import only
from workbench import LIMIT_S, insert


def disarm(connection: Any, in_force: Collection[Any]) -> dict[str, list[str]]:
    connection.execute("UPDATE noted SET at = 'disarmed'")
    return {"notes": ["all"]}


NOTES = Capability(
    tables="""
CREATE TABLE noted (memory INTEGER PRIMARY KEY, at TEXT NOT NULL DEFAULT 'added') STRICT;
CREATE INDEX noted_at ON noted (at);
CREATE TRIGGER note_added AFTER INSERT ON memories BEGIN INSERT INTO noted (memory) VALUES (new.row); END;
""",
    clear=lambda connection: connection.execute("INSERT OR IGNORE INTO noted SELECT row, 'later' FROM memories"),
    disarm=disarm,
)


class Use:
    """Has some capabilities installed from now on, and no other."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, *given: Capability) -> None:
        self._stack.close()
        self._stack.enter_context(only(**({"notes": given[0]} if given else {})))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    monkeypatch.setitem(CAPABILITIES, "notes", CapabilityEntry("notes", tables=("noted",)))
    with ExitStack() as stack:
        yield Use(stack)


def add(store: Store) -> None:
    insert(store, "It is blue", id=token_hex(16))


def read_notes(store: Store) -> list[Any]:
    with store.reading() as connection:
        return [at for (at,) in connection.execute("SELECT at FROM noted ORDER BY memory")]


def test_a_capability_that_is_added_to_a_database_gets_its_tables(folder: Path, use: Use) -> None:
    use()
    with closing(Store(folder)) as store:
        add(store)
        assert store.find_problems() == []
    use(NOTES)
    with closing(Store(folder)) as store:
        add(store)
        assert read_notes(store) == ["later", "added"]
        assert store.find_problems() == []


def test_one_that_is_taken_out_leaves_its_rows_and_nothing_that_acts(folder: Path, use: Use) -> None:
    use(NOTES)
    with closing(Store(folder)) as store:
        add(store)
    use()
    with closing(Store(folder)) as store:
        add(store)
        assert read_notes(store) == ["added"]
        assert store.find_problems() == []
        store.rebuild().result(LIMIT_S)
        assert read_notes(store) == ["added"]


def test_one_that_is_put_back_sees_again_what_happens_and_is_told_that_it_missed_something(
    folder: Path, use: Use
) -> None:
    for capabilities in ([NOTES], [], [NOTES]):
        use(*capabilities)
        with closing(Store(folder)) as store:
            add(store)
            noted = read_notes(store)
    assert noted == ["added", "later", "added"]


def test_the_names_of_all_tables_of_capabilities_are_known_without_them() -> None:
    for name, capability in installed_by_name().items():
        assert set(CAPABILITIES[name].tables) == set(migrations._TABLES.findall(capability.tables)), name


def rescued(folder: Path, how: str) -> Path:
    """Restore a database, or read it out, into another folder; return that."""
    there = folder / how
    there.mkdir()
    if how == "restore":
        assert rescue.restore(folder / FILE_NAME, there).dropped == []
    else:
        assert rescue.recover(folder / FILE_NAME, there).damaged == []
    return there


def change(path: Path, sql: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)


def read_names(folder: Path, table: str) -> set[str]:
    with closing(apsw.Connection(str(folder / FILE_NAME))) as connection:
        found: Any = connection.execute("SELECT type || ' ' || name FROM sqlite_schema WHERE tbl_name = ?", (table,))
        return {name for (name,) in found}


@pytest.mark.parametrize("how", ["restore", "recover"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_rescue_keeps_the_rows_of_one_that_is_taken_out(folder: Path, use: Use, how: str, number: int) -> None:
    use(NOTES)
    with closing(Store(folder)) as store:
        for _ in range(number):
            add(store)
    use()
    with closing(Store(folder)) as store:
        add(store)
    there = rescued(folder, how)
    assert read_names(there, "noted") == {"table noted", "index noted_at"}
    with closing(Store(there)) as store:
        assert read_notes(store) == ["added"] * number
        assert store.find_problems() == []
    use(NOTES)
    with closing(Store(there)) as store:
        assert read_notes(store) == ["disarmed" if how == "restore" else "added"] * number + ["later"]
        assert store.find_problems() == []
    with closing(Store(there)) as store:  # once
        assert read_notes(store)[-1] == "later"


def test_another_table_under_the_name_of_one_that_is_taken_out_is_made_anew_when_it_is_put_back(
    folder: Path, use: Use
) -> None:
    use()
    with closing(Store(folder)) as store:
        add(store)
    change(folder / FILE_NAME, "CREATE TABLE noted (other TEXT)")
    there = rescued(folder, "restore")
    use(NOTES)
    with closing(Store(there)) as store:
        assert read_notes(store) == ["later"]
        assert store.find_problems() == []


@pytest.mark.parametrize("is_here", [False, True])
def test_a_restore_keeps_the_rows_of_a_part_that_nothing_names_any_more_where_the_database_here_has_its_table(
    folder: Path, use: Use, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    use(NOTES)
    with closing(Store(folder)) as store:
        add(store)
    use()
    monkeypatch.delitem(CAPABILITIES, "notes")
    there = folder / "restored"
    there.mkdir()
    restored = rescue.restore(folder / FILE_NAME, there, folder / FILE_NAME if is_here else None)
    dropped = ["trigger note_added", "index noted_at", "table noted"]
    assert restored.dropped == (dropped[:1] if is_here else dropped)
    monkeypatch.setitem(CAPABILITIES, "notes", CapabilityEntry("notes", tables=("noted",)))
    use(NOTES)
    with closing(Store(there)) as store:
        assert read_notes(store) == ["disarmed" if is_here else "later"]
        assert store.find_problems() == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW noted AS SELECT content FROM memories",
        "CREATE VIRTUAL TABLE noted USING fts5 (content)",
        "CREATE TABLE noted (token INTEGER REFERENCES tokens (id))",
    ],
)
def test_what_could_act_under_the_name_of_one_that_is_taken_out_does_not_come_with_a_copy(
    folder: Path, use: Use, sql: str
) -> None:
    use()
    with closing(Store(folder)) as store:
        add(store)
    change(folder / FILE_NAME, sql)
    there = folder / "restored"
    there.mkdir()
    kind = "view" if "VIEW" in sql else "table"
    assert rescue.restore(folder / FILE_NAME, there).dropped[0] == f"{kind} noted"
    assert read_names(there, "noted") == set()


def test_a_reference_that_would_break_every_delete_is_refused_with_the_copy(folder: Path, use: Use) -> None:
    use()
    with closing(Store(folder)) as store:
        add(store)
    change(folder / FILE_NAME, "CREATE TABLE noted (m TEXT REFERENCES memories (summary) ON DELETE CASCADE)")
    (folder / "restored").mkdir()
    with pytest.raises(StorageFailed, match="Nothing was changed"):
        rescue.restore(folder / FILE_NAME, folder / "restored")
