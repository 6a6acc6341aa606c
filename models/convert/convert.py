"""Convert a checkpoint folder to `model.onnx`: choose the format, measure activations if it needs them, write."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.checkpoint import OUTPUT, Checkpoint, assemble, read_checkpoint
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import SMALL_STEPS, STEPS, Linear, Range, make_rows, multiply_fp32
from memoryd.models.convert.samples import SAMPLES
from memoryd.models.session import open_session
from memoryd.models.tokens import Tokens

Format = Literal["fp32", "rows7", "rows8"]
ROW_STEPS: dict[str, int] = {"rows8": STEPS, "rows7": SMALL_STEPS}  # the finer first

# Part of a model's fingerprint: increase it whenever a format's results change, so that vectors are recomputed.
VERSION = 2
SAMPLE_TOKENS = 128
PROBE = (32, 64)  # outputs and inputs of the matrix that shows whether sums saturate


def convert(source: Path, target: Path, pooling: str, form: Format) -> str:
    """Write `target` from the checkpoint in `source` (with tokenizer.json); return the format's name and version.

    Raises ModelBroken if the checkpoint cannot be converted.
    """
    checkpoint = read_checkpoint(source)
    if form in ROW_STEPS:
        graph = assemble(checkpoint, pooling, make_rows(observe(checkpoint, source), ROW_STEPS[form]))
    else:
        graph = assemble(checkpoint, pooling, Linear(multiply_fp32), small_table=False)
    target.write_bytes(graph.serialise([OUTPUT]))
    return f"{form}/{VERSION}"


def best_format() -> Format:
    """Return the first of "rows8" and "rows7" that this machine's processor computes exactly, else "fp32"."""
    if are_rows_exact(STEPS):
        return "rows8"
    return "rows7" if are_rows_exact(SMALL_STEPS) else "fp32"


def are_rows_exact(steps: int) -> bool:
    """Return whether ONNX Runtime multiplies bytes by weights with `steps` codes on each side exactly on this machine.

    x86 without AVX512-VNNI or AVX-VNNI adds pairs of products in 16 bits, which the largest codes may saturate. This is
    tested with such a product, since the processor's flags do not show how the library uses them; and also with a
    single row, which has a kernel of its own.
    """
    graph, ones = Graph(), np.ones(PROBE, np.float32)
    rows = graph.add("Gather", [graph.add_constant("ones", ones), "input_ids"], "rows")
    terms = make_rows({}, steps).multiply(graph, "probe", rows, ones)
    session = open_session(graph.serialise([graph.add("Sum", terms, "total")]), threads=1)
    totals = [session.run(None, {"input_ids": np.zeros((1, tokens), np.int64)})[0] for tokens in (1, 8)]
    return all(np.allclose(total, PROBE[1], rtol=0.01) for total in totals)


def observe(checkpoint: Checkpoint, source: Path) -> dict[str, Range]:
    """Run the sample texts in fp32; return the range of the inputs of each matrix by its name."""
    inputs: dict[str, str] = {}

    def note_input(graph: Graph, name: str, value: str, weight: NDArray[Any]) -> list[str]:
        inputs[name] = value
        return multiply_fp32(graph, name, value, weight)

    model = assemble(checkpoint, "mean", Linear(note_input), small_table=False)
    values = sorted(set(inputs.values()))
    session = open_session(model.serialise(values), threads=1)
    most = min(SAMPLE_TOKENS, checkpoint.encoder.count_positions(checkpoint.tensors))
    tokens = Tokens(source / "tokenizer.json", most, special=True)
    runs = [session.run(values, {"input_ids": np.array([tokens.ids(text)], np.int64)}) for text in SAMPLES]
    ranges = {value: _measure_range([run[place][0] for run in runs]) for place, value in enumerate(values)}
    return {name: ranges[value] for name, value in inputs.items()}


def _measure_range(rows: list[NDArray[np.float32]]) -> Range:
    seen = np.concatenate(rows)
    mean = seen.mean(axis=0)
    return Range(mean, np.abs(seen - mean).max(axis=0))
