"""What a large file costs: the first start on a database of a former schema, and `erase` of one memory.

python tests/benchmarks/bench_file.py --data FOLDER

FOLDER is a data directory whose daemon is stopped, such as `make_database.py N --to FOLDER` of a former version makes;
it is copied. Times are of the wall clock, memory and space the highest of what is looked at every tenth of a second.
"""

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import Daemon, machine, markdown, open_database, progress

_LOOK_S = 0.1
_LIMIT_S = 3600.0


def main() -> None:
    """Measure both on a copy."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="a data directory; it is copied")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mb-", dir=given.data.parent))
    daemon = Daemon(folder)
    try:
        shutil.copytree(given.data, daemon.data)
        with open_database(daemon.data) as connection:
            (former,) = connection.execute("PRAGMA user_version").fetchone()
            (rows,) = connection.execute("SELECT count(*) FROM memories").fetchone()
        print(f"{machine()}\n{rows:,} memories, schema {former}\n", flush=True)
        measured = [_watch(daemon, "first start", lambda: _start(daemon)), _watch(daemon, "next start", _again(daemon))]
        with daemon.client(timeout_s=_LIMIT_S) as client:
            [some, other] = [memory.id for memory in client.list(limit=2).memories]
            measured.append(_watch(daemon, "erase", lambda: client.erase(ids=[some])))
            measured.append(_watch(daemon, "erase again", lambda: client.erase(ids=[other])))
        print(markdown(measured))
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _start(daemon: Daemon) -> None:
    """Start the daemon and wait until it searches with its vectors."""
    daemon.launch()
    end = time.monotonic() + _LIMIT_S
    while time.monotonic() < end:
        with suppress(Exception), daemon.client(timeout_s=30) as client:
            if client.status().model.state == "ready":
                return
        time.sleep(_LOOK_S)
    raise RuntimeError(f"the daemon was not ready in time: {daemon.log()}")


def _again(daemon: Daemon) -> Callable[[], None]:
    daemon.stop()
    return lambda: _start(daemon)


def _watch(daemon: Daemon, what: str, action: Callable[[], Any]) -> dict[str, Any]:
    """Run an action; return its time, and the highest memory and space meanwhile."""
    before, rss, space = _measure_mb(daemon.data), [0.0], [0.0]
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_S):
            with suppress(OSError):
                rss.append(daemon.rss_mb() if daemon.child else 0.0)
                space.append(_measure_mb(daemon.data))

    watcher = threading.Thread(target=look)
    watcher.start()
    began = time.perf_counter()
    try:
        action()
    finally:
        took_s = time.perf_counter() - began
        done.set()
        watcher.join()
    after = _measure_mb(daemon.data)
    progress(f"{what}: {took_s:.1f} s")
    return {
        "": what,
        "s": took_s,
        "peak RSS MB": max(rss),
        "MB before": before,
        "peak MB": max(space),
        "MB after": after,
    }


def _measure_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
