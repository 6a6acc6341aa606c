"""Measure time and memory of a model on this machine: `memctl model bench`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from memoryd.models.embedder import Embedder, load

LENGTHS = (8, 32, 128, 256)
ROUNDS = 15
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class BenchRow(Struct, frozen=True):
    """Figures of one model at one text length, on one thread."""

    name: str
    tokens: int
    ms_per_text: float
    """Median over ROUNDS texts."""
    dimensions: int
    load_ms: float
    rss_mb: float
    """Growth of the process from before the model was loaded to after all runs."""


def bench(name: str, models_dir: Path) -> list[BenchRow]:
    """Measure an installed model in a process of its own; raises what `load` raises."""
    load(name, models_dir)
    command = [sys.executable, "-m", "memoryd.models", "bench", name, "--dir", str(models_dir)]
    done = subprocess.run(command, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=list[BenchRow])


def measure(name: str, models_dir: Path) -> list[BenchRow]:
    """Measure an installed model in this process, which should have done nothing else."""
    before, start = rss_bytes(), time.perf_counter()
    embedder = load(name, models_dir)
    load_ms = (time.perf_counter() - start) * 1000
    times = {tokens: _median_ms(embedder, tokens) for tokens in LENGTHS if tokens <= embedder.max_tokens}
    rss_mb = (rss_bytes() - before) / 1e6
    return [
        BenchRow(name, tokens, round(ms, 4), embedder.dimensions, round(load_ms, 1), round(rss_mb, 1))
        for tokens, ms in times.items()
    ]


def rss_bytes() -> int:
    """Return the memory that this process has resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def _median_ms(embedder: Embedder, tokens: int) -> float:
    text = _make_text(embedder, tokens)
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        embedder.embed_texts([text])
        times.append(time.perf_counter() - start)
    return sorted(times)[ROUNDS // 2] * 1000


def _make_text(embedder: Embedder, tokens: int) -> str:
    """Return a text of about `tokens` tokens, two special ones included."""
    words = ("the memory of a machine keeps what its agents learned " * 40).split()
    count = next((n for n in range(1, len(words)) if embedder.count_tokens(" ".join(words[:n])) >= tokens - 2), 1)
    return " ".join(words[:count])
