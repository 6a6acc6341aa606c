"""The largest of many scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 16  # only the best blocks are looked into, which is far cheaper than a full partition


def top(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions of the `k` largest scores, largest first."""
    candidates = _best_blocks(scores, k) if len(scores) > 4 * _BLOCK * k else np.arange(len(scores))
    if len(candidates) > k:
        candidates = candidates[np.argpartition(-scores[candidates], k - 1)[:k]]
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def _best_blocks(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions in the `k` blocks with the largest maxima (the top `k` lie in them) and the rest."""
    whole = len(scores) // _BLOCK * _BLOCK
    maxima = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
    blocks = np.argpartition(-maxima, k - 1)[:k]
    inside = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
    return np.concatenate([inside, np.arange(whole, len(scores))])
