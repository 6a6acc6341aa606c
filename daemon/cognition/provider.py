"""The interface of cognition, and what the daemon shares of it.

A provider rates turns and condenses them. The rules need no model and never fail; another provider that fails is
followed by the rules.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.cognition import condensing, rating

# Gives the vectors of sentences, shape (n, dimensions), or None while there is no model.
Embed = Callable[[Sequence[str]], NDArray[np.float32] | None]


class Provider(Protocol):
    """What does the thinking."""

    name: str

    def rate(self, role: str, content: str) -> float:
        """Return how much a turn matters, 0 to 1."""

    def condense(self, content: str, embed: Embed) -> str:
        """Return what a text says in one sentence; empty when it is no longer than that itself."""


class Rules:
    """Features and central sentences: no model of language, no network."""

    name = "rules"

    def rate(self, role: str, content: str) -> float:
        """Rate by features."""
        return rating.importance(content)

    def condense(self, content: str, embed: Embed) -> str:
        """Choose the most central sentence by embedding; without a model the first that informs."""
        found = condensing.sentences(content)
        if len(found) < 2:
            return ""
        vectors = embed(found)
        return condensing.first_informative(found) if vectors is None else condensing.central(found, vectors)


class Cognition:
    """The provider in use. `wake` is set when there may be something to think about, `turn` held while one thinks."""

    def __init__(self, provider: Provider | None = None) -> None:
        self.provider: Provider = provider or Rules()
        self.wake = threading.Event()
        self.turn = threading.Lock()
