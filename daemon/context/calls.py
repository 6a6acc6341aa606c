"""Handlers of the calls that prepare a context and count its tokens."""

from memoryd.client.protocol import CountTokens, TokenCounts
from memoryd.daemon.context import counting
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import Parts, handles


@handles(CountTokens)
def count_tokens(core: Core, call: CountTokens) -> "Parts[TokenCounts]":
    """Count tokens."""
    by = counting.build_counter(core)
    counts = yield from by.count_in_parts(call.texts)
    return TokenCounts(counts=counts, tokenizer=by.name)
