"""The probability that a memory is about a prompt: whether it stands out among all memories that could be shown.

Unlike a query, a prompt asks for work, often in other words than the memories that matter to it, and its cosine with
them is mostly below the model's floor of relevance. But unrelated memories are all about equally far from it. So the
main feature is how many standard deviations the cosine is above that of other memories. The others are the weight of
the words that memory and prompt share, how many words the prompt has (little follows from few), and how many other
memories there are, of which one may stand out by chance.

A logistic regression; `tests/quality/fit_sureness.py` fits it and prints its results on projects left out of the fit.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.daemon.language.tongues import is_telling
from memoryd.daemon.search.confidence import weigh_held
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.store import queries
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.rows import Row

_COMPARED = 300  # the latest saved memories
# In the order of the fields of `Measured`.
_CONSTANT, _FACTORS = -1.763, (0.891, 0.661, -1.357, 1.136)
# A prior, as if there were two more, unrelated memories: a single memory is compared with these alone.
_BEFORE, _BEFORE_MEAN, _BEFORE_DEVIATION = 2, 0.1, 0.1
_LEAST_DEVIATION = 0.05


class Measured(NamedTuple):
    """The features of a memory with regard to a prompt."""

    above: float  # standard deviations of its cosine above others
    words: float  # log of the weight of the content words that it shares with the prompt
    others: float  # log of the number of memories
    asked: float  # log of the number of content words in the prompt

    @property
    def sure(self) -> float:
        """The probability that the memory is about the prompt."""
        value = _CONSTANT + sum(factor * measure for factor, measure in zip(_FACTORS, self, strict=True))
        return 1.0 / (1.0 + math.exp(-value))


class Baseline:
    """The saved memories to compare with: by row the rescaled cosine with the prompt."""

    def __init__(self, cosines: Mapping[int, float]) -> None:
        self.known = cosines
        self._values, self._squares = sum(cosines.values()), sum(value * value for value in cosines.values())

    def measure(self, row: int, cosine: float) -> tuple[float, int]:
        """Return by how many standard deviations a cosine is above the others, and the number of memories."""
        own = self.known.get(row)
        count = _BEFORE + len(self.known) - (own is not None)
        values = self._values - (own or 0.0) + _BEFORE * _BEFORE_MEAN
        squares = self._squares - (own or 0.0) ** 2 + _BEFORE * (_BEFORE_DEVIATION**2 + _BEFORE_MEAN**2)
        mean = values / count
        variance = max(0.0, squares / count - mean * mean)
        return (cosine - mean) / math.sqrt(variance + _LEAST_DEVIATION**2), count + 1


def read_standing(connection: Connection, retrieval: Retrieval, selection: Filter) -> Baseline:
    """Return the baseline of the latest saved memories in `selection`."""
    generation, vector = retrieval.generation, retrieval.vector
    if generation is None or vector is None:
        return Baseline({})
    latest = np.array(queries.find_latest(connection, selection, retrieval.passed, _COMPARED), np.int64)
    similarities = dict(generation.index.compute_similarities(vector, latest))
    for number in retrieval.elsewhere:
        if (one := retrieval.candidates.get(number)) and one.similarity is not None:
            similarities[number] = one.similarity
    rescale = generation.embedder.floors.rescale
    return Baseline({row: rescale(cosine) for row, cosine in similarities.items()})


def measure(
    retrieval: Retrieval, standing: Baseline, memories: Sequence[tuple[Row, float | None]]
) -> list[Measured | None]:
    """Return the features of memories, given with their cosines if known; None for a memory without a vector."""
    words = retrieval.question.words if retrieval.question else []
    telling = math.log1p(sum(is_telling(word.text) for word in words))
    measured: list[Measured | None] = []
    weights = weigh_held(retrieval, [row.row for row, _ in memories], is_telling)
    for (row, similarity), weight in zip(memories, weights, strict=True):
        if similarity is not None and retrieval.generation is not None:
            cosine = retrieval.generation.embedder.floors.rescale(similarity)
        elif row.row in standing.known:
            cosine = standing.known[row.row]
        else:
            measured.append(None)
            continue
        above, count = standing.measure(row.row, cosine)
        measured.append(Measured(above, math.log1p(weight), math.log(count), telling))
    return measured
