"""A place that holds the root `acme`, and a daemon that is joined to it."""

import math
import sys
from collections.abc import Callable
from typing import Any

from memoryd.client import Client
from memoryd.client.protocol import Add, Added, AddToken, GetShared, NewMemory
from memoryd.daemon.shared.root import Root
from memoryd.daemon.shared.sending import Shared as Roots
from sshd import Sshd
from waiting import wait_until
from workbench import Daemon

MEMCTL = f"{sys.executable} -m memoryd.client.programs.memctl"


def decide(client: Client, content: str, namespace: str = "acme/api", dedup: bool = True, **fields: Any) -> Added:
    """Save a decision."""
    memory = NewMemory(content=content, type="decision", **fields)
    return client.call(Add(memory=memory, namespace=namespace, dedup=dedup))


def get_roots(daemon: Daemon) -> list[Root]:
    roots: list[Root] = daemon.core.state(Roots, daemon.core).roots
    return roots


def compare(daemon: Daemon) -> None:
    """Have the place asked whether it has all that it has taken, and wait until it was."""
    [root] = get_roots(daemon)
    before = root.compared_at = -math.inf
    root.wake()
    wait_until(lambda: root.compared_at > before)


def let_a_day_pass(daemon: Daemon) -> None:
    """Make what the place has taken a day older."""
    daemon.core.store.write(lambda one: one.connection.execute("UPDATE sent SET at = at - 86401")).result()
    compare(daemon)


class Joined:
    """A daemon `here`, with the owner's client."""

    daemon: Daemon
    here: Client

    def decide(self, content: str, namespace: str = "acme/api", **fields: Any) -> Added:
        """Save a decision here."""
        return decide(self.here, content, namespace, **fields)

    def list_waiting(self) -> list[str]:
        return [save.preview for save in self.here.call(GetShared()).waiting]

    def send(self) -> None:
        """Have what waits sent, and wait until nothing does."""
        wait_until_sent(self.here)


def wait_until_sent(client: Client, limit_s: float = 60.0) -> None:
    """Have what waits sent, and wait until nothing does."""
    wait_until(lambda: not client.call(GetShared(send=True)).waiting, limit_s)


class Shared(Joined):
    """The place `there` on another machine and the daemon `here`, each with the owner's client."""

    def __init__(self, start: Callable[..., "Daemon"], sshd: Sshd) -> None:
        self.sshd = sshd
        self.place = start()
        self.there = self.place.client()
        self.there.call(AddToken(name="acme", namespace="acme"))
        self.root = {"server": "ssh://place", "memctl": f"MEMORYD_SOCKET={self.place.socket} {MEMCTL}"}
        self.daemon = start(shared={"acme": self.root})
        self.here = self.daemon.client()

    def close(self) -> None:
        for client in (self.here, self.there):
            client.close()

    def list_there(self) -> list[str]:
        return sorted(memory.content for memory in self.there.list(limit=1000))
