"""A place that holds the root `acme`, and a daemon that is joined to it."""

import sys
from collections.abc import Callable
from typing import Any

from memoryd.client.protocol import Add, Added, AddToken, GetShared, NewMemory
from sshd import Sshd
from waiting import wait_until
from workbench import Daemon

MEMCTL = f"{sys.executable} -m memoryd.client.programs.memctl"


class Shared:
    """The place `there` and the daemon `here`, each with the owner's client."""

    def __init__(self, start: Callable[..., "Daemon"], sshd: Sshd, **settings: Any) -> None:
        self.sshd, self._start = sshd, start
        self.place = start()
        self.there = self.place.client()
        self.there.call(AddToken(name="acme", namespace="acme"))
        root = {"server": "ssh://place", "memctl": f"MEMORYD_SOCKET={self.place.socket} {MEMCTL}", **settings}
        self.root = root
        self.daemon = start(shared={"acme": root})
        self.here = self.daemon.client()

    def close(self) -> None:
        for client in (self.here, self.there):
            client.close()

    def decide(self, content: str, namespace: str = "acme/api", **fields: Any) -> Added:
        """Save a decision here."""
        memory = NewMemory(content=content, type="decision", **fields)
        return self.here.call(Add(memory=memory, namespace=namespace))

    def list_there(self) -> list[str]:
        return sorted(memory.content for memory in self.there.list(limit=1000))

    def list_waiting(self) -> list[str]:
        return [save.preview for save in self.here.call(GetShared()).waiting]

    def send(self) -> None:
        """Have what waits sent, and wait until nothing does."""

        def is_sent() -> bool:
            self.here.call(GetShared(send=True))
            return not self.list_waiting()

        wait_until(is_sent)
