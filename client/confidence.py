"""The words for the confidence of a search result: memctl, the page and the MCP server print the same ones.

The bounds are from the share of results that are right (docs/quality.md).
"""

import math

LIKELY, MAYBE = 0.2, 0.05
FLOOR = 0.02  # most unrelated results are below it (docs/experiments.md)
UNLIKELY = "unlikely"  # `memctl search` shows such results only with `--all`


def word_of(confidence: float) -> str:
    """Return the word for a confidence from 0 to 1."""
    if confidence < FLOOR:
        return UNLIKELY
    return "likely" if confidence >= LIKELY else "maybe" if confidence >= MAYBE else "a guess"


def describe_confidence(confidence: float) -> str:
    """Return the word and the percentage: "likely (62%)"; a small percentage is rounded down to a tenth."""
    percent = confidence * 100
    number = f"{percent:.0f}" if percent >= 10 else f"{math.floor(percent * 10) / 10:g}"
    return f"{word_of(confidence)} ({number}%)"
