"""Search end to end: a question as text in, ten memories out, over the socket, with the default model.

Each question is new to the daemon (its vector is in no cache) except in the rows that say so. The breakdown comes from
the trace of each of these searches. Recall compares the ten of a search by meaning alone with the exact ten by float32,
and the ten that the words alone bring with those of all memories that hold any of the words: a place agrees when the
memory there has the score of the one that belongs there. Sixteen clients ask at once for as long as the embedder alone
embeds such questions in as many processes as there are cores. `--picture FILE` draws how the medians grow.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count as numbers_from
from pathlib import Path
from typing import Any
from unittest.mock import patch

import corpus
import numpy as np
from growth import draw
from harness import (
    CLIENTS,
    Daemon,
    Report,
    in_processes,
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
from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.postings import UNITS
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Store
from memoryd.models.catalog import DEFAULT

WARM_UP = 100
BATCH = 100  # searches one after the other, then their traces are asked for: the daemon keeps 256
Timed = list[tuple[float, Trace]]
SMALL = "small/team"  # where one in a hundred memories with drawn vectors lives
SHARES = (("100 %", "%"), ("6 %", "team1/project3"), ("1 %", SMALL))
DRAWN = ("new question", "the same again (vector cached)", "in a namespace, 1 % (drawn vectors)")  # in the picture


def main() -> None:
    """Measure every size."""
    report = Report(__doc__)
    count = 150 if report.quick else 400
    totals, parts, recalls, words, together = [], [], [], [], []
    for size in report.sizes():
        with running(size, kind=report.kind) as daemon, daemon.client() as client:
            for case, found, cpu_ms in _cases(daemon, client, size, count):
                cost = {"processor ms": cpu_ms, "load": os.getloadavg()[0], "daemon RSS MB": daemon.rss_mb()}
                totals.append({"memories": size, "search": case, **spread([took for took, _ in found]), **cost})
                parts.append({"memories": size, "search": case, **_breakdown(found)})
            for share, namespace in SHARES if report.kind else SHARES[:1]:
                found_of = _recall(daemon, size, count // 4, namespace)
                recalls.append({"memories": size, "searched": share, **found_of})
            together.append({"memories": size, **_together(daemon, size, 3.0 if report.quick else 8.0)})
            daemon.stop()
            words.append({"memories": size, **_compare_words(daemon.data, size, count // 2)})
    report.table("End to end", totals)
    report.table("Where the time goes: median ms (p95)", parts)
    report.table("Recall of the vector index", recalls)
    report.table("The ten best by words, against all scores", words)
    report.table(f"{CLIENTS} clients, new questions", together)
    if report.picture:
        medians = {
            case: [(one["memories"], one["p50 ms"]) for one in totals if one["search"] == case] for case in DRAWN
        }
        report.picture.write_text(draw("Search: median ms by number of memories", medians))
    report.close()


def _cases(daemon: Daemon, client: Client, size: int, count: int) -> Iterator[tuple[str, Timed, float]]:
    """Yield each kind of search with its times and traces and what one takes of the daemon's processor time."""
    for case, search in _kinds(daemon, client, size, count):
        before = daemon.cpu_ms()
        found = search()
        yield case, found, (daemon.cpu_ms() - before) / (count + WARM_UP)


