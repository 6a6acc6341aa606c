"""What a conversation came to, by rules: its most central and important sentences, in their order. Pure functions."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.language import condensing, extracting, rating

MAX_SENTENCES = 80  # compared with each other: the latest
_CHARS_PER_TOKEN = 4
_ALIKE = 0.8  # cosine from which a sentence says what a chosen one said
_IMPORTANT, _FAILED = 1.0, 0.25  # weights beside the cosine to the middle of the conversation
_MIN_IMPORTANCE = 0.66  # more than a plain statement, or one with a date alone

_Embed = Callable[[Sequence[str]], NDArray[np.float32] | None]


def summary(turns: Sequence[tuple[str, str]], previous: str, max_tokens: int, embed: _Embed) -> str:
    """Return the sentences that matter most within about so many tokens; empty when none does."""
    found = [*previous.splitlines(), *(line for role, content in turns for line in _weigh(role, content))]
    found = list(dict.fromkeys(found))[-MAX_SENTENCES:]
    if not found:
        return ""
    weights = np.array([_weight(sentence) for sentence in found], np.float32)
    vectors = embed(found)
    scores = _IMPORTANT * weights
    if vectors is not None:
        middle = weights @ vectors
        scores = scores + vectors @ (middle / max(float(np.linalg.norm(middle)), 1e-9))
    return "\n".join(found[at] for at in sorted(_choose(found, scores, vectors, max_tokens * _CHARS_PER_TOKEN)))


def _weigh(role: str, content: str) -> Iterator[str]:
    for sentence in condensing.split_sentences(content, MAX_SENTENCES):
        if len(sentence) > extracting.MAX_CHARS:
            continue
        said = extracting.is_lasting(role, sentence) and not rating.is_request(sentence)
        if said and rating.importance(sentence) >= _MIN_IMPORTANCE:
            yield sentence


def _weight(sentence: str) -> float:
    what = set(rating.list_features(sentence))
    return rating.importance(sentence) + (_FAILED if what & {"lesson", "decision"} else 0.0)


def _choose(
    found: Sequence[str], scores: NDArray[np.float32], vectors: NDArray[np.float32] | None, chars: int
) -> list[int]:
    """Return the best sentences that fit, none that says what a better one said."""
    chosen: list[int] = []
    for at in np.argsort(-scores, kind="stable").tolist():
        if len(found[at]) + 1 > chars:
            continue
        if vectors is not None and chosen and float((vectors[chosen] @ vectors[at]).max()) >= _ALIKE:
            continue
        chosen.append(at)
        chars -= len(found[at]) + 1
    return chosen
