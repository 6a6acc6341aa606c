"""The largest of many scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 16  # only the best blocks are looked into, which is far cheaper than a full partition


def find_top(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions of the `k` largest scores, largest first."""
    candidates = _find_best_blocks(scores, k) if len(scores) > 4 * _BLOCK * k else np.arange(len(scores))
    if len(candidates) > k:
        candidates = candidates[np.argpartition(-scores[candidates], k - 1)[:k]]
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def _find_best_blocks(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions in the `k` blocks with the largest maxima (the top `k` lie in them) and the rest, rising.

    A block is every so manieth score: the maxima of all blocks are then found side by side.
    """
    count = len(scores) // _BLOCK
    maxima = scores[: count * _BLOCK].reshape(_BLOCK, count).max(axis=0)
    blocks = np.argpartition(-maxima, k - 1)[:k]
    inside = (blocks[:, None] + np.arange(_BLOCK) * count).ravel()
    return np.concatenate([np.sort(inside), np.arange(count * _BLOCK, len(scores))])
