"""Handler of the call that prepares a context."""

from concurrent.futures import Future

from memoryd.client.protocol import ContextText, GetContext
from memoryd.daemon.context import preparing
from memoryd.daemon.core.checks import check_metadata, check_text
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.handlers.retrieval import sources_of


@handles(GetContext)
def get_context(context: Context, call: GetContext) -> "Future[ContextText]":
    """Say what matters for a task."""
    check_metadata(call.metadata)
    check_text("session", call.session)
    return preparing.context(context.core, sources_of(context), call)
