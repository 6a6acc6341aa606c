"""An installation of memoryd of its own that a test can upgrade, and clients that never stop calling."""

import os
import re
import shutil
import sys
import threading
from pathlib import Path

import memoryd
from memoryd.client import Client
from waiting import wait_until

OLD = "0.0.1"
NEW = memoryd.__version__  # what this process's clients are


class Installation:
    """A copy of the package in a folder; its version is what its `__init__.py` says."""

    def __init__(self, folder: Path, version: str = OLD) -> None:
        self.folder = folder
        source = Path(memoryd.__file__).parent
        for part in ("client", "daemon", "models", "scheduler"):
            shutil.copytree((source / part).resolve(), folder / "memoryd" / part)
        self.upgrade(version)
        self.set_restart_after(0.0)

    def upgrade(self, version: str = NEW) -> None:
        """Put another version in its place, as an installer does."""
        text = (Path(memoryd.__file__)).read_text()
        changed = re.sub('__version__ = ".*"', f'__version__ = "{version}"', text)
        fresh = self.folder / "memoryd" / "fresh"
        fresh.write_text(changed)
        fresh.replace(self.folder / "memoryd" / "__init__.py")
        shutil.rmtree(self.folder / "memoryd" / "__pycache__", ignore_errors=True)

    def set_restart_after(self, seconds: float) -> None:
        """Say how old its daemon must be to restart by itself."""
        path = self.folder / "memoryd" / "daemon" / "server" / "succession.py"
        changed, number = re.subn(r"RESTART_AFTER_S = [\d.]+", f"RESTART_AFTER_S = {seconds}", path.read_text())
        assert number == 1
        path.write_text(changed)

    @property
    def environment(self) -> dict[str, str]:
        """What makes Python take memoryd from here."""
        return {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

    @property
    def command(self) -> list[str]:
        """How its daemon is run."""
        return [sys.executable, "-P", "-m", "memoryd.daemon"]


class Busy:
    """Clients in threads that add, read back and search without a pause until the block ends; failures are kept."""

    def __init__(self, socket: Path, number: int = 8) -> None:
        self.failures: list[str] = []
        self.kept: list[list[str]] = [[] for _ in range(number)]
        self._over = threading.Event()
        self._socket = socket
        self._threads = [threading.Thread(target=self._work, args=(at,)) for at in range(number)]

    def __enter__(self) -> "Busy":
        for thread in self._threads:
            thread.start()
        wait_until(lambda: all(self.kept) or bool(self.failures))
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def go_on(self, calls: int = 5) -> None:
        """Wait until every client has done some more."""
        before = [len(kept) for kept in self.kept]
        wait_until(
            lambda: (
                bool(self.failures) or all(len(kept) >= at + calls for kept, at in zip(self.kept, before, strict=True))
            )
        )

    def _work(self, number: int) -> None:
        with Client(f"busy/{number}", socket=self._socket, autostart=False, timeout_s=60) as client:
            while not self._over.is_set():
                words = f"note {len(self.kept[number])} of client {number}"
                try:
                    id = client.add(words, dedup=False).id
                    assert client.get(id).content == words
                    client.search("note", limit=1)
                except Exception as error:
                    self.failures.append(f"client {number}: {type(error).__name__}: {error}")
                    return
                self.kept[number].append(id)


def check_kept(socket: Path, busy: Busy) -> None:
    """Every acknowledged note is there, once."""
    with Client(socket=socket, autostart=False) as client:
        counted = {name: count for name, count in client.stats().by_namespace.items() if count}
        expected = {f"busy/{at}": len(kept) for at, kept in enumerate(busy.kept)}
        assert counted == expected, f"stored {counted}, acknowledged {expected}"


def inode(path: Path) -> int:
    return os.stat(path).st_ino
