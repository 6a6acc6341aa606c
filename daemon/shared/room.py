"""The room `shared`: the roots that the kernel asks, a call, and a table."""

from memoryd.daemon.core.core import Core
from memoryd.daemon.rooms import Room
from memoryd.daemon.shared import calls
from memoryd.daemon.shared.sending import Shared
from memoryd.daemon.shared.tables import sends


def _start(core: Core) -> None:
    core.state(Shared, core).start()


def _stop(core: Core) -> None:
    core.state(Shared, core).stop()


ROOM = Room(handlers=(calls,), tables=sends.TABLES, erase=sends.erase, start=_start, stop=_stop)
