"""Which provider there is: a language model where one is configured, else the rules."""

from collections.abc import Callable

from memoryd.daemon.config import LlmConfig
from memoryd.daemon.llm.chat import Chat
from memoryd.daemon.llm.llm import Llm
from memoryd.daemon.llm.provider import RULES, Provider


def choose_provider(config: LlmConfig, spend: Callable[[int, int], int], clock: Callable[[], float]) -> Provider:
    """Return the provider that the settings name; `spend` counts the tokens of a day."""
    return Llm(Chat(config, spend, clock)) if config.url else RULES
