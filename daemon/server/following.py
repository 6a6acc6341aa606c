"""Handler of the subscription."""

from concurrent.futures import Future

from memoryd.client.protocol import Subscribe, Subscribed
from memoryd.daemon.registry import handles
from memoryd.daemon.server.dispatch import Context
from memoryd.daemon.server.view import View


@handles(Subscribe)
def subscribe(context: Context, call: Subscribe) -> "Future[Subscribed]":
    """Follow events; the lane is free again at once."""
    return context.follow(View(context.core, call, context.caller), call.limit)