def _kinds(daemon: Daemon, client: Client, size: int, count: int) -> Iterator[tuple[str, Callable[[], Timed]]]:
    """Yield each kind of search; the questions of no two kinds are the same."""
    first, second, third, fourth, fifth, sixth = (
        corpus.questions(count + WARM_UP, size, offset=kind * 1_000_000) for kind in range(6)
    )
    later = new_memory(size // 3)["created_at"]
    secret = client.add_token("small", SMALL).token
    bound_client = Client(socket=daemon.socket, token=secret, autostart=False)
    with daemon.client("team1/project3") as inside, daemon.client(SMALL) as small, bound_client as bound:
        yield "new question", partial(_searches, client, first)
        yield "the same again (vector cached)", partial(_searches, client, first)
        yield "from a namespace, 46 % visible", partial(_searches, inside, second)
        yield "in a namespace, 6 %", partial(_searches, inside, third, reach="exact")
        yield "in a namespace, 1 % (drawn vectors)", partial(_searches, small, fifth, reach="exact")
        yield "the same again, 1 %", partial(_searches, small, fifth, reach="exact")
        yield "with a token, 1 % (drawn vectors)", partial(_searches, bound, sixth, reach="exact")
        yield "the same again with a token, 1 %", partial(_searches, bound, sixth, reach="exact")
        yield (
            "two types, after a date, 22 %",
            partial(_searches, client, fourth, type=["decision", "lesson"], after=later),
        )


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


def _recall(daemon: Daemon, size: int, count: int, namespace: str) -> dict[str, Any]:
    """Return how many of the ten nearest by exact float32 a search by meaning alone brings, and what a scan costs.

    It is of all memories, or of those of a namespace.
    """
    ids, matrix = stored_vectors(daemon.data, namespace)
    client = daemon.client("" if namespace == "%" else namespace)
    embedder = models.load(DEFAULT, model_dir())
    shares, orders, scans = [], [], []
    reach: dict[str, Any] = {} if namespace == "%" else {"reach": "exact"}
    for question in corpus.questions(count, size, offset=9_000_000):
        vector = embedder.embed_query(question)
        began = time.perf_counter()
        similarities = matrix @ vector
        best = np.argsort(-similarities)[:10]
        scans.append((time.perf_counter() - began) * 1000)
        exact = [ids[position] for position in best]
        hits = [hit.id for hit in client.search(question, options={"vector_weight": 1.0}, limit=10, **reach)]
        shares.append(len(set(exact) & set(hits)) / len(exact))
        orders.append(exact == hits)
    with open_database(daemon.data) as connection:
        (pages, page_bytes) = (connection.execute(f"PRAGMA page_{name}").fetchone()[0] for name in ("count", "size"))
    index_mb = client.status().index_bytes / 1e6
    client.close()
    return {
        "questions": count,
        "recall@10": f"{np.mean(shares):.4f}",
        "same order": f"{np.mean(orders):.0%}",
        "numpy float32 scan ms": median(scans),
        "index MB": index_mb,
        "database MB": pages * page_bytes / 1e6,
        "daemon RSS MB": daemon.rss_mb(),
    }


def _compare_words(data: Path, size: int, count: int) -> dict[str, Any]:
    """Return how many of the ten places by words are right, and how many words were left out as too common."""
    arrays = Arrays()
    store = Store(data, derived=arrays)
    try:
        mask = arrays.build_mask(store, Filter(), 0.0)
        right, places, left_out = 0, 0, 0
        for question in corpus.questions(count, size, offset=9_500_000):
            with store.reading() as connection:
                asked = lexical.ask(connection, arrays.postings, question)
                with patch.object(lexical, "MAX_POSTINGS", 1 << 60):
                    every = lexical.ask(connection, arrays.postings, question)
            scores = _score_all(arrays, every, mask)
            best = np.sort(scores)[::-1][:10]
            rows = [row for row, _ in lexical.rank(arrays.postings, asked, mask, 10)]
            found = scores[arrays.positions.find(rows)]
            right += int(np.sum(np.isclose(found, best[: len(found)], rtol=1e-4)))
            places, left_out = places + int(np.count_nonzero(best)), left_out + len(asked.left_out)
        return {"questions": count, "places that agree": f"{right / places:.4f}", "words left out": left_out}
    finally:
        store.close()


def _score_all(arrays: Arrays, question: lexical.TextQuery, mask: Mask) -> "np.typing.NDArray[np.float64]":
    """Return BM25 by position, of all words of a question in every memory."""
    scores = np.zeros(len(mask.allowed))
    for word in question.words:
        places = word.posting.places
        often = word.posting.counts / UNITS
        lengths = arrays.postings.read_lengths(places).astype(np.float64)
        scores[places] += word.rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * lengths / question.average))
    scores[~mask.allowed] = 0
    return scores


def _together(daemon: Daemon, size: int, seconds: float) -> dict[str, float]:
    """Return how many new questions all clients get answered in a second, and what the embedder alone allows."""
    alone = in_processes(_embed, [(size,)] * (os.cpu_count() or 1), seconds)
    arguments = [(daemon.socket, size, 300_000_000 + 1_000_000 * client) for client in range(CLIENTS)]
    answered = sum(in_processes(_ask, arguments, seconds)) / seconds
    return {"searches per s": answered, "embedder alone per s": sum(alone), "share": answered / sum(alone)}


def _embed(deadline: float, size: int) -> float:
    embedder = models.load(DEFAULT, model_dir())
    began, done = time.monotonic(), 0
    for number in numbers_from(200_000_000 + os.getpid() * 10_000):
        if time.monotonic() > deadline:
            break
        embedder.embed_query(corpus.question(number, size))
        done += 1
    return done / (time.monotonic() - began)


def _ask(deadline: float, path: Path, size: int, first: int) -> int:
    with Client("", socket=path, autostart=False) as client:
        for number in numbers_from(first):
            if time.monotonic() > deadline:
                return number - first
            client.search(corpus.question(number, size))
    return 0


if __name__ == "__main__":
    main()
