"""An old file is written again into larger pages: whatever kills that, nothing is lost and it comes to its end."""

import os
import signal
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.daemon.store import migrations, pages
from memoryd.daemon.store.connection import PAGE_BYTES
from memoryd.daemon.store.store import FILE_NAME, Store

NUMBER = 400
MEMORY = (
    "INSERT INTO memories (id, namespace, type, source, tier, importance, created_at, updated_at, content_hash,"
    " text_hash, summary, metadata, neighbours, content)"
    " VALUES (?, 1, 'fact', 'manual', 'L1', 0.5, ?, ?, x'00', ?, '', '{}', '', ?)"
)


@pytest.fixture
def old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of the third schema, with pages of 4,096 bytes and a log that was not folded in; its path."""
    path = folder / FILE_NAME
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", 4096)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[: pages.LAST_SMALL])
        migrations.migrate(connection)
    connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO namespaces VALUES (1, 'acme')")
    connection.execute("INSERT INTO models VALUES (1, 'words', 'words-1', 384)")
    connection.execute("INSERT INTO settings VALUES ('model', 'words')")
    for n in range(NUMBER):
        key = n.to_bytes(32, "big")
        connection.execute(MEMORY, (f"{n:032x}", n, n, key, f"Crane {n} " + "stands in the reeds " * (n % 200)))
        connection.execute(
            "INSERT INTO vec_embeddings (model, text_hash, vector) VALUES (1, ?, ?)", (key, b"\0\0\x80\x3f" * 384)
        )
    connection.execute("DELETE FROM memories WHERE row > 390")
    connection.execute("INSERT INTO links VALUES (?, ?, 'related', 1)", (f"{1:032x}", f"{2:032x}"))
    connection.execute("COMMIT")
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("INSERT INTO settings VALUES ('in', 'the log')")
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    assert path.with_name(FILE_NAME + "-wal").stat().st_size > 0
    return path


def read_all(path: Path) -> dict[str, list[Any]]:
    connection = apsw.Connection(str(path))
    try:
        listed: Any = connection.execute("SELECT name FROM pragma_table_list WHERE type IN ('table', 'shadow')")
        columns = {name: "*" for (name,) in listed.fetchall() if name != "sqlite_temp_schema"}
        columns["sqlite_schema"] = "type, name, sql"
        return {
            name: sorted(map(repr, connection.execute(f"SELECT {listed} FROM {name}")))
            for name, listed in columns.items()
        }
    finally:
        connection.close()


def page_size(path: Path) -> Any:
    connection = apsw.Connection(str(path))
    try:
        return connection.pragma("page_size")
    finally:
        connection.close()


def is_killed_at(path: Path, place: int) -> bool:
    """Renew a file in a child that kills itself when it reports for the `place`-th time."""
    left = place

    def tell(done: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        os._exit(0 if pages.renew(path, tell) else 3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_a_file_that_is_killed_again_and_again_comes_over_whole(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_all(old)
    monkeypatch.setattr(pages, "_BATCH", 40)
    monkeypatch.setattr(pages, "_STEPS", 2_000)  # in the midst of transactions as well
    place = 1
    while is_killed_at(old, place):
        assert page_size(old) == 4096  # the former file, until the new one is whole
        place += 29
    assert place > 100
    assert read_all(old) == before
    assert page_size(old) == PAGE_BYTES
    assert [path.name for path in old.parent.iterdir()] == [FILE_NAME]


def test_it_continues_where_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_BATCH", 40)
    assert is_killed_at(old, 30)
    told: list[str] = []
    assert pages.renew(old, told.append)
    assert "backlog: 0 rows" in told
    assert "memories: 40 rows" not in told
    assert "memories: 390 rows" in told


def test_the_store_of_a_renewed_file_is_sound_and_renewed_once(old: Path) -> None:
    store = Store(old.parent)
    try:
        assert [text for text in store.find_problems() if "hashes" not in text] == []
        with store.reading() as connection:
            assert connection.execute("SELECT value FROM settings WHERE name = 'in'").get == "the log"
            assert connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'memories'").get == NUMBER
    finally:
        store.close()
    assert not pages.renew(old)


def test_a_file_that_was_written_to_meanwhile_is_copied_from_the_start(old: Path) -> None:
    assert is_killed_at(old, 40)
    connection = apsw.Connection(str(old))
    connection.execute("UPDATE memories SET content = 'It flew away' WHERE row = 1")
    connection.close()
    before = read_all(old)
    assert pages.renew(old)
    assert read_all(old) == before


def test_what_differs_at_the_end_does_not_replace_the_former_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_all(old)
    part = old.parent / "upgrade.part" / FILE_NAME

    def spoil(done: str) -> None:
        if done == "backlog: compared":
            connection = apsw.Connection(str(part))
            connection.execute("UPDATE vec_embeddings SET vector = x'00' WHERE id = 200")
            connection.close()

    assert not pages.renew(old, spoil)
    assert read_all(old) == before
    assert page_size(old) == 4096
    assert [path.name for path in old.parent.iterdir()] == [FILE_NAME]


def test_without_room_for_both_the_file_keeps_its_pages(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_ROOM", 1e12)
    Store(old.parent).close()
    assert page_size(old) == 4096


@pytest.mark.parametrize(("dimensions", "size"), [(256, 8192), (384, 8192), (768, 16384), (1024, 4096), (1536, 4096)])
def test_pages_are_those_that_vectors_waste_least_of(dimensions: int, size: int) -> None:
    assert pages.best_size(dimensions) == size
