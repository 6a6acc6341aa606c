"""Count tokens, with the tokenizer that a call names, else with that of a local embedding model.

A long text is counted in slices, since a tokenizer's memory grows with the text, and so that callers can pause between
slices. Slices begin at the space before a word, where tokenizers split anyway; only in a text without spaces the sum
may be off by some tokens.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import Forbidden, Invalid
from memoryd.client.protocol import CountTokens, TokenCounts
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.api import is_api
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.store.caller import USER, Caller

SLICE_CHARS = 32_768  # some 20 ms
_BYTES = "bytes"
_CACHED = 8  # tokenizers
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

    def count_in_parts(self, texts: Sequence[str]) -> Generator[None, None, list[int]]:
        """Return how many tokens each text has; yield from time to time."""
        counts: list[int] = []
        since = 0  # characters
        for text in texts:
            counts.append(0)
            for part in slice_text(text):
                if since + len(part) > SLICE_CHARS:
                    yield
                    since = 0
                counts[-1] += self.of_slice(part)
                since += len(part)
        return counts


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


def build_counter(core: Core, named: str = "", caller: Caller = USER) -> Counter:
    """Return the counter that a call names, or the daemon's default."""
    if named:
        return _find_named(core, named, caller)
    if (own := _find_own(core)) is not None:
        return own
    return Counter(_BYTES, _count_bytes)


def _find_named(core: Core, name: str, caller: Caller) -> Counter:
    """Return the counter with a name; raise if there is none, since another one would count differently."""
    if name == _BYTES:
        return Counter(name, _count_bytes)
    if (own := _find_own(core)) is not None and own.name == name:
        return own
    if name.startswith("/"):
        if caller.bound:
            raise Forbidden("With a token no file may be named as a tokenizer.")
        return Counter(name, _load_file(name))
    raise Invalid(
        f"There is no tokenizer {name[:200]!r}: name the path of a tokenizer.json, `bytes`, or the embedding model."
    )


def _find_own(core: Core) -> Counter | None:
    """Return the counter of the local embedding model, None if there is none."""
    generation = core.embedding.active
    if generation is None or is_api(generation.name):
        return None
    return Counter(generation.name, generation.embedder.count_tokens)


def _load_file(path: str) -> Callable[[str], int]:
    """Return the counter of a tokenizer.json."""
    try:
        return _parse_file(path, Path(path).stat().st_mtime_ns)
    except Exception as error:  # the parser raises plain Exception
        raise Invalid(f"{path[:200]} cannot be read as a tokenizer.json: {str(error)[:200]}") from None


@lru_cache(maxsize=_CACHED)
def _parse_file(path: str, changed_ns: int) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _count_bytes(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


@handles(CountTokens)
def count_tokens(core: Core, call: CountTokens, caller: Caller = USER) -> "Parts[TokenCounts]":
    """Count tokens."""
    by = build_counter(core, call.tokenizer, caller)
    counts = yield from by.count_in_parts(call.texts)
    return TokenCounts(counts=counts, tokenizer=by.name)
