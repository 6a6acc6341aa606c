"""One sentence for a text: the sentence nearest to the mean of all of them, by embedding. Pure functions."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.language import rating

MAX_SENTENCES = 10  # looked at: those of the beginning, where people say what they mean
MAX_CHARS = 300  # of the result
_READ_CHARS = 8_000
_MIN_WORDS = 3
_BOUNDARY = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9ÄÖÜÉÀ])|(?<=[。！？])|\n+")
_LEAD = re.compile(r"^(?:[-*•>#]+|\d+[.)]|User:|Assistant:)\s*")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Mr|Mrs|Ms|Dr|St)\.$")


def split_sentences(text: str, limit: int = MAX_SENTENCES) -> list[str]:
    """Return the first sentences of a text as written, without bullets and speakers; code lines are left out."""
    found: list[str] = []
    joined = ""
    for part in _BOUNDARY.split(text[:_READ_CHARS].replace("```", "\n")):
        piece = f"{joined} {part}".strip() if joined else _LEAD.sub("", part.strip())
        joined = piece if _ABBREVIATED.search(piece) else ""
        if not joined and len(piece.split()) >= _MIN_WORDS:
            found.append(piece)
    if joined:
        found.append(joined)
    return found[:limit]


def find_central(found: Sequence[str], vectors: NDArray[np.float32]) -> str:
    """Return the sentence whose vector is nearest to the mean of all; what informs precedes what does not."""
    weights = np.array([rating.importance(sentence) for sentence in found], np.float32)
    mean = weights @ vectors
    scores = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-9)) + 0.25 * weights
    return _fit(found[int(np.argmax(scores))])


def find_first_informative(found: Sequence[str]) -> str:
    """Return the first sentence that a judge would keep, else the one it rates highest."""
    rated = [rating.importance(sentence) for sentence in found]
    best = next((i for i, value in enumerate(rated) if value >= 0.5), max(range(len(rated)), key=rated.__getitem__))
    return _fit(found[best])


def _fit(sentence: str) -> str:
    if len(sentence) <= MAX_CHARS:
        return sentence
    return sentence[: MAX_CHARS - 1].rsplit(" ", 1)[0] + "…"
