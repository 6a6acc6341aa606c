"""Where the daemon is and writes: not where it was started, its log within bounds, temporary files beside its data."""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client, MemorydError
from memoryd.client.protocol import Shutdown
from memoryd.client.transport.spawn import is_answering
from memoryd.daemon import config
from memoryd.daemon.system import log_lines, process
from waiting import wait_until

NO_MODEL = '[model]\nname = "none"\nfetch = false\nfolder = "models"\n'


@pytest.fixture
def work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a client happens to be; everything else is named relative to it. A daemon there is ended."""
    made = folder / "work"
    made.mkdir()
    (made / "config.toml").write_text(NO_MODEL)
    monkeypatch.chdir(made)
    for name, place in (("SOCKET", "../run/s"), ("DATA_DIR", "../data"), ("CONFIG", "config.toml")):
        monkeypatch.setenv(f"MEMORYD_{name}", place)
    monkeypatch.delenv("MEMORYD_NAMESPACE", raising=False)
    yield made
    with suppress(MemorydError), Client(socket=folder / "run" / "s", autostart=False) as client:
        pid = client.status().pid
        client.call(Shutdown())
        wait_until(lambda: not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text())


# The working directory -----------------------------------------------------------------------------------------------


def test_a_daemon_that_a_client_started_is_not_where_the_client_was(folder: Path, work: Path) -> None:
    """It keeps its log small, and deletes what a killed one left in its folder of temporary files."""
    left, log = folder / "data" / "tmp", folder / "data" / "memoryd.log"
    (left / "pip-unpack-1").mkdir(parents=True)
    (left / "pip-unpack-1" / "wheel").write_text("x")
    (left / "etilqs_1").write_text("x")
    log.write_text("an old line\n" * 1_000_000)
    with Client() as client:
        status = client.status()
        assert list(left.iterdir()) == []
        wait_until(lambda: "ready: socket" in log.read_text())
        assert {os.readlink(f"/proc/{status.pid}/fd/{number}") for number in (1, 2)} == {str(log)}
        assert list(files(log)) == ["memoryd.log", "memoryd.log.1"]
        assert max(files(log).values()) <= 5_000_000
        client.add("kept")
        assert os.readlink(f"/proc/{status.pid}/cwd") == "/"
        assert (status.data_dir, status.socket) == (str(folder / "data"), str(folder / "run" / "s"))
        os.chdir(folder)
        shutil.rmtree(work)
        client.call(Shutdown(restart=True))  # relative words of the first start would lead elsewhere now
        wait_until(lambda: log.read_text().count("ready: socket") == 2)
        again = client.status()
        assert (again.pid, again.data_dir, again.socket) == (status.pid, status.data_dir, status.socket)
        assert client.list()[0].content == "kept"


@pytest.mark.slow
def test_relative_options_are_those_of_the_folder_of_the_start(folder: Path, work: Path) -> None:
    (work / "clock").touch()
    named = {"socket": "s", "data-dir": "d", "config": "config.toml", "log-file": "log", "clock": "clock"}
    words = [word for name, value in named.items() for word in (f"--{name}", value)]
    with subprocess.Popen([sys.executable, "-m", "memoryd.daemon", *words]) as child:
        try:
            wait_until(lambda: is_answering(work / "s"))
            with Client(socket=work / "s", autostart=False) as client:
                wait_until(lambda: _answers(client))
                options = client.status().options
                assert [options[options.index(word) + 1] for word in words[::2]] == [str(work / v) for v in words[1::2]]
                client.call(Shutdown(restart=True))
                wait_until(lambda: (work / "log").read_text().count("ready: socket") == 2)
                assert client.status().data_dir == str(work / "d")
                line = Path(f"/proc/{child.pid}/cmdline").read_bytes().decode().split("\0")
                assert [line[line.index(word) + 1] for word in words[::2]] == [str(work / word) for word in words[1::2]]
        finally:
            child.terminate()
    assert not (work / "s").exists()


def _answers(client: Client) -> bool:
    with suppress(MemorydError):
        return bool(client.status().pid)
    return False


def test_a_relative_path_in_the_settings_is_beside_them(folder: Path) -> None:
    (folder / "c.toml").write_text('[model]\nfolder = "m"\n[llm]\nkey_file = "k"\n[embedding_api]\nkey_file = "~/k"\n')
    found = config.load(folder / "c.toml")
    assert (found.model.folder, found.llm.key_file) == (str(folder / "m"), str(folder / "k"))
    assert found.embedding_api.key_file == "~/k"


def test_places_of_the_environment_are_absolute_for_children(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MEMORYD_MODEL_DIR", "m")
    monkeypatch.setenv("PYTHONPATH", f"src{os.pathsep}/usr")
    process.leave_working_directory()
    assert os.getcwd() == "/"
    assert os.environ["MEMORYD_MODEL_DIR"] == str(folder / "m")
    assert os.environ["PYTHONPATH"] == f"{folder}/src{os.pathsep}/usr"


# Temporary files -----------------------------------------------------------------------------------------------------


SPILL = """
import os, sys
from pathlib import Path
from memoryd.daemon.system import process
import apsw, tempfile
folder = Path(sys.argv[1])
process.keep_temporary_files(folder)
connection = apsw.Connection(":memory:")
connection.pragma("temp_store", "file")
connection.execute("CREATE TEMP TABLE t (x)")
connection.execute("BEGIN")
for _ in range(3000):
    connection.execute("INSERT INTO t VALUES (randomblob(5000))")
