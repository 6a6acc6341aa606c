"""Handlers of the calls that search and explain."""

from memoryd.client.protocol import Explain, Explanation, GetTrace, Hits, Search, Trace, Why, WhyNot
from memoryd.daemon.core.checks import check_metadata
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.search import pipeline, whynot
from memoryd.daemon.search.retrieval import Sources


def sources_of(context: Context) -> Sources:
    """Return what the stages draw from, for a bound caller with who asks."""
    sources = context.core.sources
    return sources._replace(caller=context.caller) if context.caller.bound else sources


@handles(Search)
def search(context: Context, call: Search) -> Hits:
    """Find memories."""
    check_metadata(call.metadata)
    return pipeline.search(sources_of(context), call)


@handles(Explain)
def explain(context: Context, call: Explain) -> Explanation:
    """Find memories and show how."""
    check_metadata(call.metadata)
    return pipeline.explain(sources_of(context), call)


@handles(GetTrace)
def get_trace(context: Context, call: GetTrace) -> Trace:
    """Show how an earlier search went."""
    return pipeline.trace(sources_of(context), call)


@handles(WhyNot)
def why_not(context: Context, call: WhyNot) -> Why:
    """Say why a memory is not among the hits."""
    check_metadata(call.metadata)
    return whynot.why_not(sources_of(context), call)
