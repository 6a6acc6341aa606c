"""The child that reads: real processes, killed and closed at bad moments."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.client.errors import Invalid, NotFound, Unavailable
from memoryd.daemon.workspaces.documents import reader as reader_module
from memoryd.daemon.workspaces.documents.document import Limits
from memoryd.daemon.workspaces.documents.files import read
from memoryd.daemon.workspaces.documents.reader import FileReader
from memoryd.daemon.workspaces.documents.walking import scan
from waiting import wait_until


def children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(pid) for file in listed for pid in file.read_text().split() if b"documents" in _command(int(pid))]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def mine() -> list[int]:
    """Children of this test that are alive or not yet waited for."""
    return sorted(_list_children() - _others)


def _list_children() -> set[int]:
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "python" in line}


_others: set[int] = set()  # children that tests before this one left, which may still be ending


@pytest.fixture(autouse=True)
def _leave_out_others() -> None:
    _others.clear()
    _others.update(_list_children())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(200):
        (tmp_path / f"{number}.md").write_text(f"---\ntype: decision\n---\n# Note {number}\n\n" + "A line.\n" * number)
    return tmp_path


@pytest.fixture
def reader() -> Iterator[FileReader]:
    reader = FileReader()
    yield reader
    reader.close()
    assert mine() == []


def names(count: int) -> list[str]:
    return [f"{number}.md" for number in range(count)]


def test_limits_reach_the_child(root: Path) -> None:
    reader = FileReader(Limits(200, 50, 1000))
    try:
        assert dict(reader.read(root, ["10.md", "199.md"])) == {
            name: read(root, name, Limits(200, 50, 1000)) for name in ("10.md", "199.md")
        }
    finally:
        reader.close()


def test_errors_of_the_child_are_raised_here(root: Path, reader: FileReader) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        list(reader.read(root / "none", ["1.md"]))
    with pytest.raises(Invalid, match="not a path below"):
        list(reader.read(root, ["../1.md"]))
    with pytest.raises(Invalid, match="pattern"):
        reader.scan(root, ["/etc/*"])
    assert len(list(reader.read(root, names(3)))) == 3


def test_a_scan_in_the_child_finds_the_same(root: Path, reader: FileReader) -> None:
    (root / "out.md").symlink_to("/etc/passwd")
    assert reader.scan(root, ["**/*.md"]) == scan(root, ["**/*.md"])


@pytest.mark.slow
def test_two_reads_at_once_do_not_mix(root: Path, reader: FileReader) -> None:
    one, other = reader.read(root, names(200)), reader.read(root, names(200)[::-1])
    pairs = list(zip(one, other, strict=True))
    assert [first[0] for first, _ in pairs] == names(200)
    assert [second[0] for _, second in pairs] == names(200)[::-1]
    assert all(document and document.chunks for pair in pairs for _, document in pair)


def test_a_read_that_is_given_up_leaves_nothing_behind(root: Path, reader: FileReader) -> None:
    reading = reader.read(root, names(200))
    next(reading)
    reading.close()
    assert [name for name, _ in reader.read(root, names(5))] == names(5)


def start_with(code: str, folder: Path) -> list[str]:
    """Return the command of a child in which `code` ran before it answers."""
    program = folder / "child.py"
    program.write_text(f"import memoryd.daemon.workspaces.documents.__main__ as child\n{code}\nchild.main()\n")
    return [sys.executable, "-P", str(program)]


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("__import__('os').abort()", "Reading it ended the reading process."),
        ("__import__('time').sleep(600)", "Reading it took more than 2 s."),
    ],
)
def test_a_file_that_kills_or_hangs_the_child_is_named_and_the_others_are_read(
    root: Path, reader: FileReader, monkeypatch: pytest.MonkeyPatch, folder: Path, what: str, problem: str
) -> None:
    """`what` stands in for a parser that runs out of stack or memory, or never ends."""
    code = (
        "real = child.read\n"
        f"child.read = lambda root, name, limits: {what} if name == '3.md' else real(root, name, limits)"
    )
    monkeypatch.setattr(reader_module, "COMMAND", start_with(code, folder))
    monkeypatch.setattr(reader_module, "FILE_LIMIT_S", 2.0)
    found = dict(reader.read(root, names(6)))
    assert list(found) == names(6)
    bad = found["3.md"]
    assert bad is not None
    assert (bad.size, bad.problem) == ((root / "3.md").stat().st_size, problem)
    assert all(document and document.chunks for name, document in found.items() if name != "3.md")


def test_a_child_that_ended_between_two_reads_is_replaced(root: Path, reader: FileReader) -> None:
    list(reader.read(root, names(1)))
    for pid in mine():
        os.kill(pid, signal.SIGKILL)
    assert len(list(reader.read(root, names(5)))) == 5


def test_a_closed_reader_refuses_and_ends_reads_under_way(root: Path) -> None:
    reader = FileReader()
    reading = reader.read(root, names(200))
    next(reading)
    threading.Thread(target=reader.close).start()
    with pytest.raises(Unavailable, match="stopping"):
        list(reading)
    with pytest.raises(Unavailable, match="stopping"):
        list(reader.read(root, names(1)))
    reader.close()
    wait_until(lambda: mine() == [])


def test_the_child_ends_with_its_parent_even_when_that_is_killed(root: Path) -> None:
    script = (
        "from pathlib import Path; from memoryd.daemon.workspaces.documents.reader import FileReader; import time\n"
        f"reader = FileReader(); list(reader.read(Path({str(root)!r}), ['1.md']))\n"
        "print('read', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "read\n"
        (child,) = children(parent.pid)
        parent.kill()
    wait_until(lambda: not _command(child))


def test_the_child_writes_nothing_to_the_terminal(root: Path) -> None:
    script = (
        "from pathlib import Path; from memoryd.daemon.workspaces.documents.reader import FileReader\n"
        f"reader = FileReader(); list(reader.read(Path({str(root)!r}), ['1.md', 'none.md'])); reader.close()"
    )
    ended = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
