"""What the benchmarks share: the temporary daemon, ready databases, clients in processes, percentiles, tables.

A database of N memories is made once: the vectors by the default model in as many processes as there are processors
(100,000 take some minutes), the rows by a daemon. Both are kept in `.cache/bench/`; every run works on a copy.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import corpus
import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd import models
from memoryd.client import Client
from memoryd.daemon.store.schema import build_schema
from memoryd.models.catalog import DEFAULT
from memoryd.models.folder import read_manifest

CHECKOUT = Path(__file__).parents[2]
NO_MODEL = '[model]\nname = "none"\nfetch = false\n'
NO_JOBS = "[jobs]\nenabled = false\n"  # nothing runs by itself while something is measured
_DATABASE_VERSION = 1  # of what `_load` makes
DIMENSIONS = 384  # of the default model
CLIENTS = 16  # processes, where many clients are measured
_CHUNK = 1000
_PART = 100_000  # memories whose vectors are made at once
_REAL = 10_000  # memories whose vectors others are drawn from
_START_LIMIT_S = 120.0

Vectors = NDArray[np.float32]


# The command line and the report -------------------------------------------------------------------------------------


class Report:
    """Collects tables, prints them as Markdown and writes the figures where `--json` says."""

    def __init__(self, purpose: str | None) -> None:
        parser = argparse.ArgumentParser(description=(purpose or "").split("\n")[0])
        parser.add_argument("--quick", action="store_true", help="fewer repetitions, at most 10,000 memories")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
        parser.add_argument("--sizes", metavar="N,N", help="numbers of memories instead of the usual ones")
        parser.add_argument("--drawn", action="store_true", help="vectors drawn from real ones: for large sizes")
        parser.add_argument(
            "--picture", type=Path, metavar="FILE", help="draw how the figures grow, where that is known"
        )
        self._given = parser.parse_args()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that daemons and folders are cleaned up
        self.quick: bool = self._given.quick
        self.picture: Path | None = self._given.picture
        self.is_sized = bool(self._given.sizes)
        self.kind = "drawn" if self._given.drawn else ""
        self._figures: dict[str, Any] = {"benchmark": Path(sys.argv[0]).stem, "machine": machine(), "tables": {}}
        print(f"## {self._figures['benchmark']}\n\n{(purpose or '').strip()}\n\n{machine()}\n", flush=True)

    def sizes(self) -> list[int]:
        """Return the numbers of memories to measure at."""
        if self._given.sizes:
            return [int(size) for size in self._given.sizes.split(",")]
        return [1_000, 10_000] if self.quick else [1_000, 10_000, 100_000]

    def table(self, title: str, rows: Sequence[dict[str, Any]]) -> None:
        """Print rows with the same keys as a table; numbers are rounded to three digits."""
        self._figures["tables"][title] = list(rows)
        print(f"### {title}\n\n{markdown(rows)}\n", flush=True)

    def note(self, sentence: str) -> None:
        """Print a sentence between tables."""
        self._figures.setdefault("notes", []).append(sentence)
        print(f"{sentence}\n", flush=True)

    def close(self) -> None:
        """Write the JSON file, if one was asked for."""
        if self._given.json:
            self._given.json.write_text(json.dumps(self._figures, indent=1) + "\n")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[_cell(row.get(name, "")) for name in names] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def machine() -> str:
    """Return one line on what the figures were measured on."""
    packages = []
    for name in ("msgspec", "apsw", "numpy", "onnxruntime", "simsimd"):
        with suppress(PackageNotFoundError):
            packages.append(f"{name} {version(name)}")
    load = os.getloadavg()[0]
    return (
        f"{_cpu()}, {len(os.sched_getaffinity(0))} cores (load {load:.1f} at the start), "
        f"Python {platform.python_version()}, {', '.join(packages)}"
    )


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def progress(sentence: str) -> None:
    """Tell a waiting person how far it is, on stderr."""
    print(f"  … {sentence}", file=sys.stderr, flush=True)


# Measuring -----------------------------------------------------------------------------------------------------------


def timed(action: Callable[[], Any]) -> float:
    """Return the milliseconds that an action takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def repeated(action: Callable[[Any], Any], arguments: Sequence[Any], warm_up: int = 5) -> list[float]:
    """Return the milliseconds of an action on each argument; the first `warm_up` are not counted."""
    return [timed(lambda argument=argument: action(argument)) for argument in arguments][warm_up:]


