"""Saves that wait for their place: stored here as any memory, sent when the place answers, then deleted here.

Each is sent with its own id as the key by which the place knows it: sent twice, it is applied once, whatever became of
it there. What was changed here after it may have been taken is sent as a change. A save that the place refuses stays,
with the reason, until somebody sends it again or deletes it.
"""

import hashlib
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from functools import partial
from typing import Any

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Busy, MemorydError, TimedOut, Unavailable
from memoryd.client.protocol import Add, Added, NewMemory, Update
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding
from memoryd.daemon.search.remotes import CHANGE_S, Remotes
from memoryd.daemon.shared.root import Root
from memoryd.daemon.shared.tables import sends
from memoryd.daemon.shared.tables.sends import Send
from memoryd.daemon.store import rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.conversion import build_new
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import WAITING
from memoryd.daemon.store.writer import Transaction

_AWAY = (Unavailable, TimedOut, Busy)
_PART = 100
_LOOK_AGAIN_S = 60.0
_SAID = ("content", "type", "summary", "metadata", "importance", "pinned", "expires_at")

log = logging.getLogger(__name__)


class Shared:
    """The roots of this daemon, and the thread that sends what waits."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.wake, self.stopping = threading.Event(), threading.Event()
        self.roots = [Root(core, name, settings, self.keep) for name, settings in sorted(core.config.shared.items())]
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to ask the places, and to send what waits."""
        remotes: Remotes = self._core.state(Remotes)
        remotes.all += self.roots
        for root in self.roots:
            root.line.on_ready = self.wake.set
            start = self._core.supervisor.start
            self._threads.append(start(f"line to {root.name}", root.line.work, root.line.stopping))
        if self.roots:
            self._threads.append(self._core.supervisor.start("sending", self.send, self.stopping, self.wake, nice=True))

    def stop(self) -> None:
        """Close the lines."""
        self.stopping.set()
        self.wake.set()
        for root in self.roots:
            root.line.close()
        for thread in self._threads:
            thread.join(5.0)

    def keep(self, root: Root, call: Add, caller: Caller, key: str) -> "Future[Added]":
        """Store a save that waits: it is a memory as any other until it is sent."""
        now = self._core.clock()
        memory = msgspec.structs.replace(call.memory, id=key)
        if memory.created_at is None:
            memory = msgspec.structs.replace(memory, created_at=now)
        kept = msgspec.structs.replace(call, memory=memory, dedup=False, idempotency_key="")

        def note(transaction: Transaction, added: Added) -> None:
            row = rows.read_ids(transaction.connection, [key])[key]
            sends.note_said(transaction.connection, key, _digest(row), now)
            added.shared, added.waiting = root.name, True

        return adding.add_here(self._core, kept, caller, WAITING, note)

    # The thread ------------------------------------------------------------------------------------------------------

    def send(self) -> float | None:
        """Send what waits, root by root; return the seconds until the next look, None while nothing waits."""
        with self._core.store.reading() as connection:
            waiting = sends.list_waiting(connection, refused=False, limit=_PART)
        pauses = []
        for root in self.roots:
            names = self._core.store.namespaces
            own = [one for one in waiting if _may_go(root, names.name(one.row.namespace))]
            if own and not self._send_all(root, own):
                pauses.append(max(1.0, root.line.retry_s()))
            elif own:
                pauses.append(0.0)  # there may be more
        return min(pauses) if pauses else _LOOK_AGAIN_S if waiting else None

    def _send_all(self, root: Root, waiting: list[Send]) -> bool:
        """Send some saves to a place; return whether it answered each."""
        for one in waiting:
            if self.stopping.is_set():
                return False
            try:
                self._send(root, one)
            except _AWAY as error:
                log.info("a save waits for %s: %s", root.name, error.message)
                return False
            except MemorydError as error:
                why = f"{error.code}: {error.message}"[:500]
                self._write(partial(_note_refused, one.row.id, why, self._core.clock()))
        return True

    def _send(self, root: Root, send: Send) -> None:
        """Have the place take one save as it is now; then it is no longer here."""
        row: Row | None = send.row
        said = send.said
        if said is None:
            said = _digest(send.row)
            self._write(partial(_note_said, send.row.id, said, self._core.clock()))
        names = self._core.store.namespaces
        namespace = names.name(send.row.namespace)
        call = Add(namespace=namespace, memory=_build_memory(send.row), dedup=True, idempotency_key=send.row.id)
        added = self._ask(root, call)
        while row is not None:
            if (now := _digest(row)) != said:
                self._ask(root, _build_update(namespace, added.id, row))
                said = now
            row = self._write(partial(self._take_out, row.id, said))

    def _ask(self, root: Root, call: Any) -> Any:
        try:
            return root.ask(call, USER, CHANGE_S).result(CHANGE_S + 1)
        except Late:
            raise TimedOut(f"The place of {root.name} did not answer in time.") from None

    def _take_out(self, id: str, said: bytes, transaction: Transaction) -> Row | None:
        """Delete a memory here if it still says what the place has; return it if it says something else."""
        row = rows.read_ids(transaction.connection, [id]).get(id)
        if row is None or row.tier != WAITING:  # deleted here meanwhile
            return None
        if _digest(row) != said:
            return row
        sends.take_out(transaction.connection, row)
        transaction.after_commit(lambda: self._core.embedding.remove_rows([row.row]))
        transaction.after_commit(self._core.sources.traces.clear)
        return None

    def _write(self, job: Any) -> Any:
        return self._core.store.write(job, over_limit=True).result()


