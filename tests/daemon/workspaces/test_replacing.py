"""A file is replaced as a whole; what others saved is taken up, and whatever is in the way leaves it as it was."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.client.errors import Busy, Conflict, Invalid, NotFound, StorageFailed
from memoryd.daemon.workspaces import replacing
from memoryd.daemon.workspaces.replacing import change_file, remove_file


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
import os, sys, time
path, way = sys.argv[1], sys.argv[2]
for number in range(20):
    time.sleep(0.05)
    seen, text = os.stat(path), open(path).read() + f"saved {number}\\n"
    if os.stat(path).st_ino != seen.st_ino:  # it was replaced meanwhile, which an editor looks for
        continue
    if way == "renamed":
        open(path + "~", "w").write(text)
        os.rename(path + "~", path)
    else:
        open(path, "w").write(text)
"""


@pytest.mark.parametrize("way", ["in place", "renamed"])
def test_beside_an_editor_that_saves_all_the_time_nothing_is_torn(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    editor = subprocess.Popen([sys.executable, "-c", SAVER, str(path), way])
    written = 0
    while editor.poll() is None:
        change_file(tmp_path, "a.md", adding(f"ours {written}\n".encode()))
        written += 1
    whole = {"one", *(f"saved {n}" for n in range(20)), *(f"ours {n}" for n in range(written))}
    lines = path.read_text().splitlines()
    assert set(lines) <= whole
    assert lines[0] == "one"
    assert len(lines) == len(set(lines))
    assert names(tmp_path) == ["a.md"]


def test_a_program_that_has_emptied_the_file_is_let_finish(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")
    calls: list[bytes | None] = []

    def change(data: bytes | None) -> bytes:
        calls.append(data)
        if len(calls) == 1:
            editor.write("theirs\n")
            editor.flush()
        return (data or b"") + b"ours\n"

    with path.open("w") as editor:  # empty now
        change_file(tmp_path, "a.md", change)
    assert calls == [b"", b"theirs\n"]
    assert path.read_text() == "theirs\nours\n"


def test_a_file_that_is_saved_at_each_attempt_is_left_to_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")

    def change(data: bytes | None) -> bytes:
        path.write_bytes((data or b"") + b"theirs\n")
        return (data or b"") + b"ours\n"

    with pytest.raises(Busy, match="another program"):
        change_file(tmp_path, "a.md", change)
    assert (path.read_text(), names(tmp_path)) == ("one\n" + 20 * "theirs\n", ["a.md"])


def test_a_file_is_removed_if_it_is_the_one_that_was_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n")

    def check(data: bytes | None) -> bytes:
        if data != b"theirs\n":
            raise Conflict("it was changed")
        return b""

    with pytest.raises(Conflict, match="it was changed"):
        remove_file(tmp_path, "a.md", check)
    assert path.read_text() == "one\n"
    path.write_text("theirs\n")
    remove_file(tmp_path, "a.md", check)
    assert names(tmp_path) == []


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
import fcntl, os, sys  # who cannot read the libraries any more imports nothing
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
