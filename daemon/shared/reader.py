"""Searches of what is on the server alone: with a connection and a thread of their own, so they wait for nothing else.

A server that does not answer is given up after `LIMIT_S` and tried again every `AGAIN_S`; meanwhile each question is
answered at once: offline. What a search returned of an answer, and the best of one that came too late, is kept here.

Threads: its own. `ask` and `keep` are called by any.
"""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec
import psycopg

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import applying, bodies, exchange, server, vectors
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.questions import PendingQuestion, ServerHit, ServerQuestion
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.session import ExchangeSession
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.shared.vectors import Nearest
from memoryd.daemon.store import rows
from memoryd.daemon.store.tiers import L2
from memoryd.daemon.store.writer import Transaction

LIMIT_S = 2.0  # of one question: what comes later than its deadline is of use to the next one
AGAIN_S = 5.0
_COUNTED_S = 60.0
_MOST_WAITING = 16  # questions
_REMEMBERED = 1_000  # memories of the latest answers
_KEPT = 10  # of an answer that came too late

log = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """A memory of an answer, how far the feed was at least when it was read, and in which life of the server."""

    remote: RemoteMemory
    head: int
    life: str


class RootReader:
    """The questions to one root's server."""

    def __init__(self, core: Core, root: Root, connect: Callable[[], ServerConnection]) -> None:
        self._core, self._root, self._connect = core, root, connect
        with core.store.reading() as connection:
            self._namespaces = shared.list_shared_namespaces(connection, root.id)
        self._server: ServerConnection | None = None
        self._offline: MemorydError | None = None
        self._waiting: deque[PendingQuestion] = deque()
        self._keeping: deque[tuple[str, list[_Seen]]] = deque()
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._sizes: dict[frozenset[int], tuple[float, bool]] = {}  # until when it holds, whether they are few
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._name = f"shared search {root.name}"
        self._thread = core.supervisor.start(self._name, self._work, self._stopping, self._wake)

    def list_namespaces(self) -> frozenset[int]:
        """Return the namespaces of which the server has memories that are not here."""
        return self._namespaces if self._root.partial else frozenset()

    def ask(self, question: ServerQuestion) -> PendingQuestion:
        """Begin to ask; the answer is an error where the server does not answer."""
        asked = PendingQuestion(question)
        if self._offline is not None or len(self._waiting) >= _MOST_WAITING:
            asked.finish(self._offline or Unavailable("Too many searches wait for the server."))
        else:
            self._waiting.append(asked)
            self._wake.set()
        return asked

    def keep(self, place: str, ids: Collection[str]) -> None:
        """Keep memories here that an answer brought and a search returned."""
        if found := [seen for id in ids if (seen := self._seen.get(id))]:
            self._keeping.append((place, found))
            self._wake.set()

    def close(self) -> None:
        """End the thread, whatever it waits for."""
        self._stopping.set()
        self._wake.set()
        if self._server is not None:
            self._server.give_up()
        self._thread.join()
        self._close_server()
        self._core.supervisor.forget(self._name)

    def _work(self) -> float | None:
        if self._server is None and self._root.partial:
            self._open_server()
        while self._waiting and not self._stopping.is_set():
            asked = self._waiting.popleft()
            if asked.is_late and (self._waiting or not asked.question.keep):
                asked.finish(Unavailable("It was given up."))  # the next one does not wait for it
            else:
                self._answer(asked)
        while self._keeping and not self._waiting and not self._stopping.is_set():
            self._keep(*self._keeping.popleft())
        return AGAIN_S if self._server is None else None

    def _open_server(self) -> None:
        try:
            self._server = self._connect()
            with self._server.time_limit(LIMIT_S):
                exchange.read_terms(self._server)
            self._offline = None
        except (psycopg.Error, MemorydError) as error:
            self._note(error)

    def _note(self, error: psycopg.Error | MemorydError) -> None:
        """Answer at once from now on, until the server is connected again."""
        self._close_server()
        self._offline = server.failure(error) if isinstance(error, psycopg.Error) else error
        while self._waiting:
            self._waiting.popleft().finish(self._offline)

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None

    def _answer(self, asked: PendingQuestion) -> None:
        life = self._root.life  # as it was known before
        try:
            head, found = self._find(asked.question)
        except (psycopg.Error, MemorydError) as error:
            self._note(error)
            asked.finish(self._offline or Unavailable("The server does not answer."))
            return
        places = asked.question.namespaces  # of others nothing is shown, whatever a server sends
        known = [one for near in found if (one := self._read(near)) and one.row.namespace in places]
        seen = {near.remote.id: _Seen(near.remote, head, life) for near in found}
        self._seen.update(seen)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if asked.finish(known) and asked.question.keep:
            self._keeping.append((asked.question.place, [seen[one.row.id] for one in known[:_KEPT]]))

    def _find(self, question: ServerQuestion) -> tuple[int, list[Nearest]]:
        if self._server is None:
            raise Unavailable("The server is not connected.")
        if not self._server.has_vectors:
            raise Unavailable("The server has no vectors; its owner runs `memctl shared migrate`.")
        names = [self._core.store.namespaces.name(number) for number in sorted(question.namespaces)]
        with self._server.time_limit(LIMIT_S):
            few = self._has_few(self._server, question, names)
            given = vectors.NearestQuery(
                question.fingerprint, question.vector, names, question.wanted, few, question.words
            )
            return vectors.find_nearest(self._server, self._root.name, given)

    def _has_few(self, opened: ServerConnection, question: ServerQuestion, names: list[str]) -> bool:
        """Return whether the namespaces have few vectors, as it was a minute ago at most."""
        known = self._sizes.get(question.namespaces)
        if known is None or known[0] < time.monotonic():
            few = vectors.has_few(opened, self._root.name, question.fingerprint, names)
            known = self._sizes[question.namespaces] = (time.monotonic() + _COUNTED_S, few)
        return known[1]

    def _read(self, near: Nearest) -> ServerHit | None:
        """Return what the server has as the memory that it is, None where it cannot be one."""
        number = self._core.store.namespaces.find_number(near.remote.ns)
        try:
            body = self._core.privacy.strip(bodies.decode(near.remote, self._root.name))
            row = bodies.make_row(near.remote.id, number or 0, body)
        except (MemorydError, msgspec.MsgspecError, RecursionError) as error:
            log.warning("memory %s from %s cannot be used: %s", near.remote.id[:8], self._root.name, error)
            return None
        row.tier = L2
        similarity = near.similarity if row.text_hash == near.text_hash else None
        return None if number is None else ServerHit(row, similarity, f"{near.remote.device} ({near.remote.author})")

    def _keep(self, place: str, found: list[_Seen]) -> None:
        """Write memories that are of use here, and have the next search from that place look at them first."""
        try:
            numbers = self._core.store.write(lambda transaction: self._write(transaction, found)).result()
        except MemorydError as error:
            log.warning("%d memories of %s could not be kept: %s", len(found), self._root.name, error)
            return
        self._core.hot.put(place, reversed(numbers))

    def _write(self, transaction: Transaction, found: list[_Seen]) -> list[int]:
        """Apply what is not here, unless the feed was read further since: then it may have changed."""
        connection = transaction.connection
        root = shared.find_root(connection, self._root.name)
        if root is None:
            return []
        session = ExchangeSession(self._core, transaction, root, first_copy=True, is_news=False)
        new = [
            seen.remote
            for seen in found
            if root.life == seen.life and root.cursor <= seen.head and seen.remote.seq <= root.mark
        ]
        applying.bring(session, new)
        ids = [shared.find_id_here(connection, root.id, seen.remote.id) for seen in found]
        here = rows.read_ids(connection, ids)
        return [here[id].row for id in ids if id in here]