python = tempfile.TemporaryFile()
links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
opened = [os.readlink(link) for link in links if os.path.islink(link)]
print(sum(path.startswith(f"{folder}/tmp/") for path in opened if "(deleted)" in path))
"""


def test_what_sqlite_and_python_spill_is_beside_the_data(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SPILL, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
    assert (folder / "tmp").stat().st_mode & 0o777 == 0o700


def test_a_link_to_another_folder_for_temporary_files_is_left_alone(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "precious").touch()
    (folder / "tmp").symlink_to(folder / "elsewhere")
    process.clear(folder / "tmp")
    assert (folder / "elsewhere" / "precious").exists()


# The log -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Path]]:
    """Keep this process's log in a file, at most so many kB of it; stdout and stderr are as before after the test."""
    root, kept = logging.getLogger(), [os.dup(1), os.dup(2)]
    handlers, level = root.handlers, root.level

    def keep(max_kb: int) -> Path:
        stderr = logging.StreamHandler()
        stderr.setFormatter(log_lines._LineFormatter(under_systemd=False))
        root.handlers, root.level = [stderr], logging.INFO
        monkeypatch.setattr(log_lines, "MAX_BYTES", max_kb * 1000)
        log_lines.keep_in_file(folder / "memoryd.log")
        return folder / "memoryd.log"

    yield keep
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level
    for number, descriptor in enumerate(kept, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)


def files(path: Path) -> dict[str, int]:
    return {found.name: found.stat().st_size for found in sorted(path.parent.glob(f"{path.name}*"))}


def test_the_log_is_three_files_of_bounded_size_and_stderr_goes_with_it(in_file: Callable[[int], Path]) -> None:
    path = in_file(10)
    for number in range(1000):
        logging.getLogger("memoryd.daemon").info("event %d", number)
        if number % 100 == 0:
            os.write(2, b"a native library's line %d\n" % number)
    os.write(2, b"the last line\n")
    assert list(files(path)) == ["memoryd.log", "memoryd.log.1", "memoryd.log.2"]
    assert max(files(path).values()) <= 10_000
    assert {found.stat().st_mode & 0o777 for found in path.parent.glob("memoryd.log*")} == {0o600}
    assert path.read_text().endswith("the last line\n")
    assert "event 999" in path.read_text()


def test_what_libraries_write_to_stderr_alone_is_bounded_too(in_file: Callable[[int], Path]) -> None:
    path = in_file(10)
    loop: Any = asyncio.new_event_loop()
    os.write(2, b"x" * 100_000 + b"the end")
    log_lines.keep_bounded(loop)
    loop.close()
    assert files(path) == {"memoryd.log": 0, "memoryd.log.1": 10_000}
    assert (path.parent / "memoryd.log.1").read_text().endswith("the end")
