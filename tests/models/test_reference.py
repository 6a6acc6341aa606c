"""Converted encoders against the reference implementation, transformers: from its vectors, and run anew."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from small_encoders import SMALL_ENCODERS, SmallEncoder, make_ids, write_encoder

from memoryd.models.convert.convert import convert
from memoryd.models.session import open_session

VECTORS = json.loads(Path(__file__).with_name("reference.json").read_text())
LEAST = 0.9999

needs_reference = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("torch", "transformers"))),
    reason="PyTorch and transformers are not installed",
)


def embed_all(encoder: SmallEncoder, folder: Path) -> list[NDArray[np.float32]]:
    convert(write_encoder(folder / "source", encoder), folder / "model.onnx", encoder.pooling, "fp32")
    session = open_session(folder / "model.onnx", threads=1)
    return [session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0] for ids in make_ids(encoder)]


@pytest.mark.parametrize("name", SMALL_ENCODERS)
def test_each_family_gives_the_vectors_of_the_reference(name: str, tmp_path: Path) -> None:
    encoder = SMALL_ENCODERS[name]
    vectors = embed_all(encoder, tmp_path)
    assert len(vectors) == len(VECTORS[name]) == len(encoder.lengths)
    for vector, expected in zip(vectors, VECTORS[name], strict=True):
        assert vector @ np.array(expected) >= LEAST
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
@needs_reference
def test_the_vectors_are_still_those_of_the_reference() -> None:
    from reference import make_reference

    made = make_reference()
    assert made.keys() == VECTORS.keys()
    for name, rows in made.items():
        for row, expected in zip(rows, VECTORS[name], strict=True):
            assert np.dot(row, expected) >= LEAST, name
