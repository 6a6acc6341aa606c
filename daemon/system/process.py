"""Information about this process and its clients' processes, and settings of this process."""

import ctypes
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from memoryd.client import linux
from memoryd.client.errors import StorageFailed

_NICE = 10  # of 19
_INTERPRETERS = ("python", "node", "bash", "sh", "ruby", "perl", "deno", "bun", "uv")
_NAME_CHARS = 60


class _Mallinfo2(ctypes.Structure):
    """Result of glibc's mallinfo2(3)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )


# Variables with paths that this process and its children use.
_PLACES = ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG", "MEMORYD_MODEL_DIR", "XDG_CACHE_HOME", "HF_HOME")


def leave_working_directory() -> None:
    """Change the working directory to the root, so that the current one can be unmounted or deleted.

    Relative paths of the environment are made absolute first.
    """
    for name in _PLACES:
        if value := os.environ.get(name):
            os.environ[name] = os.path.abspath(os.path.expanduser(value))
    if path := os.environ.get("PYTHONPATH"):  # of children
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))
    os.chdir("/")


def keep_temporary_files(folder: Path) -> Path:
    """Make this process, its libraries and its children put temporary files into the data directory; return the folder.

    So a full /tmp does not matter, and other users cannot read them. SQLite reads its variable at the first
    connection.
    """
    place = folder / "tmp"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"The folder {place} cannot be made: {error.strerror}.") from None
    os.environ["TMPDIR"] = os.environ["SQLITE_TMPDIR"] = tempfile.tempdir = str(place)
    return place


def clear(place: Path) -> None:
    """Delete the files in a folder of temporary files, left by a process that was killed.

    If the folder is a link to another one, its content is not touched.
    """
    for path in () if place.is_symlink() else place.iterdir():
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rss_bytes() -> int:
    """Return the resident memory in bytes, 0 if it cannot be read, for example without free descriptors."""
    pages = linux.read_process("self", "statm").split()[1:2]
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def lower_priority(by: int = _NICE) -> None:
    """Lower the priority of the calling thread, in favour of threads with interactive calls.

    A thread with a lower priority, for example in a daemon that a low-priority client started, keeps it.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(by, os.getpriority(os.PRIO_PROCESS, thread)))


def measure_free_bytes() -> int:
    """Return how much freed memory the allocator holds; 0 if the C library does not report it."""
    if not hasattr(linux.libc(), "mallinfo2"):  # another C library, or glibc before 2.33
        return 0
    linux.libc().mallinfo2.restype = _Mallinfo2
    return int(linux.libc().mallinfo2().fordblks)


def return_memory() -> None:
    """Return freed memory to the system; each arena is locked meanwhile for some milliseconds."""
    if hasattr(linux.libc(), "malloc_trim"):
        linux.libc().malloc_trim(0)


def process_name(pid: int) -> str:
    """Return the name of a process: its program, or the script of an interpreter; empty if it has ended."""
    words = linux.read_process(pid, "cmdline").rstrip(b"\0").split(b"\0")
    return name_in([os.fsdecode(word) for word in words])


def name_in(words: list[str]) -> str:
    """Return the name in a command line: `python3 -P /opt/agent.py` → `agent.py`, `python -m agent` → `agent`."""
    program = Path(words[0]).name if words and words[0] else ""
    if program.rstrip("0123456789.") not in _INTERPRETERS:
        return program[:_NAME_CHARS]
    rest = words[1:]
    for place, word in enumerate(rest):
        if word == "-m" and place + 1 < len(rest):
            return rest[place + 1][:_NAME_CHARS]
        if word == "-c":
            break
        if word and not word.startswith("-"):
            return Path(word).name[:_NAME_CHARS]
    return program[:_NAME_CHARS]
