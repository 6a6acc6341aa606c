"""How near sentences are to examples of what lasts and of what passes, by any embedding model. Pure functions.

The nearness is that of the means of the `_NEAREST` most similar examples of each sort, on a scale on which the examples
themselves, each compared with the others, are on average at 1 and -1: so it means the same with every model.
"""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_NEAREST = 8
_LEAST_SPREAD = 1e-6


class Examples:
    """The vectors of both sorts, shape (n, dimensions), each with more than `_NEAREST` rows."""

    def __init__(self, lasting: Vectors, passing: Vectors) -> None:
        self._lasting, self._passing = lasting, passing
        high = float(np.mean(self._margins(lasting, own=1, other=0)))
        low = float(np.mean(self._margins(passing, own=0, other=1)))
        self._middle, self._half = (high + low) / 2, max((high - low) / 2, _LEAST_SPREAD)

    def nearness(self, vectors: Vectors) -> Vectors:
        """Return for each vector how much nearer it is to what lasts: about 1 for what does, -1 for what passes."""
        if not len(vectors):
            return np.zeros(0, np.float32)
        made: Vectors = (self._margins(vectors, 0, 0) - self._middle) / self._half
        return made

    def _margins(self, vectors: Vectors, own: int, other: int) -> Vectors:
        """Return the differences of similarity; `own` and `other`: how many of the nearest of each are left out."""
        margins: Vectors = _mean(vectors @ self._lasting.T, own) - _mean(vectors @ self._passing.T, other)
        return margins


def _mean(similarities: Vectors, without: int) -> Vectors:
    """Return the mean of the highest of each row, the very highest left out where they are the row itself."""
    ordered = -np.sort(-similarities, axis=1)
    mean: Vectors = ordered[:, without : without + _NEAREST].mean(axis=1)
    return mean
