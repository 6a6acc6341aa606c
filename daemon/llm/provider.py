"""The interface of cognition, and what the daemon shares of it.

A provider rates turns, condenses them, sums sessions up and makes facts. The rules need no model and never fail; they
make no facts. Where another provider fails, the rules do what they can.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from memoryd.client.protocol import LlmUsage
from memoryd.daemon.language import condensing, digesting, rating
from memoryd.daemon.llm.chat import Chat

_BREATH_S = 0.001  # between two texts: rules are Python, which other threads wait for

Spoken = tuple[str, str]  # role and content of a turn
T = TypeVar("T")


class Fact(NamedTuple):
    """One thing worth keeping: its type, how sure it is (0 to 1), and the turns that say it, by index."""

    text: str
    type: str
    confidence: float
    turns: tuple[int, ...]


class Provider(Protocol):
    """What does the thinking."""

    name: str

    @property
    def chat(self) -> Chat | None:
        """Return the language model that rooms ask questions of their own; None: there is none."""

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        """Return how much each turn matters, 0 to 1."""

    def condense(self, content: str) -> str:
        """Return what a text says in one sentence; empty when it is no longer than that itself."""

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        """Return what a conversation says that is worth keeping, each with the turns that say it."""

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Return what a session came to, a line for each point; `previous` is what it came to before these turns."""

    def close(self) -> None:
        """Answer what is under way with a failure, at once."""


class RulesProvider:
    """Features and central sentences: no model of language, no network."""

    name = "rules"
    chat = None

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
        sentences = condensing.list_telling(content)
        return condensing.find_central(sentences) if len(sentences) > 1 else ""

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        """Make none: the turns themselves are found."""
        return []

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Quote what was asked first and the last answer that says something."""
        time.sleep(_BREATH_S)
        return digesting.summary(turns, previous, max_tokens)

    def close(self) -> None:
        """Have nothing to end."""


RULES = RulesProvider()


def ask(log: logging.Logger, provider: Provider, task: str, question: Callable[[Provider], T]) -> tuple[str, T]:
    """Return who answers a question, and the answer; the rules where the provider fails, which is logged."""
    try:
        return provider.name, question(provider)
    except Exception as error:
        log.warning("%s could not %s, the rules do: %s", provider.name, task, error)
        return RULES.name, question(RULES)


class Wake:
    """The events on which threads wait for work of the extraction queue."""

    def __init__(self) -> None:
        self._events: list[threading.Event] = []

    def add(self) -> threading.Event:
        """Return an event for one more thread."""
        event = threading.Event()
        self._events.append(event)
        return event

    def set(self) -> None:
        """Wake all threads: there may be work."""
        for event in self._events:
            event.set()


class Cognition:
    """The provider in use. `wake` is set when there may be work in the extraction queue."""

    def __init__(self, provider: Provider | None = None) -> None:
        self.provider: Provider = provider or RULES
        self.wake = Wake()
        self.embedding = threading.Lock()  # held while turns are embedded, so that each is once

    def report_usage(self) -> LlmUsage | None:
        """Return how a language model was used, None where there is none."""
        return getattr(self.provider, "usage", None)
