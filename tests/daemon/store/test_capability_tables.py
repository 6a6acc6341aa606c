"""The tables of a capability that is added, taken out and put back, on a database that is in use."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

import pytest

from memoryd.daemon import capability
from memoryd.daemon.capability import Capability
from memoryd.daemon.store import migrations, schema
from memoryd.daemon.store.store import Store
from workbench import LIMIT_S, insert

NOTES = Capability(
    tables="""
CREATE TABLE noted (memory INTEGER PRIMARY KEY, at TEXT NOT NULL DEFAULT 'added') STRICT;
CREATE INDEX noted_at ON noted (at);
CREATE TRIGGER note_added AFTER INSERT ON memories BEGIN INSERT INTO noted (memory) VALUES (new.row); END;
""",
    clear=lambda connection: connection.execute("INSERT OR IGNORE INTO noted SELECT row, 'later' FROM memories"),
)

Use = Callable[..., None]


def forget() -> None:
    for cached in (capability.installed, schema.build_schema, migrations._read_expected):
        cached.cache_clear()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """Have some capabilities installed, and no other."""

    def install(*given: Capability) -> None:
        modules = {f"capability_{number}": SimpleNamespace(CAPABILITY=one) for number, one in enumerate(given)}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
        monkeypatch.setattr(capability, "list_modules", lambda side, module: {name: name for name in modules})
        forget()

    yield install
    monkeypatch.undo()
    forget()


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
