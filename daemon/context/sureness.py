"""How sure it is that a memory is about a prompt: it stands out among all that might come up there.

A prompt is no question. It asks for work in words that what matters to it need not have, and its cosine with that is
mostly below what a search calls relevant. But unrelated memories are all about equally far from it, in whatever
language it is. So a memory is compared with the others of its kind within reach: by how many standard deviations its
cosine is above theirs, what the words weigh that it has in common with the prompt, and how many others there are, of
which one may stand out by chance.

A logistic regression on the seen halves of `tests/data/unasked` and `tests/data/team` (of a project without its own
prompts, the figures are the same). What an agent said in passing is held to more than what was saved on purpose.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.daemon.context.lines import list_statements
from memoryd.daemon.search.confidence import weigh_held
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.store import queries
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.queries import Kind

_COMPARED: dict[Kind, int] = {"saved": 300, "said": 100}  # the latest memories of a kind
_CONSTANT, _ABOVE, _WORDS, _OTHERS = 2.135, 1.006, 0.919, -1.97
_SAID = -1.25  # of what an agent said
# As if there were two more that have nothing to do with the prompt: a single memory is compared with them alone.
_BEFORE, _BEFORE_MEAN, _BEFORE_DEVIATION = 2, 0.1, 0.1
_LEAST_DEVIATION = 0.05
_LEAST_COSINE = 0.25  # without a word in common


class Standing(NamedTuple):
    """The cosines with a prompt of what memories of one kind are compared with, by row."""

    cosines: dict[int, float]

    def measure(self, row: int, cosine: float) -> tuple[float, int]:
        """Return by how many standard deviations a cosine is above the others', and how many memories there are."""
        others = [value for other, value in self.cosines.items() if other != row]
        count = _BEFORE + len(others)
        mean = (_BEFORE * _BEFORE_MEAN + sum(others)) / count
        squares = _BEFORE * (_BEFORE_DEVIATION**2 + _BEFORE_MEAN**2) + sum(value * value for value in others)
        variance = max(0.0, squares / count - mean * mean)
        return (cosine - mean) / math.sqrt(variance + _LEAST_DEVIATION**2), count + 1


def read_standing(connection: Connection, retrieval: Retrieval, chosen: Filter) -> dict[Kind, Standing]:
    """Return what a memory that was saved, and one that an agent said, are compared with, as far as `chosen`."""
    generation, vector = retrieval.generation, retrieval.vector
    if generation is None or vector is None:
        return {kind: Standing({}) for kind in _COMPARED}
    found: dict[Kind, Standing] = {}
    for kind, limit in _COMPARED.items():
        rows = queries.find_latest(connection, chosen, retrieval.passed, kind, limit)
        numbers = [row for row, text in rows if kind == "saved" or list_statements("assistant", text)]
        known, matrix = generation.read_exact(connection, numbers)
        found[kind] = Standing(dict(zip(known, (matrix @ vector).tolist(), strict=True)))
    return found


def rate(
    retrieval: Retrieval, standing: dict[Kind, Standing], rows: Sequence[tuple[Kind, int, float | None]]
) -> list[float]:
    """Return how sure it is of each row, given with its kind and its cosine, that it is about the prompt: 0 to 1."""
    rated: list[float] = []
    for (kind, row, found), weight in zip(rows, weigh_held(retrieval, [row for _, row, _ in rows]), strict=True):
        cosine = found if found is not None else standing[kind].cosines.get(row)
        if cosine is None or (cosine < _LEAST_COSINE and weight <= 0.0):
            rated.append(0.0)
            continue
        above, count = standing[kind].measure(row, cosine)
        value = _CONSTANT + _ABOVE * above + _WORDS * math.log1p(weight) + _OTHERS * math.log(count)
        rated.append(1.0 / (1.0 + math.exp(-value - (_SAID if kind == "said" else 0.0))))
    return rated
