"""doctor, the database and its copies: damage done for real, on real files."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl
from findings import Doctor

from configs import NO_MODEL
from memoryd.daemon.store.connection import PAGE_BYTES
from memoryd.daemon.store.copies import copy
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import Process, insert


@pytest.fixture
def resting(folder: Path) -> Path:
    """The database of a daemon that does not run."""
    (folder / "data").mkdir(mode=0o700)
    Store(folder / "data").close()
    return folder / "data" / FILE_NAME


@pytest.fixture
def own(folder: Path) -> Iterator[Any]:
    """A real daemon that a test may spoil."""
    running = Process(folder, NO_MODEL).start()
    yield running
    running.stop()


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.slow
def test_a_file_that_is_no_database_is_told(doctor: Doctor, resting: Path) -> None:
    resting.write_bytes(b"nonsense" * 1000)
    found = doctor()
    assert found["database"]["state"] == "fail"
    assert "not a database" in found["database"]["message"]
    assert found["database"]["fix"] == "memctl repair --recover", "there is no copy"
    (resting.parent / "backups").mkdir()
    (resting.parent / "backups" / "memoryd-20260101T000000Z.sqlite").touch()
    assert doctor("database")["database"]["fix"] == "memctl restore latest"
    assert "schema" not in found, "nothing can be told of it"


@pytest.mark.slow
def test_a_database_that_was_emptied_is_told_and_not_begun_anew_while_there_are_copies(
    doctor: Doctor, memctl: Memctl, resting: Path, folder: Path
) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    store = Store(resting.parent)
    insert(store, "Herons fish at dawn")
    (resting.parent / "backups").mkdir()
    copy(store, resting.parent / "backups" / "memoryd-20260101T000000Z.sqlite", lambda: None)
    store.close()
    resting.write_bytes(b"")
    found = doctor("database")["database"]
    assert (found["message"], found["fix"]) == (f"{resting} has 0 bytes", "memctl restore latest")
    refused = memctl("up")
    assert (refused.code, "`memctl restore latest`" in refused.err) == (3, True)


def test_a_page_that_was_overwritten_is_told(doctor: Doctor, resting: Path) -> None:
    with resting.open("r+b") as file:
        file.seek(8 * PAGE_BYTES)
        file.write(os.urandom(8 * PAGE_BYTES))
    found = doctor("database")["database"]
    assert (found["state"], "damaged" in found["message"]) == ("fail", True)
    assert found["fix"] == "memctl repair --recover", "a copy lacks what was stored since"


@pytest.mark.slow
def test_full_text_that_is_damaged_is_repaired(doctor: Doctor, memctl: Memctl, own: Any) -> None:
    memctl("add", "We use Valkey as the cache")
    assert doctor("database")["database"]["message"] == "verified, 1 memory"
    spoil(own.data / FILE_NAME, "DELETE FROM memories_fts_docsize")
    assert doctor("database")["database"]["state"] == "fail"
    assert doctor("database", "--fix", "--yes")["database"]["mended"] is True
    assert memctl("search", "Valkey", "--json").json[0]["content"] == "We use Valkey as the cache"


def test_a_database_near_its_limit_is_told(doctor: Doctor, memctl: Memctl, folder: Path) -> None:
    limited = Process(folder, f"{NO_MODEL}[storage]\nmax_size_mb = 2\n").start()
    try:
        assert doctor("size-limit")["size-limit"]["state"] == "ok"
        while memctl("add", "word " * 8000).code == 0:
            pass
        found = doctor("size-limit")["size-limit"]
    finally:
        limited.stop()
    assert found["state"] in ("warn", "fail")
    assert "raise `max_size_mb`" in found["fix"]


def test_a_database_of_a_newer_memoryd_is_told(doctor: Doctor, resting: Path) -> None:
    spoil(resting, "PRAGMA user_version = 999")
    found = doctor("database")["database"]
    assert (found["state"], "written by a newer memoryd (schema 999" in found["message"]) == ("fail", True)


@pytest.mark.slow
def test_a_database_with_another_model_than_the_settings_is_told(doctor: Doctor, resting: Path) -> None:
    assert "the settings name" not in doctor("model")["model"]["message"], "a new database has none"
    spoil(resting, "INSERT INTO settings (name, value) VALUES ('model', 'none')")
    found = doctor("model")["model"]
    assert (found["state"], found["fix"]) == ("warn", "memctl model use all-MiniLM-L6-v2")


# Copies --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_late_copy_is_made(doctor: Doctor, memctl: Memctl, own: Any) -> None:
    assert doctor("backup")["backup"]["message"] == "there is no copy yet, the job makes one"
    memctl("add", "one")
    memctl("observe", "We decided that the cache is Valkey")
    memctl("jobs", "run", "backup")
    [copy] = (own.data / "backups").iterdir()
    assert doctor("backup")["backup"]["message"] == "1 copy of the database"
    earlier = copy.with_name("memoryd-20260101T000000Z.sqlite")
    copy.rename(earlier)
    os.utime(earlier, (time.time() - 10 * 86400,) * 2)
    assert doctor("backup")["backup"]["state"] == "ok", "nothing was changed since"
    memctl("add", "two")
    found = doctor("backup")["backup"]
    assert found["message"] == "the latest copy is 10 days old and the database was changed since"
    mended = doctor("backup", "--fix", "--yes")["backup"]
    assert (mended["mended"], mended["message"]) == (True, "2 copies of the database")


@pytest.mark.slow
def test_a_database_without_copies_is_told(doctor: Doctor, resting: Path, folder: Path) -> None:
    spoil(resting, "INSERT INTO sqlite_sequence (name, seq) VALUES ('operations', 3)")
    os.utime(resting, (time.time() - 2 * 86400,) * 2)
    found = doctor("backup")["backup"]
    assert (found["message"], found["fix"]) == ("there is no copy of the database", "memctl up; memctl backup")
    (folder / "config.toml").write_text("[jobs]\nbackups = 0\n")
    assert doctor("backup")["backup"]["message"].startswith("no copies of the database are made")


@pytest.mark.slow
def test_a_copy_that_does_not_open_is_told(doctor: Doctor, resting: Path) -> None:
    copy = resting.parent / "backups" / "memoryd-20260101T000000Z.sqlite"
    copy.parent.mkdir()
    shutil.copy(resting, copy)
    assert doctor("backup")["backup"]["state"] == "ok"
    assert list(copy.parent.iterdir()) == [copy], "looking leaves nothing behind"
    copy.write_bytes(b"nonsense" * 1000)
    assert "cannot be read" in doctor("backup")["backup"]["message"]
    with copy.open("wb") as file:
        whole, page = resting.read_bytes(), PAGE_BYTES
        file.write(whole[: 8 * page] + os.urandom(8 * page) + whole[16 * page :])
    assert "is damaged" in doctor("backup")["backup"]["message"]
