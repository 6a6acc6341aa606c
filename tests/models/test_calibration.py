"""Calibration: what the bundled set tells of a model, that it is carried over to another one, and when it happens."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd import models
from memoryd.models import DEFAULT, Floors, calibrate, load, read_manifest
from memoryd.models.calibration.calibrate import read_set
from memoryd.models.errors import ModelBroken
from memoryd.models.folder import write_manifest
from workbench import WordEmbedder

WORDS = WordEmbedder()
MEASURED = Floors(duplicate=0.88, relevant=0.35, related=0.35, join=0.50, merge=0.85)
"""Of the default model, on large sets: docs/experiments.md."""

cosines = st.floats(-1.0, 1.0)


def crowd(vectors: np.ndarray, shared: float) -> np.ndarray:
    """Return unit vectors whose cosines are (c + shared) / (1 + shared) where those of `vectors` are c."""
    column = np.full((len(vectors), 1), shared**0.5, np.float32)
    return np.hstack([vectors, column]) / np.float32((1.0 + shared) ** 0.5)


def test_the_default_model_has_the_floors_that_were_measured(model_dir: Path) -> None:
    load(DEFAULT, model_dir)  # may have been installed before
    calibration = read_manifest(DEFAULT, model_dir).calibration
    assert calibration is not None
    assert msgspec.structs.astuple(calibration.floors) == pytest.approx(msgspec.structs.astuple(MEASURED), abs=0.011)
    assert calibration.answered["English"] > 0.6 > calibration.answered["Chinese"]


@given(cosines)
def test_the_scale_of_the_default_model_is_its_own(cosine: float) -> None:
    assert MEASURED.rescale(cosine) == cosine


@given(st.floats(0.0, 0.8), st.floats(0.05, 2.0), cosines, cosines)
def test_rescaling_keeps_the_order(far: float, width: float, one: float, other: float) -> None:
    floors = Floors(0.9, 0.3, 0.3, 0.5, 0.8, far, far + width)
    lower, upper = sorted((one, other))
    assert floors.rescale(lower) <= floors.rescale(upper) + 1e-9
    assert floors.rescale(far) == pytest.approx(0.35)
    assert floors.rescale(floors.near) == pytest.approx(0.88)
    for cosine in (lower, upper, far):
        assert floors.near > 0.99 or floors.restore(floors.rescale(cosine)) == pytest.approx(cosine, abs=1e-6)


@each("shared", [1.0, 4.0])
def test_crowded_cosines_get_floors_that_say_the_same(shared: float) -> None:
    plain = calibrate(WORDS.embed_texts, WORDS.embed_texts)
    crowded = calibrate(*2 * (lambda texts: crowd(WORDS.embed_texts(texts), shared),))
    assert crowded.answered == plain.answered
    for name in ("duplicate", "relevant", "related", "join", "merge", "far", "near"):
        expected = (getattr(plain.floors, name) + shared) / (1.0 + shared)
        assert getattr(crowded.floors, name) == pytest.approx(expected, abs=0.011), name
    for cosine in (0.2, 0.5, 0.8):
        moved = crowded.floors.rescale((cosine + shared) / (1.0 + shared))
        assert moved == pytest.approx(plain.floors.rescale(cosine), abs=0.05)


def test_a_model_that_tells_nothing_has_cosines_that_say_nothing() -> None:
    dice = np.random.default_rng(0)

    def draw(texts: Sequence[str]) -> np.ndarray:
        vectors = dice.standard_normal((len(texts), 64)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    floors = calibrate(draw, draw).floors
    assert floors.rescale(0.9) - floors.rescale(0.0) < 0.2
    assert floors.related < floors.join < floors.merge


def test_vectors_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ModelBroken, match="not finite"):
        calibrate(WORDS.embed_texts, lambda texts: np.full((len(texts), 64), np.nan, np.float32))


def test_a_model_of_before_is_calibrated_when_it_is_loaded(models_dir: Path, checkpoint: Path) -> None:
    folder = models.import_directory(checkpoint, models_dir, "tiny")
    installed = read_manifest("tiny", models_dir)
    write_manifest(msgspec.structs.replace(installed, calibration=None), folder)
    assert load("tiny", models_dir).floors == installed.calibration.floors  # type: ignore[union-attr]
    assert read_manifest("tiny", models_dir) == installed
    assert models.verify("tiny", models_dir) == installed


def test_another_edition_of_the_set_calibrates_anew(models_dir: Path, checkpoint: Path) -> None:
    folder = models.import_directory(checkpoint, models_dir, "tiny")
    installed = read_manifest("tiny", models_dir)
    assert installed.calibration is not None
    former = msgspec.structs.replace(installed.calibration, floors=MEASURED, edition="former")
    write_manifest(msgspec.structs.replace(installed, calibration=former), folder)
    assert load("tiny", models_dir).floors == installed.calibration.floors
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "model.onnx", "tokenizer.json"]


def test_the_set_is_whole() -> None:
    subjects = read_set()
    texts = [text for one in subjects for text in one.texts]
    questions = [text for one in subjects for text in [*(text for text, _ in one.questions), *one.misses]]
    assert len(set(texts)) == len(texts) > 150
    assert len(set(questions)) == len(questions) > 100
    assert [*dict.fromkeys(one.language for one in subjects)] == ["English", "German", "Chinese"]
    for one in subjects:
        numbers = [*(at for at, _ in one.same), *(at for at, _ in one.other), *(at for _, at in one.questions)]
        assert set(numbers) <= set(range(len(one.texts)))
        assert one.misses
        assert one.other
