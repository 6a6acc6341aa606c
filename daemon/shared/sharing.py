"""All shared roots of a daemon. Nothing is started, and psycopg is not imported, while there is none."""

import logging
import secrets
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.extras import advise
from memoryd.client.protocol import RefusedMemory, SharedRoot
from memoryd.client.shared.calls import Sharing
from memoryd.daemon.config import SharedConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.writer import Transaction

if TYPE_CHECKING:
    from memoryd.daemon.shared.line import EngineThread

log = logging.getLogger(__name__)

_MACHINE = "shared_machine"  # setting: what this machine is called on the servers


class Lines:
    """The threads of the shared roots; `lines_of` returns those of a core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lines: dict[str, EngineThread] = {}

    def start(self) -> None:
        """Begin to exchange what is shared."""
        with self._core.store.reading() as connection:
            roots = shared.read_roots(connection)
        for root in roots:
            if not root.confirmed:
                log.warning(
                    "%s came with a restored copy and is not exchanged; `memctl shared add` confirms it", root.name
                )
                continue
            try:
                self.open(root)
            except MemorydError as error:
                log.warning("%s is not exchanged: %s", root.name, error.message)

    def open(self, root: Root) -> None:
        """Begin to exchange a root."""
        check_installed()
        from memoryd.daemon.shared.line import EngineThread  # loads psycopg

        given = settings_of(self._core, root.name)
        places = {"server": given.server or root.server, "passfile": given.passfile or root.passfile}
        root = msgspec.structs.replace(root, **places)
        self.shut(root.name)
        self._lines[root.name] = EngineThread(self._core, root, self.name_machine(), given)
        self._core.store.on_change = self.wake

    def shut(self, name: str) -> None:
        """End the exchange of a root."""
        if line := self._lines.pop(name, None):
            line.close()
        if not self._lines:
            self._core.store.on_change = None

    def close(self) -> None:
        """End the exchange of all roots."""
        for name in list(self._lines):
            self.shut(name)

    def wake(self) -> None:
        """Exchange soon."""
        for line in list(self._lines.values()):
            line.wake()

    def name_machine(self) -> str:
        """Return what this machine is called on the servers; the first time it gets a name."""
        found = self._core.store.read_setting(_MACHINE)
        if found is None:
            found = f"{socket.gethostname()[:40]}-{secrets.token_hex(3)}"
            self._core.store.set_setting(_MACHINE, found).result()
        return found

    def report(self) -> Sharing:
        """Return the shared roots and how their exchange is."""
        with self._core.store.reading() as connection:
            found = [self._report_root(connection, root) for root in shared.read_roots(connection)]
        return Sharing(machine=(self._core.store.read_setting(_MACHINE) or "") if found else "", roots=found)

    def _report_root(self, connection: Connection, root: Root) -> SharedRoot:
        names = self._core.store.namespaces
        result = SharedRoot(
            root=root.name,
            server=root.server,
            state="starting" if root.confirmed else "unconfirmed",
            error=""
            if root.confirmed
            else f"It came with a restored copy; `memctl shared add {root.name}` confirms it.",
            namespaces=sorted(names.name(number) for number in shared.list_shared_namespaces(connection, root.id)),
            conversations=bool(root.conversations),
            writable=bool(root.writable),
            memories=shared.count_memories(connection, root.id),
            partial=bool(root.partial),
            waiting=shared.count_waiting(connection, root.id),
            refused=[RefusedMemory(id=id, reason=reason) for id, reason in shared.read_stuck(connection, root.id)],
            conflicts=shared.count_conflicts(connection, root.id),
        )
        if line := self._lines.get(root.name):
            figures = line.engine.figures
            result.server = line.engine.root.server
            result.unread = max(0, figures.head - root.cursor)
            for name in ("state", "error", "pulled", "pushed", "compared", "ready_at", "machines"):
                setattr(result, name, getattr(figures, name))
        return result


def lines_of(core: Core) -> Lines:
    """Return the threads of the shared roots of a core."""
    return core.state(Lines, core)


def check_installed() -> None:
    """Raise `Invalid` where the packages of the shared tier are not installed."""
    if find_spec("psycopg") is None:
        raise Invalid(f"The parts for sharing are not installed; {advise('shared')}")


def add_root(core: Core, root: Root, namespaces: list[str]) -> Root:
    """Write a root, or more namespaces of one that is shared already; return it as it is stored."""

    def write(transaction: Transaction) -> Root:
        connection = transaction.connection
        known = shared.find_root(connection, root.name)
        stored = msgspec.structs.replace(known or root, server=root.server, passfile=root.passfile, confirmed=1)
        stored.conversations = max(root.conversations, known.conversations if known else 0)
        if known is None:
            stored.id = shared.add_root(connection, stored)
        else:
            names = ("server", "passfile", "conversations", "confirmed")
            shared.change_root(connection, stored.id, **{name: getattr(stored, name) for name in names})
        numbers = [core.store.namespaces.ensure(transaction, name) for name in namespaces]
        shared.share_namespaces(connection, stored.id, numbers)
        return shared.find_root(connection, root.name) or stored

    return core.store.write(write).result()


def settings_of(core: Core, name: str) -> SharedConfig:
    """Return the settings of a root."""
    return core.config.shared.get(name, SharedConfig())
