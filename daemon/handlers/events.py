"""Handler of the subscription."""

from concurrent.futures import Future

from memoryd.client.protocol import Subscribe, Subscribed
from memoryd.daemon.core.view import View
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import handles


@handles(Subscribe)
def subscribe(context: Context, call: Subscribe) -> "Future[Subscribed]":
    """Follow events; the lane is free again at once."""
    return context.follow(View(context.core, call, context.caller), call.limit)
