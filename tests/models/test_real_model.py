"""The default model, really installed: its vectors, its behaviour at the edges, its use from threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memoryd import models
from memoryd.models import DEFAULT, Embedder, load

TEXTS = (
    "We use Valkey instead of Redis for caching",
    "For caching we use Valkey, not Redis",
    "The user prefers dark mode in every editor",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen",
)


@pytest.fixture(scope="module")
def model(model_dir: Path) -> Embedder:
    return load(DEFAULT, model_dir)


def test_it_is_what_the_catalog_says(model: Embedder, model_dir: Path) -> None:
    spec = models.CATALOG[DEFAULT]
    assert (model.name, model.dimensions, model.max_tokens) == (spec.name, spec.dimensions, spec.max_tokens)
    assert model.format == models.verify(DEFAULT, model_dir).format


def test_cosines_are_those_of_the_reference(model: Embedder) -> None:
    """Expected: the published weights in fp32."""
    vectors = model.embed_texts(TEXTS)
    expected = [[1, 0.984, 0.249, 0.024], [0.984, 1, 0.256, 0.020], [0.249, 0.256, 1, 0.070], [0.024, 0.020, 0.070, 1]]
    assert vectors @ vectors.T == pytest.approx(np.array(expected), abs=0.01)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_any_number_of_texts(model: Embedder, count: int) -> None:
    assert model.embed_texts(TEXTS[:count]).shape == (count, 384)


def test_a_vector_does_not_depend_on_its_neighbours(model: Embedder) -> None:
    together = model.embed_texts([*TEXTS, "word " * 5000, ""])
    for row, text in enumerate(TEXTS):
        assert (together[row] == model.embed_texts([text])[0]).all()
    assert (model.embed_query(TEXTS[0]) == together[0]).all()  # this model has no prefixes


def test_text_past_the_limit_is_ignored(model: Embedder) -> None:
    start = "memory " * model.max_tokens
    assert model.embed_query(start) @ model.embed_query(start + "quite another subject") == pytest.approx(1, abs=1e-6)
    assert model.count_tokens(start) == model.max_tokens


def test_threads_get_the_same_vectors(model: Embedder) -> None:
    expected = model.embed_texts(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.embed_texts(TEXTS), range(32)):
            assert (found == expected).all()
