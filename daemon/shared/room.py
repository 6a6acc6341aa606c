"""The room `shared`: the roots that the kernel asks, a call, and a table."""

from memoryd.daemon.rooms import Room
from memoryd.daemon.shared import sending
from memoryd.daemon.shared.sending import Shared
from memoryd.daemon.shared.tables import sends

ROOM = Room(
    handlers=(sending,),
    tables=sends.TABLES,
    erase=sends.erase,
    start=lambda core: core.state(Shared, core).start(),
    stop=lambda core: core.state(Shared, core).stop(),
)
