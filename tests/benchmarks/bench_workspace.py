"""A workspace of 10,000 Markdown files: first index, index again with nothing changed, one edit until it is found.

The files are those that packages of this machine installed (.md, .rst), each once, topped up with generated ones.
Without a model first, so that only indexing is measured, then with it: vectors follow in the background. One client
searches all the while.
"""

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import corpus
from harness import NO_MODEL, Daemon, Report, percentile, progress, running

from memoryd.client import Client

FILES = 10_000
QUICK_FILES = 1_000
EDITS = 20
EMBED_S = 20.0  # for how long the making of vectors is watched
QUIET_S = 3.0
PLACES = ("/usr/share", "/usr/lib", sys.base_prefix, sys.prefix)
LIMIT_S = 60.0


def main() -> None:
    """Measure without and with a model."""
    report = Report(__doc__)
    wanted = QUICK_FILES if report.quick else FILES
    rows = [_measured(name, config, wanted) for name, config in (("no model", NO_MODEL), ("with model", ""))]
    report.table(f"A workspace of {wanted:,} Markdown files", rows)
    report.close()


def _measured(name: str, config: str, wanted: int) -> dict[str, Any]:
    with running(config=config) as daemon, daemon.client() as client:
        root = daemon.folder / "notes"
        size, real = _write(root, wanted)
        progress(f"{name}: {wanted:,} files ({real:,} real), {size / 1e6:.0f} MB")
        before = daemon.rss_mb()
        with _searching(daemon) as quiet:
            time.sleep(QUIET_S)
        with _searching(daemon) as busy:
            began = time.perf_counter()
            client.add_workspace(root)
            client.index_workspace("notes")
            first_s = time.perf_counter() - began
        status = client.workspace_status("notes")
        chunks = status.workspace.chunks
        rate = _embedding_rate(client) if daemon.has_model else 0.0
        with _searching(daemon) as after:
            time.sleep(QUIET_S)
        again = [client.index_workspace("notes").workspaces[0].seconds for _ in range(3)]
        edits = [_edit(client, root, number) for number in range(EDITS)]
        return {
            "": name,
            "files": status.workspace.files,
            "of these real": real,
            "MB": size / 1e6,
            "chunks": chunks,
            "first index s": first_s,
            "files/s": status.workspace.files / first_s,
            "chunks/s": chunks / first_s,
            "search p50/p95 ms before": _both(quiet),
            "meanwhile": _both(busy),
            "after": _both(after),
            "vectors/s after": rate,
            "index again s": max(again),
            "edit found p50 ms": percentile(edits, 50),
            "p95": percentile(edits, 95),
            "RSS MB before": before,
            "RSS MB after": daemon.rss_mb(),
            "inotify watches": client.workspace_status("notes").watches,
        }


def _both(times: list[float]) -> str:
    return f"{percentile(times, 50):.2f} / {percentile(times, 95):.2f}"


# Files ---------------------------------------------------------------------------------------------------------------


def _write(root: Path, wanted: int) -> tuple[int, int]:
    """Write the files in folders of about 50; return their bytes and how many are real."""
    size = real = 0
    for number, (text, is_real) in zip(range(wanted), _texts(), strict=False):
        path = root / "memory" / f"part{number // 50}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        size, real = size + len(text), real + is_real
    return size, real


def _texts() -> Iterator[tuple[bytes, bool]]:
    seen: set[bytes] = set()
    for path in _installed():
        try:
            text = path.read_bytes()
        except OSError:
            continue
        key = hashlib.sha256(text).digest()
        if text.strip() and key not in seen:
            seen.add(key)
            yield text, True
    for number in range(FILES):
        yield _generated(number).encode(), False


def _installed() -> Iterator[Path]:
    places = [place for place in PLACES if not any(p != place and place.startswith(p + "/") for p in PLACES)]
    for place in dict.fromkeys(places):
        for folder, inner, names in os.walk(place):
            inner.sort()
            for name in sorted(names):
                if name.endswith((".md", ".rst")) and not os.path.islink(os.path.join(folder, name)):
                    yield Path(folder, name)


def _generated(number: int) -> str:
    parts = (corpus.memory(number * 20 + part) for part in range(20))
    return f"# Note {number}\n\n" + "\n\n".join(f"## Part {n}\n\n{text}" for n, text in enumerate(parts)) + "\n"


# Measuring -----------------------------------------------------------------------------------------------------------


@contextmanager
def _searching(daemon: Daemon) -> Iterator[list[float]]:
    """Search without a pause on a connection of its own; the list holds the milliseconds."""
    times: list[float] = []
    ended = threading.Event()

    def work() -> None:
        with daemon.client() as client:
            number = 0
            while not ended.is_set():
                began = time.perf_counter()
                client.search(corpus.question(number, FILES), touch=False)
                times.append((time.perf_counter() - began) * 1000)
                number += 1

    working = threading.Thread(target=work)
    working.start()
    try:
        yield times
    finally:
        ended.set()
        working.join()


def _embedding_rate(client: Client) -> float:
    waiting, began = client.status().pending_embeddings, time.perf_counter()
    while (left := client.status().pending_embeddings) and time.perf_counter() - began < EMBED_S:
        time.sleep(0.2)
    return (waiting - left) / (time.perf_counter() - began)


def _edit(client: Client, root: Path, number: int) -> float:
    """Change a line of a file as an editor does; return the milliseconds until a search finds it."""
    word = f"quetzal{number}x{os.getpid()}"
    path = root / "memory" / f"part{number}" / f"{number * 50}.md"
    other = path.with_name(f".{number}.tmp")
    other.write_bytes(path.read_bytes() + f"\n\nThe word of the day is {word}.\n".encode())
    began = time.perf_counter()
    other.replace(path)
    _wait(lambda: any(word in hit.content for hit in client.search(word, limit=3, touch=False)))
    return (time.perf_counter() - began) * 1000


def _wait(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise RuntimeError("an edit was not found in time")
        time.sleep(0.002)


if __name__ == "__main__":
    main()
