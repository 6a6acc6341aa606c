"""Two daemons that differ only in what is private to others, and replies made comparable.

`World.build(secret=True)` holds the private memories of beta, `secret=False` everything else alike. A caller who can
tell from any reply which of the two it speaks to has learned something.
"""

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from memoryd.client import Client
from memoryd.client.protocol import AddToken, Authenticate, Call, Role
from memoryd.daemon.store import extraction
from waiting import wait_until
from wire import Wire, packed

TEAM, ALPHA, BETA, LEAD = "acme/api", "acme/api/alpha", "acme/api/beta", "acme/api/lead"
SECRET_WORDS = ("zyzzyva", "quokka", "xylitol", "beta", "wombat", "numbat")
CANARY = "axolotl7391"  # in private memories and in no call
SECRET_IDS = [f"abcd{number:028x}" for number in range(1, 8)]
OWN_IDS = [f"abce{number:028x}" for number in range(1, 8)]
SHARED_IDS = [f"abcf{number:028x}" for number in range(1, 8)]
TURN_ID = "abd0" + "0" * 28  # of a secret turn in L0
MIXED_ID, MIXED_SECRET = "beef" + "0" * 28, "beef" + "1" * 28  # the same prefix, one of them secret

SECRETS = (
    "The zyzzyva password of the quokka account is xylitol",
    "beta thinks that wombat releases on Friday are a numbat mistake",
    "We use Valkey 8 as the cache",  # nearly what alpha says
    "The deploy window is Tuesday at 9",  # disagrees with what alpha says
    "Everybody knows that wombat and numbat are animals",
)
OWN = (
    "We use Valkey as the cache",
    "The deploy window is Tuesday at 10",
    "The staging database is called wagtail",
    "A wombat is a marsupial",  # one of the secret words, in a memory of alpha's own
)
SHARED = ("Releases are tagged by the release manager", "The company is called Acme", "All dates are in UTC")


class World:
    """A daemon, its tokens, and the operations on what is private to beta."""

    def __init__(self, daemon: Any, secret: bool) -> None:
        self.daemon, self.secret = daemon, secret
        self.owner: Client = daemon.client()
        self.tokens: dict[str, str] = {}
        self.secret_operations: list[str] = []
        self.secret_traces: list[str] = []

    def token(self, name: str, namespace: str, role: Role = "agent") -> None:
        """Make a token."""
        made = self.owner.call(AddToken(name=name, namespace=namespace, role=role))
        self.tokens[name] = made.token

    def client(self, name: str, namespace: str = "") -> Client:
        """Return a client that presents a token."""
        client: Client = self.daemon.client(namespace, token=self.tokens[name])
        return client

    def settle(self) -> None:
        """Wait until the background has worked off what was observed and searched."""
        self.daemon.core.effects.flush()
        wait_until(lambda: not self._has_waiting())

    def _has_waiting(self) -> bool:
        """Return whether the extraction worker has work; asked after each call, so it reads the queue itself."""
        with self.daemon.core.store.reading() as connection:
            waiting = extraction.count_within(connection, "TRUE")
        return not waiting.keys() <= set(extraction.OF_CONVERSATIONS)

    def hide(self, operation: str) -> None:
        """Note an operation on private memories."""
        self.secret_operations.append(operation)


class Voice:
    """A raw connection that has presented a token: it returns every frame of the answer to a call, made comparable."""

    def __init__(self, world: World, name: str) -> None:
        self._wire = Wire(world.daemon.socket)
        self._number = 0
        self.said = self.ask(Authenticate(token=world.tokens[name]))

    def ask(self, call: Call[Any]) -> list[Any]:
        """Send a call and return the frames of its answer, made comparable."""
        self._number += 1
        payload = msgspec.msgpack.encode([1, self._number, msgspec.Raw(msgspec.msgpack.encode(call))])
        self._wire.send(packed(payload))
        return [comparable(frame[0:1] + frame[2:]) for frame in self._frames()]

    def _frames(self) -> Iterator[list[Any]]:
        while True:
            frame = self._wire.receive()
            assert frame is not None, "the daemon closed the connection"
            assert frame[1] == self._number
            yield frame
            if frame[0] != 2:
                return

    def close(self) -> None:
        self._wire.socket.close()


_TIMED = re.compile(r".*_ms$|.*_s$|^(pid|socket|data_dir|operation|operations|undone|undone_by|at|run)$")
_NAMED = re.compile(r"\b([Oo]peration) [0-9a-f]{8}\b|changed again by [0-9a-f, ]+")


class Ids:
    """Ids in a fixed order, so that two daemons which are asked the same give the same ones."""

    def __init__(self) -> None:
        self._made = itertools.count()

    def __call__(self, size: int) -> str:
        return hashlib.sha256(str(next(self._made)).encode()).hexdigest()[: 2 * size]


def comparable(value: Any, key: str = "", path: tuple[str, ...] = ()) -> Any:
    """Return a reply without what differs between any two daemons: times, process, ids of operations."""
    if isinstance(value, dict):
        if set(value) >= {"id", "kind", "undone_by"}:  # an entry of the operation log
            value = {**value, "id": "#"}
        return {name: comparable(item, str(name)) for name, item in value.items()}
    if isinstance(value, list):
        if key == "operations" and all(isinstance(item, str) for item in value):
            return "#" * len(value)
        return [comparable(item, key if key == "operations" else "") for item in value]
    if isinstance(value, str) and not _TIMED.match(key):
        return _NAMED.sub("#", value)
    return "~" if _TIMED.match(key) and not isinstance(value, bool) and value is not None else value


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield where two replies differ, and how."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (here, there) in enumerate(zip(one, other, strict=True)):
            yield from differences(here, there, f"{path}[{place}]")
    elif one != other:
        yield f"{path}: {one!r} != {other!r}"
