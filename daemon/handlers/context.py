"""Handlers of the calls that prepare a context and count its tokens."""

from memoryd.client.protocol import CountTokens, TokenCounts
from memoryd.daemon.context import counting
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import handles


@handles(CountTokens)
def count_tokens(context: Context, call: CountTokens) -> TokenCounts:
    """Count tokens."""
    by = counting.counter(context.core)
    return TokenCounts(counts=[by.count(text) for text in call.texts], tokenizer=by.name)
