"""Run the bundled set through a model and derive its floors.

A floor is at a fixed fraction of the way between two anchors. For two texts the anchors are the 99th percentile of
pairs of different subjects and the median of paraphrases; for a question and a text, the 99th percentile of questions
with texts of other subjects and the median of questions with their answers. The fractions come from floors that were
measured on the default model with large sets (docs/experiments.md); calibration transfers them to another model.

The scale of confidence is transferred likewise. A logistic regression predicts from the cosine whether a text answers a
question; `far` and `near` of a model are the cosines at which its prediction equals that of the default model at `FAR`
and `NEAR`. If a model distinguishes answers badly, they are far apart, so that its cosines count less.

Cosines differ between languages and are mostly lowest in English, and most memories are in English. So only the
English subjects determine the floors, or those in the first language that the model supports.
"""

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memoryd.models.calibration.floors import Calibration, Floors
from memoryd.models.errors import ModelBroken

Vectors = NDArray[np.float32]
Cosines = NDArray[np.float64]
EmbedTexts = Callable[[Sequence[str]], Vectors]

SET = Path(__file__).parent / "set.toml"
UNLIKE = 0.99  # quantile of pairs of different subjects that is the lower anchor
READ = 0.6  # a language is supported if the share of answers found in it is this part of that in the best language
DUPLICATE, MERGE, JOIN, RELATED, RELEVANT = 0.972, 0.9236, 0.354, 0.1106, 0.274
FAR_LOGIT, NEAR_LOGIT = -3.625, 5.0  # of the default model
_WIDE = 0.25  # between the anchors: two digits are enough then, and the same for all formats of a model
_LEAST_SLOPE = 1.0  # of the regression, for a model that cannot distinguish answers
_LEAST, _MOST, _GAP = 0.01, 0.99, 0.001  # range of the floors, and the smallest difference of two
_ROUNDS, _RIDGE = 50, 1e-3


class Subject(Struct, forbid_unknown_fields=True):
    """Texts about one subject, and questions about them; `set.toml` documents the fields."""

    language: str
    texts: list[str]
    same: list[tuple[int, str]]
    other: list[tuple[int, str]]
    questions: list[tuple[str, int]]
    misses: list[str]


class Embedded(NamedTuple):
    """The vectors of one subject: its texts, their paraphrases, its questions (those with an answer first)."""

    subject: Subject
    texts: Vectors
    same: Vectors
    questions: Vectors


@cache
def read_set() -> list[Subject]:
    """Return the bundled set."""
    return msgspec.convert(tomllib.loads(SET.read_text("utf-8"))["subject"], list[Subject])


@cache
def edition() -> str:
    """Return a short hash of the set and of the constants."""
    rules = (UNLIKE, READ, DUPLICATE, MERGE, JOIN, RELATED, RELEVANT, FAR_LOGIT, NEAR_LOGIT, _WIDE)
    return hashlib.sha256(SET.read_bytes() + repr(rules).encode()).hexdigest()[:12]


def calibrate(embed_questions: EmbedTexts, embed_texts: EmbedTexts) -> Calibration:
    """Calibrate a model; both functions return unit vectors, shape (texts, dimensions).

    Embeds some 450 short texts. Raises ModelBroken if vectors are not finite, and any error of the functions.
    """
    subjects = _embed(read_set(), embed_questions, embed_texts)
    languages = dict.fromkeys(one.subject.language for one in subjects)
    answered = {name: _share_answered([one for one in subjects if one.subject.language == name]) for name in languages}
    language = next(name for name in languages if answered[name] >= READ * max(answered.values()))
    floors = _find_floors([one for one in subjects if one.subject.language == language])
    return Calibration(floors, {name: round(share, 3) for name, share in answered.items()}, edition())


def _embed(subjects: Sequence[Subject], embed_questions: EmbedTexts, embed_texts: EmbedTexts) -> list[Embedded]:
    texts = [text for one in subjects for text in [*one.texts, *(text for _, text in one.same)]]
    questions = [text for one in subjects for text in [*(text for text, _ in one.questions), *one.misses]]
    vectors, asked = embed_texts(texts), embed_questions(questions)
    if not (np.isfinite(vectors).all() and np.isfinite(asked).all()):
        raise ModelBroken("its vectors are not finite")
    made, at, asked_at = [], 0, 0
    for one in subjects:
        middle, end = at + len(one.texts), at + len(one.texts) + len(one.same)
        asked_end = asked_at + len(one.questions) + len(one.misses)
        made.append(Embedded(one, vectors[at:middle], vectors[middle:end], asked[asked_at:asked_end]))
        at, asked_at = end, asked_end
    return made


