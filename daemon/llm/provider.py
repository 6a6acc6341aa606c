"""The interface of cognition, and what the daemon shares of it.

A provider rates turns and condenses them. The rules need no model and never fail; another provider that fails is
followed by the rules.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.client.protocol import LlmUsage
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.language import condensing, digesting, dreaming, extracting, rating
from memoryd.daemon.language.dreaming import Fate, Likeness, Note
from memoryd.daemon.language.examples import LASTING, PASSING
from memoryd.daemon.language.extracting import Examples, Fact, Statement

_PORTION = 8
_NOTHING = np.zeros((0, 0), np.float32)
_BREATH_S = 0.001  # between two texts: rules are Python, which other threads wait for

# Gives the vectors of sentences, shape (n, dimensions), or None while there is no model.
Embed = Callable[[Sequence[str]], NDArray[np.float32] | None]


# Gives the most distinctive terms of each group of texts.
Terms = Callable[[Sequence[Sequence[str]]], list[str]]

Spoken = tuple[str, str]  # role and content of a turn
T = TypeVar("T")


class Provider(Protocol):
    """What does the thinking."""

    name: str

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        """Return how much each turn matters, 0 to 1."""

    def condense(self, content: str) -> str:
        """Return what a text says in one sentence; empty when it is no longer than that itself."""

    def extract(self, turns: Sequence[Spoken], embed: Embed) -> list[Fact]:
        """Return what a conversation says that is worth keeping, each with the turns that say it."""

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Return what a session came to, a line for each point; `previous` is what it came to before these turns."""

    def dream(self, notes: Sequence[Note], likeness: Likeness) -> list[Fate]:
        """Return the outcome of notes about like things, the oldest of which comes first."""

    def label(self, groups: Sequence[Sequence[str]], terms: Terms) -> list[str]:
        """Return a label for each group of texts; `terms` gives those of the rules."""

    def close(self) -> None:
        """Answer what is under way with a failure, at once."""


class Rules:
    """Features and central sentences: no model of language, no network."""

    name = "rules"

    def __init__(self) -> None:
        self._known: tuple[bytes, Examples] | None = None

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        """Rate by features, one turn after the other with a breath between them."""
        rated = []
        for _, content in turns:
            time.sleep(_BREATH_S)
            rated.append(rating.importance(content))
        return rated

    def condense(self, content: str) -> str:
        """Choose the most central sentence."""
        time.sleep(_BREATH_S)
        found = condensing.split_sentences(content)
        return condensing.find_central(found) if len(found) > 1 else ""

    def extract(self, turns: Sequence[Spoken], embed: Embed) -> list[Fact]:
        """Take statements by their marks and their meaning, one turn after the other with a breath between them."""
        found: list[Statement] = []
        for index, (role, content) in enumerate(turns):
            time.sleep(_BREATH_S)
            found += extracting.extract_from_turn(role, content, index)
        weighed = self._weigh(found, turns, embed)
        facts = extracting.merge(extracting.extract_by_marks(found) if weighed is None else weighed)
        return extracting.choose_surest(facts, [content for _, content in turns])

    def _weigh(self, found: Sequence[Statement], turns: Sequence[Spoken], embed: Embed) -> list[Fact] | None:
        """Return statements as facts with their confidence by marks and meaning, None without a model.

        The meaning is that of the turn, whose vector is there already: sentences of their own have no better one.
        """
        examples = self._embed_examples(embed)
        if examples is None:
            return None
        vectors = _embed_batches([turns[one.turn][1] for one in found], embed) if found else _NOTHING
        return None if vectors is None else extracting.extract_by_meaning(found, vectors, examples)

    def _embed_examples(self, embed: Embed) -> Examples | None:
        """Return the examples in the space of the present model; they are embedded once for each."""
        probe = embed(LASTING[:1])
        if probe is None:
            return None
        key = probe.tobytes()
        if self._known is None or self._known[0] != key:
            lasting, passing = _embed_batches(LASTING, embed), _embed_batches(PASSING, embed)
            if lasting is None or passing is None or lasting.shape[1] != passing.shape[1]:
                return None
            self._known = key, Examples(lasting, passing)
        return self._known[1]

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Choose the most central and most important sentences."""
        time.sleep(_BREATH_S)
        return digesting.summary(turns, previous, max_tokens)

    def dream(self, notes: Sequence[Note], likeness: Likeness) -> list[Fate]:
        """Leave out repeats and what a newer note puts out of date."""
        return dreaming.find_fates(notes, likeness)

    def label(self, groups: Sequence[Sequence[str]], terms: Terms) -> list[str]:
        """Take the most distinctive terms."""
        return terms(groups)

    def close(self) -> None:
        """Have nothing to end."""


def _embed_batches(texts: Sequence[str], embed: Embed) -> NDArray[np.float32] | None:
    """Embed texts a few at a time, so that nobody waits for long."""
    parts = []
    for portion in split_evenly(texts, _PORTION):
        part = embed(portion)
        if part is None:
            return None
        parts.append(part)
        time.sleep(_BREATH_S)
    return np.concatenate(parts)


RULES = Rules()


def ask(log: logging.Logger, provider: Provider, task: str, question: Callable[[Provider], T]) -> tuple[str, T]:
    """Return who answers a question, and the answer; the rules where the provider fails, which is logged."""
    try:
        return provider.name, question(provider)
    except Exception as error:
        log.warning("%s could not %s, the rules do: %s", provider.name, task, error)
        return RULES.name, question(RULES)


class Cognition:
    """The provider in use. `wake` is set when there may be something to think about."""

    def __init__(self, provider: Provider | None = None) -> None:
        self.provider: Provider = provider or RULES
        self.wake = threading.Event()
        self.embedding = threading.Lock()  # held while turns are embedded, so that each is once

    def report_usage(self) -> LlmUsage | None:
        """Return how a language model was used, None where there is none."""
        return getattr(self.provider, "usage", None)