def percentile(times: Sequence[float], percent: float) -> float:
    """Return a percentile, interpolated; 0 of nothing."""
    return float(np.percentile(times, percent)) if len(times) else 0.0


def spread(times: Sequence[float], unit: str = "ms") -> dict[str, float]:
    """Return p50, p95 and p99 as cells of a table."""
    return {f"p{percent} {unit}": percentile(times, percent) for percent in (50, 95, 99)}


def median(times: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return statistics.median(times) if times else 0.0


def in_processes(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], seconds: float) -> list[Any]:
    """Run `work(deadline, *arguments)` in one process per argument tuple, all from the same moment; return results.

    The deadline is on the monotonic clock, `seconds` after all are ready.
    """
    context = multiprocessing.get_context("fork")
    ready, start = context.Barrier(len(arguments) + 1), context.Value("d", 0.0)
    results: Any = context.Queue()
    children = [
        context.Process(target=_child, args=(work, given, number, ready, start, results), daemon=True)
        for number, given in enumerate(arguments)
    ]
    for child in children:
        child.start()
    start.value = time.monotonic() + seconds
    ready.wait(30)
    found = dict(results.get(timeout=seconds + 120) for _ in children)
    for child in children:
        child.join(30)
    return [found[number] for number in range(len(children))]


def _child(work: Callable[..., Any], given: tuple[Any, ...], number: int, ready: Any, start: Any, results: Any) -> None:
    ready.wait(30)
    results.put((number, work(start.value, *given)))


# The daemon ----------------------------------------------------------------------------------------------------------


class Daemon:
    """A real `memoryd` in a process of its own on a folder of its own."""

    def __init__(self, folder: Path, config: str = "") -> None:
        self.folder, self.data, self.socket = folder, folder / "data", folder / "s"
        (folder / "config.toml").write_text(config if "[jobs]" in config else config + NO_JOBS)
        self.has_model = "none" not in config
        self.environment = {
            **os.environ,
            "MEMORYD_SOCKET": str(self.socket),
            "MEMORYD_DATA_DIR": str(self.data),
            "MEMORYD_CONFIG": str(folder / "config.toml"),
            # A database remembers its model, so to be without one takes an empty folder of models as well.
            "MEMORYD_MODEL_DIR": str(model_dir() if self.has_model else folder / "no-models"),
        }
        self.child: subprocess.Popen[bytes] | None = None

    def launch(self) -> "Daemon":
        """Start the process and return at once."""
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "memoryd.daemon", "--log-level", "warning"]
            self.child = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        return self

    def start(self) -> "Daemon":
        """Start the process; return once it answers and, with a model, has embedded everything."""
        self.launch()
        give_up_at = time.monotonic() + _START_LIMIT_S
        while not self._is_ready():
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"the daemon was not ready in time: {self.log()}")
            time.sleep(0.02)
        return self

    def _is_ready(self) -> bool:
        assert self.child is not None
        if self.child.poll() is not None:
            raise RuntimeError(f"the daemon did not start: {self.log()}")
        with suppress(Exception), self.client(timeout_s=30) as client:
            status = client.status()
            return not self.has_model or (status.model.state == "ready" and not status.pending_embeddings)
        return False

    def log(self) -> str:
        """Return the end of what the daemon said."""
        return (self.folder / "log").read_text()[-2000:]

    def client(self, namespace: str = "", timeout_s: float = 600.0) -> Client:
        """Return a client of this daemon."""
        return Client(namespace, socket=self.socket, autostart=False, timeout_s=timeout_s)

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self.child is not None
        return self.child.pid

    def rss_mb(self) -> float:
        """Return the resident memory in MB (VmRSS)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def cpu_ms(self) -> float:
        """Return the processor time that the process has taken; on a busy machine it says more than a clock."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the process as systemd does, or by force when it does not listen."""
        if self.child is None or self.child.poll() is not None:
            return
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


