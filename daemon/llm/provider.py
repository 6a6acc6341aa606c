"""The interface of providers, the provider of rules, and the provider in use.

A provider rates and condenses turns, summarises sessions and extracts facts. The rules need no model and never fail,
but extract no facts. They answer when another provider fails.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from memoryd.client.protocol import LlmUsage
from memoryd.daemon.language import condensing, digesting, rating
from memoryd.daemon.llm.chat import Chat

_BREATH_S = 0.001  # a pause between texts, in which other threads get Python's lock

Spoken = tuple[str, str]  # role and content of a turn
T = TypeVar("T")


class Fact(NamedTuple):
    """A fact: its type, how sure it is (0 to 1), and the indexes of the turns that say it."""

    text: str
    type: str
    confidence: float
    turns: tuple[int, ...]


class Provider(Protocol):
    """Rates, condenses, extracts and summarises."""

    name: str

    @property
    def chat(self) -> Chat | None:
        """Return the language model, which rooms ask further questions; None: there is none."""

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        """Return how much each turn matters, 0 to 1."""

    def condense(self, content: str) -> str:
        """Return the essence of a text in one sentence; empty if the text is not longer than that."""

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        """Return the facts in a conversation that matter later, each with the turns that say it."""

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Return a summary of a session, one point per line; `previous` is the summary of the turns before these."""

    def close(self) -> None:
        """Let the current question fail at once, and further ones too."""


class RulesProvider:
    """Rates by features of a text and summarises by central sentences, without a language model or a network."""

    name = "rules"
    chat = None

    def rate(self, turns: Sequence[Spoken]) -> list[float]:
        """Rate by features, one turn after the other, with a pause before each."""
        importances = []
        for _, content in turns:
            time.sleep(_BREATH_S)
            importances.append(rating.importance(content))
        return importances

    def condense(self, content: str) -> str:
        """Choose the most central sentence."""
        time.sleep(_BREATH_S)
        sentences = condensing.list_telling(content)
        return condensing.find_central(sentences) if len(sentences) > 1 else ""

    def extract(self, turns: Sequence[Spoken]) -> list[Fact]:
        """Return none: searches find the turns themselves."""
        return []

    def digest(self, turns: Sequence[Spoken], previous: str, max_tokens: int) -> str:
        """Quote the first request and the last answer with content."""
        time.sleep(_BREATH_S)
        return digesting.summary(turns, previous, max_tokens)

    def close(self) -> None:
        """Do nothing."""


RULES = RulesProvider()


def ask(log: logging.Logger, provider: Provider, task: str, question: Callable[[Provider], T]) -> tuple[str, T]:
    """Return the name of the answering provider, and the answer; if a provider fails, log that and ask the rules."""
    try:
        return provider.name, question(provider)
    except Exception as error:
        log.warning("%s could not %s, rules are used instead: %s", provider.name, task, error)
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
        """Wake all threads, because there may be work."""
        for event in self._events:
            event.set()


class Cognition:
    """The provider in use, and the events of the threads that use it."""

    def __init__(self, provider: Provider | None = None) -> None:
        self.provider: Provider = provider or RULES
        self.wake = Wake()
        self.embedding = threading.Lock()  # held while turns are embedded, so that none is embedded twice

    def report_usage(self) -> LlmUsage | None:
        """Return the use of the language model; None: there is none."""
        return getattr(self.provider, "usage", None)
