"""What may come up though nobody asked for memories: a context at a session's start, or beside a prompt.

It costs the attention of whoever reads it, so it is held to more than what was asked for. Turns of low importance are
left out. By the confidence of its hits a short prompt gets much, little or nothing: where the best is surely about it,
all that is not far less sure; else the best `FEW` in at most `FEW_TOKENS`, unless they have nothing to do with it. A
long prompt says too much for its words to be counted.
"""

from collections.abc import Sequence

from memoryd.client.protocol import Hit
from memoryd.daemon.store import turns

FEW, FEW_TOKENS = 2, 50
_SHORT_WORDS = 20
_SURE, _LEAST = 0.30, 0.05  # confidence
_OF_BEST = 0.2
_BEST = 3  # hits of which one has to be sure


def is_short(task: str) -> bool:
    """Return whether a task says so little that it is like a question."""
    return len(task.split()) <= _SHORT_WORDS


def select_important(hits: Sequence[Hit], promote_from: float) -> list[Hit]:
    """Return the hits without turns of low importance."""
    return [hit for hit in hits if hit.type != turns.TYPE or hit.importance >= promote_from]


def select_worth(hits: Sequence[Hit]) -> tuple[list[Hit], bool]:
    """Return the hits of a short task that are worth to come up unasked, and whether one is surely about it."""
    best = max((hit.confidence for hit in hits[:_BEST]), default=0.0)
    least = max(_LEAST, _OF_BEST * best)
    return [hit for hit in hits if hit.confidence >= least], best >= _SURE
