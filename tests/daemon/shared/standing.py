"""The two kinds of places as they stand: real processes behind a relay, which are hung, killed and started again."""

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import psycopg
from joined import MEMCTL
from relay import Relay

from configs import NO_MODEL
from memoryd.client.protocol import AddToken, History, RevokeToken
from memoryd.client.transport.postgres import rights, schema
from memoryd.daemon.store.store import FILE_NAME
from postgres_server import PostgresServer
from sshd import Sshd
from workbench import Process

MEMBERS = [f"m{number}" for number in range(8)]


class Row(NamedTuple):
    """A memory as the place has it."""

    namespace: str
    type: str
    content: str
    path: str | None


class Standing:
    """A place with a right for each member. The relay stands between it and them."""

    relay: Relay
    denied: str
    """what its refusal says to a member without rights"""

    def settings(self, member: str) -> dict[str, Any]:
        """Return what leads a member there."""
        raise NotImplementedError

    def join(self, folder: Path, member: str, config: str = NO_MODEL, models: Path | None = None, **more: Any) -> Any:
        """Start a daemon of a member, a process of its own; `more` are settings of the root."""
        folder.mkdir(mode=0o700)
        settings = {**self.settings(member), **more}
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        environment = {"MEMORYD_MODEL_DIR": str(models)} if models else {}
        text = "\n".join([config, "[shared.acme]", *lines])
        return Process(folder, text, environment, {"daemon.core.core._KEPT_FROM": 1}).start()


class SshStanding(Standing):
    """Another memoryd, over ssh."""

    denied = "There is no token"

    def __init__(self, folder: Path, sshd: Sshd) -> None:
        self.relay = Relay(sshd.port)
        sshd.lead_through(self.relay.port)
        (folder / "there").mkdir(mode=0o700)
        self._process = Process(folder / "there", NO_MODEL).start()
        with self._process.client() as owner:
            for member in MEMBERS:
                owner.call(AddToken(name=member, namespace="acme"))

    def close(self) -> None:
        self.hang(False)
        self._process.stop()
        self.relay.close()

    def settings(self, member: str) -> dict[str, Any]:
        names = ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG")
        environment = " ".join(f"{name}={self._process.environment[name]}" for name in names)
        # The test alone starts the daemon again.
        return {"server": "ssh://place", "memctl": f"{environment} {MEMCTL} --no-autostart", "token": member}

    def hang(self, hangs: bool) -> None:
        self._process.child.send_signal(signal.SIGSTOP if hangs else signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def start(self) -> None:
        self._process.start()

    def revoke(self, member: str) -> None:
        with self._process.client() as owner:
            owner.call(RevokeToken(name=member))

    def read_rows(self) -> list[Row]:
        """Return all memories; a conversation would be one of them or a turn."""
        sql = (
            "SELECT n.name, m.type, m.content, m.path FROM memories m JOIN namespaces n ON n.id = m.namespace"
            " UNION ALL SELECT '', 'turn', content, NULL FROM turns"
        )
        with closing(apsw.Connection(str(self._process.data / FILE_NAME))) as connection:
            found: Any = connection.execute(sql)
            return [Row(*row) for row in found]

    def read_texts(self, id: str) -> list[str]:
        """Return the texts that a memory had, one for each version; each change begins where the one before ended."""
        with self._process.client() as owner:
            changes = owner.call(History(id=id)).changes
        texts: list[Any] = [None]
        for change in changes:
            before, after = change.changed["content"]
            assert before == texts[-1]
            texts.append(after)
        return texts[1:]


class PostgresStanding(Standing):
    """A schema in PostgreSQL."""

    denied = "may not read"

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        del folder
        self._server = server
        server.make_database("team", *MEMBERS)
        with psycopg.connect(server.url()) as connection:
            schema.create(connection, "acme", "words", 64, [])
            for member in MEMBERS:
                rights.grant(connection, "acme", member, writes=True)
        self.relay = Relay(server.port)

    def close(self) -> None:
        if self._server.child:
            self.hang(False)
        self.relay.close()

    def settings(self, member: str) -> dict[str, Any]:
        return {"server": f"postgresql://{member}@127.0.0.1:{self.relay.port}/team?sslmode=disable"}

    def hang(self, hangs: bool) -> None:
        self._server.hang(hangs)

    def kill(self) -> None:
        self._server.kill()

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def revoke(self, member: str) -> None:
        with psycopg.connect(self._server.url()) as connection:
            rights.revoke(connection, "acme", member)

    def read_rows(self) -> list[Row]:
        """Return all memories."""
        sql = "SELECT namespace, type, content, path FROM memoryd_acme.memories"
        return [Row(*row) for row in self._server.run(sql)]

    def read_texts(self, id: str) -> list[str]:
        """Return the texts that a memory had, one for each version; their numbers have no gap, the last is its own."""
        sql = "SELECT version, said ->> 'content' FROM memoryd_acme.history WHERE memory = %s ORDER BY version"
        versions = self._server.run(sql, id)
        [(last,)] = self._server.run("SELECT version FROM memoryd_acme.memories WHERE id = %s", id)
        assert [version for version, _ in versions] == list(range(1, last + 1))
        return [text for _, text in versions]
