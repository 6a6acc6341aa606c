"""The file for node_exporter's textfile collector: the daemon's figures, written again every 15 seconds.

It appears in one step, so a collector never reads half of it, and everybody may read it: it holds counts alone. It is
removed when the daemon stops, so that old figures are not taken for present ones.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from memoryd.daemon.config import MetricsConfig
from memoryd.daemon.system.supervisor import Supervisor

EVERY_S = 15.0


class Textfile:
    """Writes what `figures` returns to the configured file; without one it does nothing."""

    def __init__(self, config: MetricsConfig, figures: Callable[[], str], supervisor: Supervisor) -> None:
        self._path = Path(config.textfile).expanduser() if config.textfile else None
        self._figures, self._supervisor = figures, supervisor
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to write."""
        if self._path:
            work = partial(self._write, self._path)
            self._thread = self._supervisor.start("textfile", work, self._stopping, self._wake)

    def close(self) -> None:
        """Write no more and remove the file."""
        self._stopping.set()
        self._wake.set()
        if self._thread and self._path:
            self._thread.join()
            with suppress(OSError):
                self._path.unlink()

    def _write(self, path: Path) -> float:
        write(path, self._figures())
        return EVERY_S


def write(path: Path, text: str) -> None:
    """Put text into a file that everybody may read, in one step."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # no *.prom: the collector does not look at it
    try:
        with suppress(FileNotFoundError):  # of a daemon that was killed; or a link that somebody put there
            beside.unlink()
        with open(beside, "x", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
