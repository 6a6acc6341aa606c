"""A database that holds the root `acme`, and daemons of the roles `ada` and `bob` that are joined to it."""

from collections.abc import Callable
from typing import Any

import psycopg
from joined import Joined

from memoryd.client import Client
from memoryd.client.transport.postgres import rights, schema
from postgres_server import PostgresServer
from workbench import Daemon


class Team(Joined):
    """The server, the daemon of `ada` with the owner's client, and more daemons as a test asks for them."""

    def __init__(self, start: Callable[..., Daemon], server: PostgresServer) -> None:
        self.server, self._start = server, start
        server.make_database("team", "ada", "bob")
        with psycopg.connect(server.url()) as connection:
            schema.create(connection, "acme", "words", 64, [])
            for role in ("ada", "bob"):
                rights.grant(connection, "acme", role, writes=True)
        self.clients: list[Client] = []
        self.daemon, self.here = self.join("ada")

    def join(self, role: str, model: str = "words", **settings: Any) -> tuple[Daemon, Client]:
        """Start a daemon of a role."""
        daemon = self._start(
            shared={"acme": {"server": self.server.url(role), **settings}}, model={"name": model, "fetch": False}
        )
        client = daemon.client()
        self.clients.append(client)
        return daemon, client

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def run(self, sql: str, *values: Any, role: str = "owner") -> list[tuple[Any, ...]]:
        return self.server.run(sql, *values, role=role)

    def list_there(self) -> list[str]:
        return [content for (content,) in self.run("SELECT content FROM memoryd_acme.memories ORDER BY 1")]

    def list_gaps(self) -> list[tuple[Any, ...]]:
        """Return the memories whose versions and history do not agree."""
        return self.run(
            "SELECT m.id FROM memoryd_acme.memories m WHERE m.version <>"
            " (SELECT count(*) FROM memoryd_acme.history h WHERE h.memory = m.id)"
        )
