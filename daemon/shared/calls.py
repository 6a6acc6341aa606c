"""The call on shared roots."""

from memoryd.client.protocol import GetShared, SharedStatus
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.shared.sending import Shared, describe
from memoryd.daemon.shared.tables import sends


@handles(GetShared)
def get_shared(core: Core, call: GetShared) -> SharedStatus:
    """Return the state of the roots; with `send` try again to send waiting memories."""
    shared = core.state(Shared, core)
    if call.send:
        core.store.write(lambda transaction: sends.send_again(transaction.connection), over_limit=True).result()
        for root in shared.roots:
            root.line.hurry()
        shared.wake.set()
    return describe(core, shared)
