"""Count tokens, with the tokenizer of the embedding model.

A long text is counted in slices, since a tokenizer's memory grows with the text. Slices begin at the space before a
word, where tokenizers split anyway; only in a text without spaces the sum may be off by some tokens.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.api import is_api

SLICE_CHARS = 32_768  # some 20 ms
_BYTES_PER_TOKEN = 2  # without a tokenizer; gives more tokens than real ones, so that budgets hold
_LAST_SPACE = re.compile(r".* (?=\S)", re.DOTALL)
_LAST_GAP = re.compile(r".*\s(?=\S)", re.DOTALL)


class Counter(NamedTuple):
    """A way to count tokens, and its name."""

    name: str
    of_slice: Callable[[str], int]

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        return sum(map(self.of_slice, slice_text(text)))


def slice_text(text: str) -> Iterator[str]:
    """Yield the slices of a text, whose tokens add up to its own."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        span = start + SLICE_CHARS // 2, start + SLICE_CHARS
        gap = _LAST_SPACE.match(text, *span) or _LAST_GAP.match(text, *span)
        end = gap.end() - 1 if gap else span[1]
        yield text[start:end]
        start = end
    yield text[start:]


def build_counter(core: Core) -> Counter:
    """Return the counter of the embedding model if it is a local one, else one of bytes."""
    generation = core.embedding.active
    if generation is None or is_api(generation.name):
        return Counter("bytes", lambda text: -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN))
    return Counter(generation.name, generation.embedder.count_tokens)
