"""Beside other memories: whole searches and adds that are on disk, of the same texts and vectors, in one run.

Memori (py-memori), mem0 without a language model, LangGraph's store in SQLite, and sqlite-vec with FTS5 as memweave
uses them, each in a process of its own that calls it directly. None of them embeds: it is given each vector. memoryd
is asked over its socket by text; its row "vectors known" has them in its cache, as the others do, and looks for
duplicates of what is added; "new question" embeds as well. A peer that has not taken in all texts after two minutes,
or that pip cannot install, is left out with the reason. `--drawn` takes vectors drawn from real ones.
"""

import json
import os
import subprocess
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import corpus
import numpy as np
from harness import (
    Report,
    Vectors,
    database,
    give_vectors,
    model_dir,
    open_database,
    percentile,
    progress,
    repeated,
    running_on,
    stored_vectors,
    synthetic,
)

from memoryd import models
from memoryd.models.catalog import DEFAULT

PEERS = {
    "memori": ["py-memori"],
    "mem0": ["mem0ai", "qdrant-client"],
    "langgraph": ["langgraph-checkpoint-sqlite", "pysqlite3-binary"],
    "sqlite-vec": ["sqlite-vec", "pysqlite3-binary"],
}
_ADDED = 50  # what the other side adds one at a time, too
_NEW = 60_000_000  # numbers of texts that no database holds
_LIMIT_S, _INSTALL_LIMIT_S = 120, 900
_WARM_UP = 5


def main() -> None:
    """Measure all at every size."""
    report = Report(__doc__)
    pythons = {name: _install(name, packages) for name, packages in PEERS.items()}
    for size in report.sizes():
        questions = corpus.questions(40 if report.quick else 100, size, offset=70_000_000)
        rows = _ask_memoryd(size, report.kind, questions)
        with tempfile.TemporaryDirectory(prefix="mb-") as folder:
            _write(Path(folder), size, report.kind, questions)
            for name, python in pythons.items():
                rows.append({"system": name, **_ask_peer(name, python, Path(folder))})
        report.table(f"{size:,} memories", rows)
    report.close()


def _install(name: str, packages: Sequence[str]) -> Path | None:
    """Return the Python of a virtual environment with a peer, made the first time; None when that fails."""
    folder = corpus.cache_dir() / f"peer-{name}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        progress(f"installing {packages[0]} into a virtual environment of its own, once")
        try:
            venv.create(folder, with_pip=True)
            command = [str(python), "-m", "pip", "install", "--quiet", "numpy", *packages]
            subprocess.run(command, check=True, timeout=_INSTALL_LIMIT_S)
        except (OSError, subprocess.SubprocessError):
            return None
        (folder / "installed").touch()
    return python


def _write(folder: Path, size: int, kind: str, questions: Sequence[str]) -> None:
    """Write the texts with those that are added one at a time, the questions, and the vectors of both."""
    embedder = models.load(DEFAULT, model_dir())
    data = database(size, kind)
    with open_database(data) as connection:
        texts = [text.replace("\n", " ") for (text,) in connection.execute("SELECT content FROM memories ORDER BY row")]
    _, matrix = stored_vectors(data)
    texts += [corpus.memory(_NEW + number) for number in range(_ADDED)]
    (folder / "texts.txt").write_text("\n".join(texts))
    (folder / "questions.txt").write_text("\n".join(questions))
    np.save(folder / "vectors.npy", np.concatenate([matrix, synthetic(_NEW, _ADDED)]))
    np.save(folder / "asked.npy", np.stack([embedder.embed_query(question) for question in questions]))


def _ask_peer(name: str, python: Path | None, folder: Path) -> dict[str, Any]:
    if python is None:
        return {"note": "pip cannot install it here"}
    progress(f"loading {name}")
    command = [str(python), str(Path(__file__).with_name("peers_side.py")), name, str(folder), str(_LIMIT_S)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory(prefix="mb-") as place:
        done = subprocess.run([*command, place], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return {"note": f"failed: {done.stderr.strip().splitlines()[-1][:100]}"}
    told = json.loads(done.stdout.splitlines()[-1])
    per_s = told["loaded"] / told["load_s"]
    if "searches" not in told:
        return {"loading, per s": per_s, "note": f"{told['loaded']:,} after {told['load_s']:.0f} s: given up"}
    return {**_figures(told["searches"], told["adds"]), "loading, per s": per_s, "note": ""}


def _figures(searches: Sequence[float], adds: Sequence[float]) -> dict[str, float]:
    return {
        "search p50 ms": percentile(searches, 50),
        "search p95 ms": percentile(searches, 95),
        "add p50 ms": percentile(adds, 50),
    }


def _ask_memoryd(size: int, kind: str, questions: Sequence[str]) -> list[dict[str, Any]]:
    known: Vectors = synthetic(_NEW, _ADDED)
    with (
        running_on(database(size, kind), lambda data: give_vectors(data, known, _NEW)) as daemon,
        daemon.client() as client,
    ):
        for question in corpus.questions(30, size, offset=80_000_000):
            client.search(question)
        new = repeated(client.search, questions, _WARM_UP)
        again = repeated(client.search, questions, _WARM_UP)
        adds = [corpus.memory(_NEW + number) for number in range(2 * _ADDED)]
        cached = repeated(client.add, adds[:_ADDED], 0)
        embedded = repeated(client.add, adds[_ADDED:], 0)
    return [
        {"system": "memoryd, vectors known", **_figures(again, cached), "loading, per s": "", "note": ""},
        {"system": "memoryd, new question", **_figures(new, embedded), "loading, per s": "", "note": ""},
    ]


if __name__ == "__main__":
    main()
