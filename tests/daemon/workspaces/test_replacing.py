"""A file is replaced as a whole; nobody else's save is lost, and whatever is in the way leaves it as it was."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.client import linux
from memoryd.client.errors import Busy, Conflict, Invalid, NotFound, StorageFailed
from memoryd.daemon.workspaces import replacing
from memoryd.daemon.workspaces.replacing import change_file


def adding(text: bytes) -> Callable[[bytes | None], bytes]:
    return lambda data: (data or b"") + text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_changed_with_its_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    path.chmod(0o640)
    assert change_file(tmp_path, "a.md", adding(b"two\n")) == b"one\ntwo\n"
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["a.md"]


def test_a_file_and_its_folders_are_made_where_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="folder of"):
        change_file(tmp_path, "memory/sub/a.md", adding(b"x"))
    assert names(tmp_path) == []
    change_file(tmp_path, "memory/sub/a.md", adding(b"x"), create=True)
    assert (tmp_path / "memory/sub/a.md").read_text() == "x"
    with pytest.raises(NotFound, match="does not exist"):
        change_file(tmp_path, "memory/b.md", adding(b"x"))


def test_a_change_that_changes_nothing_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one")
    before = path.stat()
    change_file(tmp_path, "a.md", lambda data: data or b"")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_change_that_fails_leaves_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")

    def change(data: bytes | None) -> bytes:
        raise Conflict("not there any more")

    with pytest.raises(Conflict):
        change_file(tmp_path, "a.md", change)
    assert ((tmp_path / "a.md").read_text(), names(tmp_path)) == ("one", ["a.md"])


# Others that write at the same time ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in place", "renamed", "removed", "came"])
def test_a_save_after_the_reading_is_kept(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.md"
    if way != "came":
        path.write_text("one\n")
    calls: list[bytes | None] = []

    def change(data: bytes | None) -> bytes:
        if not calls:
            if way == "removed":
                path.unlink()
            else:
                target = path if way == "in place" else tmp_path / "new"
                target.write_text("theirs\n")
                target.rename(path)
        calls.append(data)
        return (data or b"") + b"ours\n"

    change_file(tmp_path, "a.md", change, create=True)
    assert path.read_text() == ("ours\n" if way == "removed" else "theirs\nours\n")
    assert names(tmp_path) == ["a.md"]


@pytest.mark.parametrize("way", ["in place", "renamed"])
def test_a_save_between_the_last_look_and_the_exchange_is_merged(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    rename, saves = replacing.rename, iter([b"theirs\n", b"theirs again\n"])

    def late(folder: int, origin: str, target: str, flags: int) -> None:
        if (saved := next(saves, None)) is not None:
            (tmp_path / "new").write_bytes(saved + (path.read_bytes() if b"again" in saved else b""))
            (tmp_path / "new").rename(path) if way == "renamed" else path.write_bytes((tmp_path / "new").read_bytes())
            (tmp_path / "new").unlink(missing_ok=True)
        rename(folder, origin, target, flags)

    monkeypatch.setattr(replacing, "rename", late)
    change_file(tmp_path, "a.md", adding(b"ours\n"))
    text = path.read_text()
    assert "theirs again\n" in text
    assert text.endswith("ours\n")
    assert names(tmp_path) == ["a.md"]


def test_a_late_save_on_which_the_change_cannot_be_made_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    rename, saves = replacing.rename, iter([b"theirs\n"])

    def late(folder: int, origin: str, target: str, flags: int) -> None:
        if (saved := next(saves, None)) is not None:
            path.write_bytes(saved)
        rename(folder, origin, target, flags)

    def change(data: bytes | None) -> bytes:
        if data != b"one\n":
            raise Conflict("the line is gone")
        return b""

    monkeypatch.setattr(replacing, "rename", late)
    with pytest.raises(Conflict, match="the line is gone"):
        change_file(tmp_path, "a.md", change)
    assert (path.read_text(), names(tmp_path)) == ("theirs\n", ["a.md"])


def test_a_program_that_is_writing_the_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    rename = replacing.rename
    script = "import sys; f = open(sys.argv[1], 'r+'); print(flush=True); sys.stdin.readline(); f.write('theirs\\n')"
    editor = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=-1, stdout=-1, text=True)
    assert editor.stdout is not None
    assert editor.stdin is not None
    editor.stdout.readline()  # it has the file open
    pen = editor.stdin
    writes_soon = threading.Timer(0.2, lambda: (pen.write("\n"), pen.close()))

    def exchanged(folder: int, origin: str, target: str, flags: int) -> None:
        rename(folder, origin, target, flags)
        if writes_soon.ident is None:  # after the first exchange, once
            writes_soon.start()

    monkeypatch.setattr(replacing, "rename", exchanged)
    change_file(tmp_path, "a.md", adding(b"ours\n"))
    editor.wait(60)
    editor.stdout.close()
    assert (path.read_text(), names(tmp_path)) == ("theirs\nours\n", ["a.md"])


def test_a_file_that_stays_open_for_writing_is_left_to_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    monkeypatch.setattr(replacing, "WRITER_LIMIT_S", 0.05)
    with path.open("a") as writer:
        with pytest.raises(Busy, match="another program"):
            change_file(tmp_path, "a.md", adding(b"ours\n"))
        writer.write("theirs\n")
    assert (path.read_text(), names(tmp_path)) == ("one\ntheirs\n", ["a.md"])


def test_where_there_is_no_exchange_a_file_is_still_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "libc", object)
    change_file(tmp_path, "a.md", adding(b"one\n"), create=True)
    change_file(tmp_path, "a.md", adding(b"two\n"))
    assert ((tmp_path / "a.md").read_text(), names(tmp_path)) == ("one\ntwo\n", ["a.md"])


WRITER = """
import sys
from pathlib import Path
from memoryd.daemon.workspaces.replacing import change_file
for number in range(int(sys.argv[3])):
    line = f"{sys.argv[2]} {number}\\n".encode()
    change_file(Path(sys.argv[1]), "a.md", lambda data: (data or b"") + line, create=True)
