"""Nearness to examples of what lasts and of what passes, on a scale that is the same with every model."""

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryd.daemon.language.examples import LASTING, PASSING
from memoryd.daemon.language.extracting import Examples
from memoryd.daemon.llm.provider import Rules
from workbench import WordEmbedder

DIMENSIONS = 16


def around(axis: int, count: int, spread: float, seed: int) -> NDArray[np.float32]:
    """Return unit vectors near one axis."""
    dice = np.random.default_rng(seed)
    made = spread * dice.standard_normal((count, DIMENSIONS)).astype(np.float32)
    made[:, axis] += 1
    unit: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.2])
def test_examples_are_at_one_and_minus_one_however_wide_a_models_cosines_are(spread: float) -> None:
    examples = Examples(around(0, 40, spread, 1), around(1, 40, spread, 2))
    assert examples.nearness(around(0, 100, spread, 3)).mean() == pytest.approx(1, abs=0.2)
    assert examples.nearness(around(1, 100, spread, 4)).mean() == pytest.approx(-1, abs=0.2)
    assert abs(examples.nearness(around(2, 100, spread, 5)).mean()) < 0.3


def test_sorts_that_cannot_be_told_apart_and_no_sentences_give_numbers() -> None:
    same = around(0, 20, 0.0, 1)
    assert np.isfinite(Examples(same, same).nearness(same)).all()
    assert Examples(same, same).nearness(same[:0]).shape == (0,)


def test_the_examples_are_sentences_each_said_once() -> None:
    assert not set(LASTING) & set(PASSING)
    assert len(set(LASTING)) == len(LASTING) > 50
    assert len(set(PASSING)) == len(PASSING) > 50


def test_examples_are_embedded_once_for_each_model() -> None:
    rules, asked = Rules(), []
    models = {"a": WordEmbedder(), "b": WordEmbedder()}

    def embed(texts: object, name: str = "a") -> NDArray[np.float32]:
        asked.extend(texts)  # type: ignore[arg-type]
        made: NDArray[np.float32] = models[name].embed_texts(texts)
        return made if name == "a" else np.roll(made, 1, axis=1)

    said = [("user", "We decided to use Postgres 16 for the ledger.")]
    rules.extract(said, embed)
    first = len(asked)
    assert first > len(LASTING) + len(PASSING)
    rules.extract(said, embed)
    assert len(asked) == first + 2  # a probe and the sentence
    rules.extract(said, lambda texts: embed(texts, "b"))
    assert len(asked) > 2 * first


def test_without_a_model_the_marks_decide() -> None:
    said = [("user", "We decided to use Postgres 16 for the ledger. The sky over the harbour was red again.")]
    assert [fact.type for fact in Rules().extract(said, lambda texts: None)] == ["decision"]
