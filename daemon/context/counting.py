"""Counting tokens: by the encoding that the settings name, else by the tokenizer of an embedding model that is here."""

import logging
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from memoryd.client.offline import is_offline
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.api import is_api

_BYTES_PER_TOKEN = 2  # without any tokenizer: more than real ones need, so that the budget holds with them

log = logging.getLogger(__name__)


class Counter(NamedTuple):
    """A way to count tokens, and its name."""

    name: str
    count: Callable[[str], int]


def counter(core: Core) -> Counter:
    """Return how tokens are counted now."""
    encoding = core.config.context.encoding
    if encoding and (found := _encoding(encoding)) is not None:
        return Counter(encoding, found)
    if (generation := core.embedding.active) is not None and not is_api(generation.name):
        return Counter(generation.name, generation.embedder.count_tokens)
    return Counter("bytes", _by_bytes)


def _by_bytes(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


@cache
def _encoding(name: str) -> Callable[[str], int] | None:
    """Return the counter of an encoding of tiktoken, None where it cannot be had. It may be fetched."""
    if is_offline():
        log.warning("the encoding %s might be fetched and `offline` is set: the model's tokenizer counts", name)
        return None
    try:
        import tiktoken

        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # not installed, an unknown name, or no network to fetch it by
        log.warning("tokens cannot be counted by the encoding %s, the model's tokenizer does: %s", name, error)
        return None
    return lambda text: len(encoding.encode(text, disallowed_special=()))
