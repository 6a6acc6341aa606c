"""Handlers of the calls that prepare a context and count its tokens."""

from concurrent.futures import Future

from memoryd.client.protocol import ContextText, CountTokens, GetContext, TokenCounts
from memoryd.daemon.context import counting, preparing
from memoryd.daemon.core.checks import check_metadata, check_text
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.handlers.retrieval import sources_of


@handles(GetContext)
def get_context(context: Context, call: GetContext) -> "Future[ContextText]":
    """Say what matters for a task."""
    check_metadata(call.metadata)
    check_text("session", call.session)
    return preparing.context(context.core, sources_of(context), call)


@handles(CountTokens)
def count_tokens(context: Context, call: CountTokens) -> TokenCounts:
    """Count tokens."""
    by = counting.counter(context.core)
    return TokenCounts(counts=[by.count(text) for text in call.texts], tokenizer=by.name)
