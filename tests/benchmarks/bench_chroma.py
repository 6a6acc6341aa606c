"""Beside Chroma: the same memories, the same vectors, the same questions, in one run.

Chroma (persistent, in the asking process) is given the question's vector; memoryd is asked over its socket, once with
the text of a new question, which it embeds, and once more with the vector in its cache. Rounds of both alternate. In
the end Chroma is asked again with more and more candidates (`ef_search`) until its recall is memoryd's.
Recall compares ten results with the exact ten by float32; memoryd's are of a search by meaning alone. Adding: Chroma is
given vectors, memoryd has them in its embedding cache; memoryd syncs to disk before it acknowledges, looks for
duplicates and has a full-text index.
"""

import json
import os
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import corpus
import numpy as np
from harness import (
    Report,
    Vectors,
    database,
    give_vectors,
    median,
    model_dir,
    open_database,
    percentile,
    prepared,
    progress,
    running,
    stored_vectors,
    timed,
    vectors,
)

from memoryd import models
from memoryd.client import Client
from memoryd.models.catalog import DEFAULT

_ROUNDS = 4
_CANDIDATES = (100, 200, 400, 800, 1600, 3200)  # the first is Chroma's own
_INSTALL_LIMIT_S = 600


def main() -> None:
    """Measure both at every size."""
    report = Report(__doc__)
    python = _chroma_python()
    if python is None:
        report.note("Skipped: chromadb cannot be installed here.")
        return
    searches, ratios, adds = [], [], []
    for size in report.sizes():
        rows = _compare(python, size, 100 if report.quick else 400, report.kind)
        adds.append(rows.pop("adding"))
        searches += [{"memories": size, "search": name, **figures} for name, figures in rows.items()]
        chroma = rows["Chroma, vector given"]["p50 ms"]
        ours = {name: figures["p50 ms"] / chroma for name, figures in rows.items() if name.startswith("memoryd")}
        ratios.append({"memories": size, **ours})
    report.table("Search", searches)
    report.table("Median ÷ Chroma's (below 1: faster)", ratios)
    report.table("Adding, memories per second", [*adds, _memoryd_adds(1_000 if report.quick else 3_000)])
    report.close()


def _chroma_python() -> Path | None:
    """Return the Python of a virtual environment with chromadb, made the first time; None when that fails."""
    folder = corpus.cache_dir() / "chroma-venv"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        progress("installing chromadb into a virtual environment of its own, once")
        try:
            venv.create(folder, with_pip=True)
            command = [str(python), "-m", "pip", "install", "--quiet", "chromadb"]
            subprocess.run(command, check=True, timeout=_INSTALL_LIMIT_S)
        except (OSError, subprocess.SubprocessError):
            return None
        (folder / "installed").touch()
    return python