@contextmanager
def prepared(memories: int = 0, config: str = "", kind: str = "") -> Iterator[Daemon]:
    """Give a daemon that is not started, on a copy of the database with so many memories."""
    folder = Path(tempfile.mkdtemp(prefix="mb-"))
    daemon = Daemon(folder, config)
    try:
        if memories:
            shutil.copytree(database(memories, kind), daemon.data)
        yield daemon
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_on(data: Path, prepare: Callable[[Path], None], config: str = "") -> Iterator[Daemon]:
    """Give a started daemon on a copy of a data directory, in which `prepare` may change something before."""
    with prepared(config=config) as daemon:
        shutil.copytree(data, daemon.data)
        prepare(daemon.data)
        yield daemon.start()


@contextmanager
def running(memories: int = 0, config: str = "", kind: str = "") -> Iterator[Daemon]:
    """Give a started daemon on a copy of the database with so many memories."""
    with prepared(memories, config, kind) as daemon:
        yield daemon.start()


# Models, vectors, databases ------------------------------------------------------------------------------------------


def model_dir() -> Path:
    """Return the folder of models with the default one in it, fetching it the first time."""
    folder = Path(os.environ.get("MEMORYD_MODEL_DIR") or CHECKOUT / ".cache" / "models")
    if DEFAULT not in models.installed(folder):
        progress(f"fetching {DEFAULT}")
        models.pull(DEFAULT, folder)
    return folder