"""


@pytest.mark.slow
def test_several_processes_and_threads_lose_nothing(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(n), "10"]) for n in range(3)]
    threads = [
        threading.Thread(
            target=lambda n=n: [
                change_file(tmp_path, "a.md", adding(f"{n} {i}\n".encode()), create=True) for i in range(10)
            ]
        )
        for n in range(3, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    lines = (tmp_path / "a.md").read_text().splitlines()
    assert sorted(lines) == sorted(f"{n} {i}" for n in range(5) for i in range(10))
    assert names(tmp_path) == ["a.md"]


SAVER = """
import os, sys
path, way = sys.argv[1], sys.argv[2]
for number in range(150):
    text = open(path).read() + f"saved {number}\\n"
    if way == "renamed":
        open(path + "~", "w").write(text)
        os.rename(path + "~", path)
    else:
        with open(path, "a") as file:
            file.write(f"saved {number}\\n")
"""


def test_an_editor_that_appends_in_place_all_the_time_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacing, "_GRACE_S", 0.5)  # a loaded machine may keep the editor inside open() that long
    path = tmp_path / "a.md"
    path.write_text("one\n")
    editor = subprocess.Popen([sys.executable, "-c", SAVER, str(path), "in place"])
    written = 0
    while editor.poll() is None:
        try:
            change_file(tmp_path, "a.md", adding(f"ours {written}\n".encode()))
            written += 1
        except Busy:
            pass
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("saved")] == [f"saved {n}" for n in range(150)]
    assert [line for line in lines if line.startswith("ours")] == [f"ours {n}" for n in range(written)]
    assert names(tmp_path) == ["a.md"]


# In the way ----------------------------------------------------------------------------------------------------------


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "a.md").write_text("theirs")
    (root / "file.md").symlink_to(outside / "a.md")
    (root / "memory").symlink_to(outside)
    (root / "loop.md").symlink_to("loop.md")
    for relative in ("file.md", "memory/a.md", "memory/new.md", "loop.md"):
        with pytest.raises(Invalid, match="symbolic link"):
            change_file(root, relative, adding(b"x"), create=True)
    assert ((outside / "a.md").read_text(), names(outside)) == ("theirs", ["a.md"])


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(Invalid, match="is a folder"):
        change_file(tmp_path, "folder.md", adding(b"x"), create=True)
    with pytest.raises(Invalid, match="not a regular file"):
        change_file(tmp_path, "pipe.md", adding(b"x"), create=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(Invalid, match="should be a folder"):
        change_file(tmp_path, "file/a.md", adding(b"x"), create=True)
    with pytest.raises(Invalid, match="too long"):
        change_file(tmp_path, f"{'x' * 300}.md", adding(b"x"), create=True)


AS_NOBODY = """
import os, sys
from pathlib import Path
from memoryd.client.errors import MemorydError
from memoryd.daemon.workspaces.replacing import change_file
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for relative in sys.argv[2:]:
    try:
        change_file(Path(sys.argv[1]), relative, lambda data: (data or b"") + b"x", create=True)
        print("written")
    except MemorydError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_without_permission_nothing_is_written(folder: Path) -> None:
    folder.chmod(0o755)
    for name, mode in (("closed", 0o755), ("secret", 0o700), ("open", 0o777)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
        (folder / name / "a.md").write_text("mine")
        (folder / name / "a.md").chmod(0o666)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(folder), "closed/a.md", "closed/b.md", "secret/a.md", "open/a.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Forbidden"] * 4, done.stdout + done.stderr
    for name in ("closed", "secret", "open"):  # in the last one the owner could not be kept
        assert (names(folder / name), (folder / name / "a.md").read_text()) == (["a.md"], "mine")


