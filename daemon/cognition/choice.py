"""Which provider there is: a language model where one is configured, else the rules."""

from collections.abc import Callable

from memoryd.daemon.cognition.chat import Chat
from memoryd.daemon.cognition.llm import Llm
from memoryd.daemon.cognition.provider import RULES, Provider
from memoryd.daemon.config import LlmConfig


def provider(config: LlmConfig, spend: Callable[[int, int], int], clock: Callable[[], float]) -> Provider:
    """Return the provider that the settings name; `spend` counts the tokens of a day."""
    return Llm(Chat(config, spend, clock)) if config.url else RULES