def _compare(python: Path, size: int, count: int, kind: str) -> dict[str, Any]:
    questions = corpus.questions(count, size, offset=30_000_000)
    embedder = models.load(DEFAULT, model_dir())
    asked = np.stack([embedder.embed_query(question) for question in questions])
    ids, matrix = stored_vectors(database(size, kind))
    exact = [[ids[n] for n in np.argsort(-(matrix @ vector))[:10]] for vector in asked]
    found: dict[str, list[float]] = {"chroma": [], "new": [], "part": [], "cached": []}
    recalls: dict[str, list[float]] = {"chroma": [], "memoryd": []}
    progress(f"loading {size:,} memories into Chroma")
    with (
        _chroma(python, ids, matrix, asked, database(size, kind)) as (facts, ask),
        running(size, kind=kind) as daemon,
        daemon.client() as client,
    ):
        for question in corpus.questions(30, size, offset=40_000_000):
            client.search(question)
        ask(0, min(30, count), _CANDIDATES[0])
        for number in range(_ROUNDS):
            part = slice(number * count // _ROUNDS, (number + 1) * count // _ROUNDS)
            answer = ask(part.start, part.stop, _CANDIDATES[0])
            found["chroma"] += answer["times"]
            for got, best in zip(answer["found"], exact[part], strict=True):
                recalls["chroma"].append(len({ids[n] for n in got} & set(best)) / 10)
            for question, best in zip(questions[part], exact[part], strict=True):
                _ask_memoryd(client, question, best, found, recalls["memoryd"])
        raised = _raise_recall(ask, ids, exact, float(np.mean(recalls["memoryd"])))
    ours, theirs = float(np.mean(recalls["memoryd"])), float(np.mean(recalls["chroma"]))
    return {
        "Chroma, vector given": _figures(found["chroma"], theirs),
        **raised,
        "memoryd, new question": _figures(found["new"], ours),
        "memoryd, its vector part": _figures(found["part"], ours),
        "memoryd, vector cached": _figures(found["cached"], ours),
        "adding": {
            "store": f"Chroma {facts['version']}, up to {size:,}",
            "one at a time": facts["single"],
            "in batches of 1,000": facts["batched"],
        },
    }


def _raise_recall(ask: Any, ids: list[str], exact: list[list[str]], wanted: float) -> dict[str, Any]:
    """Ask Chroma with more and more candidates, until its recall is as wanted; return the last figures."""
    rows: dict[str, Any] = {}
    for candidates in _CANDIDATES[1:]:
        answer = ask(0, len(exact), candidates)
        shares = [len({ids[n] for n in got} & set(best)) / 10 for got, best in zip(answer["found"], exact, strict=True)]
        rows = {f"Chroma, ef_search {candidates}": _figures(answer["times"], float(np.mean(shares)))}
        if float(np.mean(shares)) >= wanted - 0.0005:
            break
    return rows


def _ask_memoryd(
    client: Client, question: str, best: list[str], found: dict[str, list[float]], recalls: list[float]
) -> None:
    found["new"].append(timed(lambda: client.search(question)))
    stages = {stage.name: stage for stage in client.trace().stages}
    notes = stages["candidates"].notes
    found["part"].append(notes.get("vector_ms", 0.0))
    found["cached"].append(timed(lambda: client.search(question)))
    hits = client.search(question, vector_weight=1.0)
    recalls.append(len({hit.id for hit in hits} & set(best)) / 10)


def _figures(times: list[float], recall: float) -> dict[str, Any]:
    return {
        "p50 ms": median(times),
        "p95 ms": percentile(times, 95),
        "recall@10": f"{recall:.3f}",
    }


@contextmanager
def _chroma(python: Path, ids: list[str], matrix: Vectors, asked: Vectors, data: Path) -> Iterator[tuple[Any, Any]]:
    """Run Chroma's side; give what it said of loading, and a function that asks a range of the questions."""
    with open_database(data) as connection:
        texts = [text.replace("\n", " ") for (text,) in connection.execute("SELECT content FROM memories ORDER BY row")]
    with tempfile.TemporaryDirectory(prefix="mb-") as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", matrix)
        np.save(folder / "questions.npy", asked)
        (folder / "texts.txt").write_text("\n".join(texts))
        command = [python, Path(__file__).with_name("chroma_side.py"), folder]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment())
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield json.loads(child.stdout.readline()), partial(_asked, child)
        finally:
            child.kill()
            child.communicate()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "ANONYMIZED_TELEMETRY": "False"
    }


def _asked(child: "subprocess.Popen[str]", first: int, last: int, candidates: int) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{first} {last} {candidates}\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


def _memoryd_adds(count: int) -> dict[str, Any]:
    """Return memoryd's rates where the vectors are known, as Chroma's are."""
    single = count // 5
    with prepared() as daemon:
        daemon.start()
        daemon.stop()
        give_vectors(daemon.data, vectors(count + single))
        daemon.start()
        items: list[dict[str, Any]] = [{"content": corpus.memory(number)} for number in range(count + single)]
        with daemon.client() as client:
            many_ms = timed(lambda: [client.add_many([*items[n : n + 1000]]) for n in range(0, count, 1000)])
            one_ms = timed(lambda: [client.add(**item) for item in items[count:]])
    return {
        "store": f"memoryd, vectors known, up to {count:,}",
        "one at a time": 1000 * single / one_ms,
        "in batches of 1,000": 1000 * count / many_ms,
    }


if __name__ == "__main__":
    main()