MOUNTED = """
set -e
mount -t tmpfs -o size=64k tmpfs {root}
printf 'one\\n' > {root}/a.md
{extra}
{python} -c '
import sys
from pathlib import Path
from memoryd.client.errors import MemorydError
from memoryd.daemon.workspaces.replacing import change_file
try:
    change_file(Path(sys.argv[1]), "a.md", lambda data: data + b"x" * 100_000)
except MemorydError as error:
    print(type(error).__name__, error)
' {root}
cat {root}/a.md
ls -A {root}
"""


@pytest.mark.parametrize(("extra", "reason"), [("", "No space left"), ("mount -o remount,ro {root}", "Read-only")])
def test_a_full_or_read_only_disk_leaves_the_file_whole(tmp_path: Path, extra: str, reason: str) -> None:
    script = MOUNTED.format(root=tmp_path, extra=extra.format(root=tmp_path), python=sys.executable)
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"the machine gives no mount: {done.stderr.strip()}")
    said, *rest = done.stdout.splitlines()
    assert said.startswith("StorageFailed ")
    assert reason in said
    assert rest == ["one", "a.md"]


def test_a_limit_on_the_size_of_files_leaves_the_file_whole(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StorageFailed, match="File too large"):
            change_file(tmp_path, "a.md", adding(b"x" * 5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert ((tmp_path / "a.md").read_text(), names(tmp_path)) == ("one\n", ["a.md"])


def test_a_draft_that_a_crash_left_goes_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".memoryd-0011.tmp", ".other.tmp"):
        (tmp_path / name).write_text("half")
    change_file(tmp_path, "a.md", adding(b"x"), create=True)
    assert names(tmp_path) == [".memoryd-0011.tmp", ".other.tmp", "a.md"]
    monkeypatch.setattr(replacing, "_STALE_S", -1.0)
    change_file(tmp_path, "a.md", adding(b"x"))
    assert names(tmp_path) == [".other.tmp", "a.md"]