def vectors(count: int) -> Vectors:
    """Return the default model's vectors of the first `count` memories, embedding those not yet kept."""
    folder = corpus.cache_dir() / f"vectors-{_model_key()}-{corpus.fingerprint()}"
    folder.mkdir(exist_ok=True)
    chunks = range(-(-count // _CHUNK))
    missing = [chunk for chunk in chunks if not _chunk_path(folder, chunk).exists()]
    if missing:
        progress(f"embedding {len(missing) * _CHUNK:,} memories, once")
        corpus.memory(0)
        began = time.monotonic()
        context = multiprocessing.get_context("fork")
        with context.Pool(len(os.sched_getaffinity(0))) as pool:
            for done, _ in enumerate(pool.imap(_embed_chunk, [(folder, chunk) for chunk in missing]), start=1):
                if done % 5 == 0 or done == len(missing):
                    left_s = (time.monotonic() - began) / done * (len(missing) - done)
                    progress(f"{done * _CHUNK:,} of {len(missing) * _CHUNK:,}, {left_s:.0f} s left")
    return np.concatenate([np.load(_chunk_path(folder, chunk)) for chunk in chunks])[:count]


def _model_key() -> str:
    return read_manifest(DEFAULT, model_dir()).fingerprint.rpartition(":")[2][:8]


def _chunk_path(folder: Path, chunk: int) -> Path:
    return folder / f"{chunk:05}.npy"


def _embed_chunk(given: tuple[Path, int]) -> None:
    folder, chunk = given
    texts = [corpus.memory(number) for number in range(chunk * _CHUNK, (chunk + 1) * _CHUNK)]
    made = models.load(DEFAULT, model_dir()).embed_texts(texts)
    part = folder / f"{chunk:05}.{os.getpid()}.part"
    with part.open("wb") as file:
        np.save(file, made)
    part.replace(_chunk_path(folder, chunk))


def namespace_of(number: int) -> str:
    """Return where memory `number` lives: 40 % at the root, the rest in ten projects of two teams."""
    return "" if number % 5 < 2 else f"team{number % 2}/project{number % 10}"


def new_memory(number: int) -> dict[str, Any]:
    """Return memory `number` as `add_many` takes it."""
    types = ("fact", "fact", "decision", "lesson", "preference", "codebase-knowledge")
    return {
        "content": corpus.memory(number),
        "type": types[number % len(types)],
        "created_at": 1_700_000_000.0 + number * 300,
        "metadata": {"ticket": number // 10, "author": f"agent{number % 16}"},
    }


def synthetic(first: int, count: int) -> Vectors:
    """Return unit vectors in random directions for the memories from `first` on: no two of them are alike.

    They stand in for the model's where only the number of vectors counts: 100,000 take seconds instead of minutes.
    """
    made = np.random.default_rng(first).standard_normal((count, DIMENSIONS), np.float32)
    unit: Vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def drawn(first: int, count: int) -> Vectors:
    """Return vectors drawn from real ones: of two of the 10,000 memories that the model embedded, and some noise.

    Their neighbourhoods are like the model's, and a million take a minute.
    """
    real, dice = vectors(_REAL), np.random.default_rng(first)
    one, other = real[dice.integers(_REAL, size=count)], real[dice.integers(_REAL, size=count)]
    noise = dice.standard_normal((count, DIMENSIONS), np.float32) / np.float32(np.sqrt(DIMENSIONS))
    made = np.float32(0.8) * one + np.float32(0.4) * other + np.float32(0.3) * noise
    unit: Vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def drawn_place(number: int) -> str:
    """Return where a memory with a drawn vector lives: one in a hundred in a namespace of a few, the rest as usual."""
    return "small/team" if number % 100 == 7 else namespace_of(number)


def database(memories: int, kind: str = "") -> Path:
    """Return the data directory of a stopped daemon with the first `memories` memories, made once.

    `kind`: "plain" has synthetic vectors, all at the root; "drawn" vectors drawn from real ones.
    """
    schema = hashlib.sha256(build_schema().encode()).hexdigest()[:8]
    place = (
        corpus.cache_dir()
        / f"db-{memories}-{schema}-{_DATABASE_VERSION}-{_model_key()}-{corpus.fingerprint()}{kind and '-' + kind}"
    )
    if not place.exists():
        place_of = {"plain": lambda number: "", "drawn": drawn_place}.get(kind, namespace_of)
        progress(f"making the database of {memories:,} memories, once")
        with prepared() as daemon:
            daemon.start()
            daemon.stop()
            for start in range(0, memories, _PART):
                count = min(_PART, memories - start)
                give_vectors(daemon.data, _vectors_of(kind, start, count), start)
            daemon.start()
            _load(daemon, memories, place_of)
            daemon.stop()
            shutil.copytree(daemon.data, place.with_suffix(".part"), dirs_exist_ok=True)
            place.with_suffix(".part").rename(place)
    return place


def _vectors_of(kind: str, first: int, count: int) -> Vectors:
    if kind:
        return (drawn if kind == "drawn" else synthetic)(first, count)
    return vectors(first + count)[first:]


def give_vectors(data: Path, known: Vectors, first: int = 0) -> None:
    """Put the vectors of memories from `first` on into the embedding cache of a database whose daemon is stopped."""
    with open_database(data) as connection:
        (model,) = connection.execute("SELECT id FROM models").fetchone()
        keyed = (
            (model, hashlib.sha256(corpus.memory(number).encode()).digest(), vector.tobytes())
            for number, vector in enumerate(known, start=first)
        )
        connection.executemany(
            "INSERT OR IGNORE INTO vec_embeddings (model, text_hash, vector) VALUES (?, ?, ?)", keyed
        )


@contextmanager
def open_database(data: Path) -> Iterator[sqlite3.Connection]:
    """Open a daemon's database with Python's own SQLite; commit at the end."""
    connection = sqlite3.connect(data / "memoryd.sqlite")
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def _load(daemon: Daemon, memories: int, place: Callable[[int], str]) -> None:
    """Add the memories, each namespace by its own client, in calls of a thousand."""
    for start in range(0, memories, 10 * _CHUNK):
        numbers = range(start, min(memories, start + 10 * _CHUNK))
        for namespace in sorted({place(number) for number in numbers}):
            chosen = [new_memory(number) for number in numbers if place(number) == namespace]
            with daemon.client(namespace) as client:
                for first in range(0, len(chosen), _CHUNK):
                    client.add_many(chosen[first : first + _CHUNK], dedup=False)
        progress(f"{numbers.stop:,} of {memories:,}")


def stored_vectors(data: Path, namespace: str = "%") -> tuple[list[str], Vectors]:
    """Return ids and float32 vectors of all memories of a database, or of those of a namespace."""
    with open_database(data) as connection:
        found = connection.execute(
            "SELECT m.id, e.vector FROM memories m JOIN vec_embeddings e ON e.text_hash = m.text_hash"
            " JOIN namespaces n ON n.id = m.namespace WHERE n.name LIKE ? ORDER BY m.row",
            (namespace,),
        ).fetchall()
    matrix = np.frombuffer(b"".join(blob for _, blob in found), np.float32).reshape(len(found), -1)
    return [memory for memory, _ in found], matrix


def size_mb(folder: Path) -> float:
    """Return the size of the files in a folder in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def encoded_size(value: Any) -> int:
    """Return the bytes of a value as msgpack."""
    return len(msgspec.msgpack.encode(value))