def _share_answered(subjects: Sequence[Embedded]) -> float:
    """Return the share of questions whose answer is the nearest of all texts of these subjects."""
    all_texts, starts = np.concatenate([one.texts for one in subjects]), _count_before(subjects)
    right = [
        int(np.argmax(all_texts @ vector)) == start + answer
        for one, start in zip(subjects, starts, strict=True)
        for (_, answer), vector in zip(one.subject.questions, one.questions, strict=False)
    ]
    return float(np.mean(right))


def _count_before(subjects: Sequence[Embedded]) -> list[int]:
    return list(accumulate((len(one.texts) for one in subjects[:-1]), initial=0))


def _find_floors(subjects: Sequence[Embedded]) -> Floors:
    """Derive the floors from the subjects of one language."""
    same = [one.same[at] @ one.texts[text] for one in subjects for at, (text, _) in enumerate(one.subject.same)]
    answers = [
        one.texts[answer] @ vector
        for one in subjects
        for (_, answer), vector in zip(one.subject.questions, one.questions, strict=False)
    ]
    unlike = _pair_others(subjects, lambda one: one.texts)
    asked_elsewhere = _pair_others(subjects, lambda one: one.questions)
    texts = float(np.quantile(unlike, UNLIKE)), float(np.median(same))
    questions = float(np.quantile(asked_elsewhere, UNLIKE)), float(np.median(answers))
    digits = 2 if texts[1] - texts[0] > _WIDE else 3

    def place(anchors: tuple[float, float], share: float, least: float = _LEAST) -> float:
        value = round(anchors[0] + share * (anchors[1] - anchors[0]), digits)
        return min(max(value, least), _MOST)

    related, relevant = place(texts, RELATED), place(questions, RELEVANT)
    join = place(texts, JOIN, related + _GAP)
    merge = place(texts, MERGE, join + _GAP)
    duplicate = place(texts, DUPLICATE, join + _GAP)
    far, near = _find_scale(subjects, asked_elsewhere)
    far = round(far, digits)
    return Floors(duplicate, relevant, related, join, merge, far, max(round(near, digits), far + _GAP))


def _pair_others(subjects: Sequence[Embedded], choose: Callable[[Embedded], Vectors]) -> Cosines:
    """Return the cosines of the chosen vectors of each subject with the texts of all other subjects."""
    pairs = ((one, other) for one in subjects for other in subjects if other is not one)
    return np.concatenate([(choose(one) @ other.texts.T).ravel() for one, other in pairs]).astype(np.float64)


def _find_scale(subjects: Sequence[Embedded], elsewhere: Cosines) -> tuple[float, float]:
    """Return the cosines at which an answer is as probable as at `FAR` and `NEAR` of the default model."""
    parts, flags = [elsewhere], [np.zeros(len(elsewhere))]
    for one in subjects:
        is_answer = np.zeros((len(one.questions), len(one.texts)))
        for at, (_, answer) in enumerate(one.subject.questions):
            is_answer[at, answer] = 1.0
        parts.append((one.questions @ one.texts.T).ravel().astype(np.float64))
        flags.append(is_answer.ravel())
    constant, slope = _fit(np.concatenate(parts), np.concatenate(flags))
    return (FAR_LOGIT - constant) / slope, (NEAR_LOGIT - constant) / slope


def _fit(cosines: Cosines, flags: Cosines) -> tuple[float, float]:
    """Return intercept and slope of the logistic regression of a flag on a cosine."""
    mean, deviation = float(cosines.mean()), float(cosines.std()) + 1e-9
    columns = np.stack([np.ones(len(cosines)), (cosines - mean) / deviation], axis=1)
    factors = np.zeros(2)
    for _ in range(_ROUNDS):
        sure = 1.0 / (1.0 + np.exp(-columns @ factors))
        curvature = (columns * (sure * (1.0 - sure))[:, None]).T @ columns + _RIDGE * np.eye(2)
        factors -= np.linalg.solve(curvature, columns.T @ (sure - flags) + _RIDGE * factors)
    slope = max(float(factors[1]) / deviation, _LEAST_SLOPE)
    return float(factors[0]) - slope * mean, slope
