"""Handlers of the calls that prepare a context and count its tokens."""

from memoryd.client.protocol import CountTokens, TokenCounts
from memoryd.daemon.context import counting
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import Parts, handles


@handles(CountTokens)
def count_tokens(context: Context, call: CountTokens) -> "Parts[TokenCounts]":
    """Count tokens."""
    by = counting.counter(context.core)
    counts = yield from by.in_parts(call.texts)
    return TokenCounts(counts=counts, tokenizer=by.name)
