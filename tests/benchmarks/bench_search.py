"""Search end to end: a question as text in, ten memories out, over the socket, with the default model.

Each question is new to the daemon (its vector is in no cache) except in the rows that say so. The breakdown comes from
the trace of each of these searches. Recall compares the ten of a search by meaning alone with the exact ten by float32.
"""

import time
from collections.abc import Sequence
from typing import Any

import corpus
import numpy as np
from harness import (
    Daemon,
    Report,
    median,
    model_dir,
    new_memory,
    open_database,
    percentile,
    running,
    spread,
    stored_vectors,
)

from memoryd import models
from memoryd.client import Client
from memoryd.client.protocol import Hits, Trace
from memoryd.models.catalog import DEFAULT

WARM_UP = 100
BATCH = 100  # searches one after the other, then their traces are asked for: the daemon keeps 256
Timed = list[tuple[float, Trace]]


def main() -> None:
    """Measure every size."""
    report = Report(__doc__)
    count = 150 if report.quick else 400
    totals, parts, recalls = [], [], []
    for size in report.sizes():
        with running(size) as daemon, daemon.client() as client:
            for case, found in _cases(daemon, client, size, count):
                totals.append({"memories": size, "search": case, **spread([took for took, _ in found])})
                parts.append({"memories": size, "search": case, **_breakdown(found)})
            recalls.append({"memories": size, **_recall(daemon, client, size, count // 2)})
    report.table("End to end", totals)
    report.table("Where the time goes: median ms (p95)", parts)
    report.table("Recall of the vector index", recalls)
    report.close()


def _cases(daemon: Daemon, client: Client, size: int, count: int) -> list[tuple[str, Timed]]:
    """Return each kind of search with its times and traces; the questions of no two kinds are the same."""
    first, second, third, fourth = (
        corpus.questions(count + WARM_UP, size, offset=kind * 1_000_000) for kind in range(4)
    )
    later = new_memory(size // 3)["created_at"]
    with daemon.client("team1/project3") as inside:
        return [
            ("new question", _searches(client, first)),
            ("the same again (vector cached)", _searches(client, first)),
            ("from a namespace, 46 % visible", _searches(inside, second)),
            ("in a namespace, 6 %", _searches(inside, third, reach="exact")),
            ("two types, after a date, 22 %", _searches(client, fourth, type=["decision", "lesson"], after=later)),
        ]


def _searches(client: Client, questions: Sequence[str], **parameters: Any) -> Timed:
    found: Timed = []
    for start in range(0, len(questions), BATCH):
        timed = []
        for question in questions[start : start + BATCH]:
            began = time.perf_counter()
            hits: Hits = client.search(question, **parameters)
            timed.append(((time.perf_counter() - began) * 1000, hits.trace))
        found += [(took_ms, client.trace(id)) for took_ms, id in timed]
    return found[WARM_UP:]


def _breakdown(found: Timed) -> dict[str, str]:
    """Return median and p95 of each part; `server and socket` is what the pipeline does not account for."""
    parts: dict[str, list[float]] = {}
    for took_ms, trace in found:
        stages = {stage.name: stage for stage in trace.stages}
        notes = stages["candidates"].notes
        known = {
            "full text": notes.get("fulltext_ms", 0.0),
            "waiting for the embedding": notes.get("embed_wait_ms", 0.0),
            "vectors": notes.get("vector_ms", 0.0),
            "other stages": sum(stage.took_ms for stage in trace.stages if stage.name != "candidates"),
        }
        known["hits and trace"] = trace.took_ms - sum(stage.took_ms for stage in trace.stages)
        known["server and socket"] = took_ms - trace.took_ms
        for name, value in known.items():
            parts.setdefault(name, []).append(value)
    return {name: f"{median(values):.2f} ({percentile(values, 95):.2f})" for name, values in parts.items()}


def _recall(daemon: Daemon, client: Client, size: int, count: int) -> dict[str, Any]:
    """Return how many of the ten nearest by exact float32 a search by meaning alone brings, and what a scan costs."""
    ids, matrix = stored_vectors(daemon.data)
    embedder = models.load(DEFAULT, model_dir())
    shares, orders, scans = [], [], []
    for question in corpus.questions(count, size, offset=9_000_000):
        vector = embedder.embed_query(question)
        began = time.perf_counter()
        similarities = matrix @ vector
        best = np.argsort(-similarities)[:10]
        scans.append((time.perf_counter() - began) * 1000)
        exact = [ids[position] for position in best]
        hits = [hit.id for hit in client.search(question, vector_weight=1.0, limit=10)]
        shares.append(len(set(exact) & set(hits)) / len(exact))
        orders.append(exact == hits)
    with open_database(daemon.data) as connection:
        (pages, page_bytes) = (connection.execute(f"PRAGMA page_{name}").fetchone()[0] for name in ("count", "size"))
    return {
        "questions": count,
        "recall@10": f"{np.mean(shares):.4f}",
        "same order": f"{np.mean(orders):.0%}",
        "numpy float32 scan ms": median(scans),
        "index MB": client.status().index_bytes / 1e6,
        "database MB": pages * page_bytes / 1e6,
        "daemon RSS MB": daemon.rss_mb(),
    }


if __name__ == "__main__":
    main()
