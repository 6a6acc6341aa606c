"""How sure it is that a memory is about a prompt: it stands out among all that might come up there.

A prompt is no question. It asks for work in words that what matters to it need not have, and its cosine with that is
mostly below what a search calls relevant. But unrelated memories are all about equally far from it; those in its own
language are nearer than others, of which a model of English tells little more. So a memory is compared with others of
its kind and language: by how many standard deviations its cosine is above theirs. Besides that count what the words
weigh that it has in common with the prompt, how many words the prompt has (of few nothing follows), and how many
others there are, of which one may stand out by chance. What an agent said in passing is held to more than what was
saved on purpose.

A logistic regression; `tests/quality/fit_sureness.py` fits it and prints what it gives to projects that were left
out of the fit.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from memoryd.daemon.context.lines import list_statements
from memoryd.daemon.language.tongues import find_language, is_telling
from memoryd.daemon.search.confidence import weigh_held
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.store import queries
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.queries import Provenance

_KEPT = 1000  # texts whose language is known
_COMPARED: dict[Provenance, int] = {"saved": 300, "said": 100}  # the latest memories of a kind
# Of what `Measured` says of a memory, in its order.
_CONSTANT, _FACTORS = -1.763, (0.891, 0.661, -1.357, 1.136, -0.584, -0.438)
# As if there were two more, which have nothing to do with the prompt: a single memory is compared with them alone.
_BEFORE, _BEFORE_MEAN, _BEFORE_DEVIATION = 2, 0.1, 0.1
_LEAST_DEVIATION = 0.05


class Measured(NamedTuple):
    """What is known of a memory beside a prompt: what the factors of the regression are for."""

    above: float  # standard deviations of its cosine above others of its kind and language
    words: float  # log of what the telling words weigh that it shares with the prompt
    others: float  # log of how many there are of its kind
    asked: float  # log of how many telling words the prompt has
    said: float  # 1 of what an agent said, 0 of what was saved
    said_above: float  # `above` of what an agent said, 0 of what was saved

    @property
    def sure(self) -> float:
        """How sure it is that the memory is about the prompt, 0 to 1."""
        value = _CONSTANT + sum(factor * measure for factor, measure in zip(_FACTORS, self, strict=True))
        return 1.0 / (1.0 + math.exp(-value))


class _Sums(NamedTuple):
    """Of some cosines how many they are, their sum and that of their squares."""

    many: int = 0
    values: float = 0.0
    squares: float = 0.0

    def add(self, value: float, times: int = 1) -> "_Sums":
        """Return the sums with a cosine added; `times` -1 takes it out."""
        return _Sums(self.many + times, self.values + times * value, self.squares + times * value * value)

    def average(self, before: tuple[float, float]) -> tuple[float, float]:
        """Return the mean and that of the squares, as if `before` were those of two more."""
        many = _BEFORE + self.many
        return (_BEFORE * before[0] + self.values) / many, (_BEFORE * before[1] + self.squares) / many


class Baseline:
    """What memories of one kind are compared with: by row the rescaled cosine with the prompt, and the language."""

    def __init__(self, cosines: Mapping[int, tuple[float, str]]) -> None:
        self.known = cosines
        self._all, self._alike = _Sums(), dict[str, _Sums]()
        for value, language in cosines.values():
            self._all = self._all.add(value)
            self._alike[language] = self._alike.get(language, _Sums()).add(value)

    def measure(self, row: int, cosine: float, language: str) -> tuple[float, int]:
        """Return by how many standard deviations a cosine is above the others', and how many memories there are."""
        others, alike = self._all, self._alike.get(language, _Sums())
        if row in self.known:
            own, its = self.known[row]
            others, alike = others.add(own, -1), alike.add(own, -1) if its == language else alike
        before = others.average((_BEFORE_MEAN, _BEFORE_DEVIATION**2 + _BEFORE_MEAN**2))
        mean, squares = alike.average(before)
        variance = max(0.0, squares - mean * mean)
        return (cosine - mean) / math.sqrt(variance + _LEAST_DEVIATION**2), _BEFORE + others.many + 1


class Given(NamedTuple):
    """A memory that may come up: its kind, its row, its text, and its cosine where that is known."""

    kind: Provenance
    row: int
    text: str
    cosine: float | None


def read_standing(connection: Connection, retrieval: Retrieval, selection: Filter) -> dict[Provenance, Baseline]:
    """Return what saved memories and statements of agents are compared with, of those in `selection`."""
    generation, vector = retrieval.generation, retrieval.vector
    if generation is None or vector is None:
        return {kind: Baseline({}) for kind in _COMPARED}
    baselines: dict[Provenance, Baseline] = {}
    for kind, limit in _COMPARED.items():
        rows = queries.find_latest(connection, selection, retrieval.passed, kind, limit)
        texts = {row: text for row, text in rows if kind == "saved" or list_statements("assistant", text)}
        numbers, matrix = generation.read_exact(connection, list(texts))
        cosines = map(generation.embedder.floors.rescale, (matrix @ vector).tolist())
        baselines[kind] = Baseline(
            {row: (cosine, _find_language(texts[row])) for row, cosine in zip(numbers, cosines, strict=True)}
        )
    return baselines


def measure(
    retrieval: Retrieval, standing: dict[Provenance, Baseline], memories: Sequence[Given]
) -> list[Measured | None]:
    """Return what is known of each memory; None of one without a vector."""
    words = retrieval.question.words if retrieval.question else []
    telling = math.log1p(sum(is_telling(word.text) for word in words))
    measured: list[Measured | None] = []
    weights = weigh_held(retrieval, [one.row for one in memories], is_telling)
    for one, weight in zip(memories, weights, strict=True):
        compared = standing[one.kind]
        if one.cosine is not None and retrieval.generation is not None:
            cosine = retrieval.generation.embedder.floors.rescale(one.cosine)
        elif one.row in compared.known:
            cosine = compared.known[one.row][0]
        else:
            measured.append(None)
            continue
        above, count = compared.measure(one.row, cosine, _find_language(one.text))
        is_said = 1.0 if one.kind == "said" else 0.0
        measured.append(Measured(above, math.log1p(weight), math.log(count), telling, is_said, is_said * above))
    return measured


@lru_cache(_KEPT)
def _find_language(text: str) -> str:
    return find_language(text) or "English"