def _may_go(root: Root, namespace: str) -> bool:
    return root.holds(namespace) and not root.excludes(namespace)


def _note_said(id: str, said: bytes, now: float, transaction: Transaction) -> None:
    sends.note_said(transaction.connection, id, said, now)


def _note_refused(id: str, why: str, now: float, transaction: Transaction) -> None:
    sends.note_refused(transaction.connection, id, why, now)


def _digest(row: Row) -> bytes:
    """Return what tells whether a memory was changed since it was sent."""
    return hashlib.sha256(msgspec.msgpack.encode([getattr(row, name) for name in _SAID])).digest()


def _build_memory(row: Row) -> NewMemory:
    made = build_new(row, "agent" if row.origin == "file" else row.origin)
    return msgspec.structs.replace(made, path=row.path, start_line=row.start_line, end_line=row.end_line)


def _build_update(namespace: str, id: str, row: Row) -> Update:
    return Update(
        namespace=namespace,
        id=id,
        content=row.content,
        type=row.type,
        summary=row.summary,
        metadata=msgspec.json.decode(row.metadata),
        replace_metadata=True,
        importance=row.importance,
        expires_at=row.expires_at,
        pinned=bool(row.pinned),
    )


def describe(core: Core, shared: Shared) -> protocol.SharedStatus:
    """Return the state of the roots and what waits."""
    names = core.store.namespaces
    with core.store.reading() as connection:
        waiting = sends.list_waiting(connection, refused=True, limit=100_000)
    saves = [
        protocol.WaitingSave(
            id=row.id,
            namespace=names.name(row.namespace),
            preview=" ".join(row.content[:320].split())[:160],
            since=row.created_at,
            refused=why,
        )
        for row, _, why in waiting
    ]
    roots = [
        protocol.RootStatus(
            name=root.name,
            server=root.settings.server,
            state=root.line.state,
            problem=root.line.reason.message if root.line.reason else "",
            token=root.identity.name if root.identity else "",
            role=root.identity.role if root.identity else "",
            auto=root.settings.auto,
            exclude=root.settings.exclude,
            waiting=sum(root.holds(save.namespace) for save in saves),
            unreadable=root.unreadable,
        )
        for root in shared.roots
    ]
    return protocol.SharedStatus(roots=roots, waiting=saves[:100])
