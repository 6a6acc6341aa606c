"""Clustering of L2: all memories from scratch, then the upkeep when one more comes.

The memories and vectors of `corpus` lie in one namespace, which is the hardest case: every node is compared with every
other. `from scratch` is the whole job (join, split, merge, name, concepts, topics), planned and written in slices;
`upkeep` is a whole run of the job after one memory came in (the longest are those that make the topics again); `slice`
is how long a slice held the writer. numpy has one thread, as in the daemon.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import corpus
import numpy as np
from harness import Report, Vectors, vectors

from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.store import vectors as stored_vectors
from memoryd.daemon.topics import clustering
from memoryd.daemon.topics.writes import apply
from memoryd.models import DEFAULT, Floors

SLICE = 64  # steps
ROUND = 10_000  # steps that are planned before they are written, as the runner does
UPKEEP = 200  # single memories that come later


class Known:
    """An embedder that knows the vectors of the texts beforehand."""

    name, fingerprint, format, dimensions, max_tokens = DEFAULT, "known", "", 384, 256
    floors = Floors(duplicate=0.88, relevant=0.35, related=0.35, join=0.50, merge=0.85)

    def embed_query(self, text: str) -> Any:
        raise NotImplementedError

    embed_texts = embed_query
    count_tokens = embed_query


def main() -> None:
    """Measure and print the tables."""
    report = Report(__doc__)
    rows, kept = [], []
    for size in report.sizes():
        known = vectors(size + UPKEEP)
        with _core(known[:size]) as core:
            rows.append({"memories": size, **_from_scratch(core)})
            kept.append({"memories": size, **_upkeep(core, known[size:], size)})
    report.table("from scratch", rows)
    report.table("upkeep of one memory (ms)", kept)
    report.close()


@contextmanager
def _core(known: Vectors) -> Iterator[Core]:
    folder = Path(tempfile.mkdtemp(prefix="bench-cluster-"))
    core = Core(folder / "data", Config(), folder, lambda name, where: Known())  # type: ignore[arg-type, return-value]
    try:
        core.start()
        while core.embedding.active is None:
            time.sleep(0.01)
        for start in range(0, len(known), 10_000):
            _insert(core, known[start : start + 10_000], start)
        yield core
    finally:
        core.close()
        shutil.rmtree(folder)


def _insert(core: Core, known: Vectors, first: int) -> None:
    """Write memories of L2 with their vectors."""
    generation = core.embedding.active
    assert generation is not None

    def job(transaction: Any) -> None:
        connection = transaction.connection
        namespace = core.store.namespaces.ensure(transaction, "bench")
        for number, vector in enumerate(known, start=first):
            text = corpus.memory(number)
            key = stored_vectors.text_hash(text)
            stored_vectors.put(connection, generation.model, key, vector)
            connection.execute(
                "INSERT INTO memories (id, namespace, type, source, tier, importance, created_at, updated_at,"
                " content_hash, text_hash, summary, metadata, neighbours, content)"
                " VALUES (?, ?, 'fact', 'manual', 'L2', 0.5, 1, 1, ?, ?, '', '{}', '', ?)",
                (key.hex()[:32], namespace, key, key, text),
            )

    core.store.write(job).result()


def _from_scratch(core: Core) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    planning, slices, steps = 0.0, [], 0
    while found := _planned(core):
        planning += found[1]
        steps += len(found[0])
        slices += [_write(core, found[0][i : i + SLICE]) for i in range(0, len(found[0]), SLICE)]
    took_s = time.perf_counter() - began
    with core.store.reading() as connection:
        nodes, largest = connection.execute("SELECT count(*), max(size) FROM nodes WHERE kind = 'cluster'").fetchone()  # type: ignore[misc]
        concepts = connection.execute("SELECT count(*) FROM nodes WHERE kind = 'concept'").get
        topics = connection.execute("SELECT count(*) FROM topics").get
    return {
        "total s": took_s,
        "CPU s": time.process_time() - cpu,
        "planning s": planning,
        "steps": steps,
        "nodes": nodes,
        "largest": largest,
        "concepts": concepts,
        "topics": topics,
        "slice p50 ms": float(np.percentile(slices, 50)),
        "slice p99 ms": float(np.percentile(slices, 99)),
    }


def _planned(core: Core) -> tuple[list[Step], float] | None:
    began = time.perf_counter()
    found = list(islice(clustering.plan(core, core.clock()), ROUND))
    return (found, time.perf_counter() - began) if found else None


def _write(core: Core, steps: Sequence[Step]) -> float:
    """Write one slice; return the milliseconds that it held the writer."""

    def job(transaction: Any) -> float:
        began = time.perf_counter()
        apply(core, transaction, steps, 0)
        return (time.perf_counter() - began) * 1000

    return core.store.write(job).result()


def _upkeep(core: Core, known: Vectors, first: int) -> dict[str, float]:
    took = []
    for place, vector in enumerate(known):
        _insert(core, vector[None, :], first + place)
        began = time.perf_counter()
        _write(core, list(clustering.plan(core, core.clock())))
        took.append((time.perf_counter() - began) * 1000)
    return {f"p{share}": float(np.percentile(took, share)) for share in (50, 95, 100)}


if __name__ == "__main__":
    main()
