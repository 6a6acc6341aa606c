"""A source that was made to harm who imports it: one sentence, nothing imported, limits of memory and time hold."""

import io
import os
import pickle
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_daemon import Memctl

from memoryd.client.programs.importing import child, markdown
from memoryd.client.programs.importing.systems import SYSTEMS
from memoryd.client.programs.memctl import import_, sending
from memoryd.client.transport.sync import Client

SAMPLES = Path(__file__).parent.parent / "data" / "imports"
MEMORY_BYTES = 250 * 1024**2


def refused(memctl: Memctl, *words: str, code: int = 1) -> str:
    done = memctl("import", "--from", *words)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    return str(done.err)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of basic-memory whose project is in a folder elsewhere."""
    shutil.copy(SAMPLES / "basic-memory" / "memory.db", tmp_path)
    elsewhere = tmp_path.with_name(tmp_path.name + "-elsewhere")
    elsewhere.mkdir()
    (elsewhere / "diary.md").write_text("# Diary\n\nNobody else's business\n")
    change(tmp_path / "memory.db", "UPDATE project SET path = ?", str(elsewhere))
    return tmp_path / "memory.db"


def client_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    return folder / "socket"


def change(path: Path, sql: str, *values: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql, values)
    connection.close()


def test_folders_that_a_database_names_are_read_once_they_are_confirmed(
    memctl: Memctl, client: Client, database: Path
) -> None:
    said = refused(memctl, "basic-memory", str(database), code=2)
    assert f"{database.parent}-elsewhere" in said
    assert "give --yes" in said
    assert len(client.list()) == 0
    assert memctl("import", "--from", "basic-memory", str(database), "--yes").code == 0


def test_a_folder_beside_the_database_needs_no_word(memctl: Memctl, client: Client, database: Path) -> None:
    inside = database.parent / "notes"
    inside.mkdir()
    (inside / "one.md").write_text("# One\n\nHerons fish at dawn\n")
    change(database, "UPDATE project SET path = ?", str(inside))
    assert memctl("import", "--from", "basic-memory", str(database)).code == 0


@pytest.mark.parametrize("list_files", [import_._list_files, markdown.list_below])
def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path, list_files: Callable[[Path], Iterator[Path]]) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "one.md").touch()
    assert list(list_files(tmp_path)) == [tmp_path / "one.md"]


def test_what_is_no_file_is_refused_in_a_sentence(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/full"), client_socket(tmp_path)):
        for options in ([], *(["--from", system] for system in SYSTEMS)):
            done = memctl("import", *options, str(path))
            said = f"memctl: {path} is neither a file nor a folder. Nothing was imported.\n"
            assert (done.code, done.err) == (1, said), options


@pytest.mark.parametrize(
    ("system", "name"), [("claude-mem", "claude-mem.db"), ("mem0", "storage.sqlite"), ("mem0", "mem0.json")]
)
def test_a_pipe_in_place_of_a_database_is_not_waited_for(
    memctl: Memctl, tmp_path: Path, system: str, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    if name == "mem0.json":
        (tmp_path / "mem0.faiss").touch()
    assert "is neither a file nor a folder" in refused(memctl, system, str(tmp_path))


def test_a_folder_where_a_file_is_wanted_is_said(memctl: Memctl, tmp_path: Path) -> None:
    assert f"{tmp_path} is a folder, not a file" in refused(memctl, "memori", str(tmp_path))


def test_a_line_or_a_list_without_end_is_refused(
    memctl: Memctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MAX_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(import_, "MAX_LIST_BYTES", 1 << 20)
    for name, beginning in (("lines", b"{"), ("list", b"[\n")):
        with (tmp_path / name).open("wb") as file:
            file.write(beginning)
            file.truncate(1 << 40)  # of zeros that take no room
        done = memctl("import", str(tmp_path / name))
        assert (done.code, len(done.err.splitlines())) == (1, 1)
        assert "1 MiB" in done.err


@pytest.mark.parametrize("limit", ["MAX_LINE_BYTES", "MAX_SPOOL_BYTES"])
def test_standard_input_without_end_is_refused(memctl: Memctl, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(sending if limit == "MAX_LINE_BYTES" else import_, limit, 1 << 20)
    with open("/dev/zero" if limit == "MAX_LINE_BYTES" else os.devnull, "rb") as endless:
        lines = endless if limit == "MAX_LINE_BYTES" else io.BytesIO(b"{}\n" * (1 << 20))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(lines)))  # type: ignore[arg-type]
        done = memctl("import", "-")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "is longer than" in done.err


def test_a_view_in_place_of_a_table_is_no_table(memctl: Memctl, database: Path) -> None:
    change(database, "ALTER TABLE project RENAME TO former")
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, '' AS name, '' AS path"
    change(database, f"CREATE VIEW project AS {endless} FROM n")
    assert "it has no table project" in refused(memctl, "basic-memory", str(database))


def write_qdrant(tmp_path: Path, payload: Any) -> Path:
    """Write a store of mem0 in Qdrant's local mode, whose points are pickles."""
    path = tmp_path / "storage.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        point = pickle.dumps(SimpleNamespace(id="one", payload=payload))
        connection.execute("INSERT INTO points VALUES ('one', ?)", (point,))
    return path


def test_what_holds_itself_is_left_out_or_refused(memctl: Memctl, tmp_path: Path) -> None:
    endless: dict[str, Any] = {"data": "Herons fish at dawn"}
    endless["me"] = endless
    done = memctl("import", "--from", "mem0", str(write_qdrant(tmp_path, endless)), "--dry-run")
    assert "Traceback" not in done.err
    assert "contain themselves" in done.out + done.err or "nested too deeply" in done.err


@pytest.mark.slow
def test_a_small_pickle_cannot_take_all_memory(tmp_path: Path) -> None:
    bomb: Any = ["x" * 64]
    for _ in range(40):
        bomb = [bomb, bomb]
    path = write_qdrant(tmp_path, {"data": "Herons fish at dawn", "bomb": bomb})
    assert path.stat().st_size < 20_000

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    command = [sys.executable, "-P", "-m", child.__name__, "mem0", str(path), ""]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, timeout=60, check=False)
    assert done.returncode == child.FAILED
    assert done.stdout == b""
    assert done.stderr.decode().strip() == f"{path} needs more memory than an import may take. Nothing was imported."


def test_the_limits_hold_in_the_process_that_reads() -> None:
    code = f"from {child.__name__} import *; set_limits(); print(resource.getrlimit(resource.RLIMIT_AS)[0])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True, timeout=60)
    assert 0 < int(done.stdout) <= child.MEMORY_BYTES


def test_a_database_with_bytes_that_are_no_text_is_damaged(memctl: Memctl, tmp_path: Path) -> None:
    data = (SAMPLES / "memori.db").read_bytes()
    (tmp_path / "memori.db").write_bytes(data[:8954] + b"\x80" + data[8954:])
    assert "it is damaged" in refused(memctl, "memori", str(tmp_path / "memori.db"))


def test_a_line_of_no_type_is_no_memory(memctl: Memctl, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_bytes(b'{"":"entity","name":"a","entityType":"b","observations":[]}\n')
    assert "no line is an entity or a relation" in refused(memctl, "mcp-memory", str(file))
