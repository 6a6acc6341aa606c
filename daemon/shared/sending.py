"""Memories that wait for their place: stored here like others, sent when the place answers, then deleted here.

The id of a memory is sent as its idempotency key, so a memory that is sent twice is stored once, even if it was changed
or deleted there. A change made here after the first attempt to send is sent as an update. A memory that the place
refuses stays, with the reason, until somebody sends it again or deletes it. `taken` says what is kept of what was sent.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.protocol import Add, Added, Share, Undo, Update
from memoryd.client.transport.postgres.connection import SCHEME
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_editable
from memoryd.daemon.erasing import erasing
from memoryd.daemon.memories import adding, changing
from memoryd.daemon.registry import handles
from memoryd.daemon.search.remotes import Remotes
from memoryd.daemon.shared import taken
from memoryd.daemon.shared.postgres.root import PostgresRoot
from memoryd.daemon.shared.root import AWAY, Root
from memoryd.daemon.shared.shelf import EVERY_S
from memoryd.daemon.shared.tables import sends
from memoryd.daemon.shared.tables.sends import Send
from memoryd.daemon.store import contexts, history, rows, upkeep
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.namespaces import list_enclosing
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import WAITING
from memoryd.daemon.store.writer import Transaction

_PART = 100
_LOOK_AGAIN_S = 60.0
_SAID = ("content", "type", "summary", "metadata", "importance", "pinned", "expires_at")

log = logging.getLogger(__name__)


class Shared:
    """The roots of this daemon, and the thread that sends waiting memories."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.wake, self.stopping = threading.Event(), threading.Event()
        self.roots: list[Root] = []
        for name, settings in sorted(core.config.shared.items()):
            if settings.server:
                kind = PostgresRoot if settings.server.startswith(SCHEME) else Root
                self.roots.append(kind(core, name, settings, self.keep, self.share))
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Register the roots with the kernel, and start the threads."""
        self._remove_old()
        remotes: Remotes = self._core.state(Remotes)
        remotes.all += self.roots
        for root in self.roots:
            root.wake = self.wake.set
            root.line.on_ready = partial(self._note_ready, root)
            start = self._core.supervisor.start
            self._threads.append(start(f"line to {root.name}", root.line.work, root.line.stopping))
        if self.roots:
            self._threads.append(self._core.supervisor.start("sending", self.send, self.stopping, self.wake, nice=True))

    def _note_ready(self, root: Root) -> None:
        root.shelf.expect()
        root.compared_at = -EVERY_S
        self.wake.set()

    def stop(self) -> None:
        """Close the lines."""
        self.stopping.set()
        self.wake.set()
        for root in self.roots:
            root.line.close()
        for thread in self._threads:
            thread.join(5.0)

    def keep(self, root: Root, call: Add, caller: Caller, key: str) -> "Future[Added]":
        """Store a memory until it can be sent; until then it is used like any other."""
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

    def share(self, root: Root, call: Share, caller: Caller) -> protocol.Shared:
        """Move memories to a place: mark them as waiting, and send them at once; undo that if the place refuses one."""
        if root.excludes(call.to):
            raise Invalid(f"What is saved in {call.to} stays here: `exclude` of [shared.{root.name}] names it.")
        operation, ids = self._write(partial(self._mark_waiting, call, caller))
        shared = protocol.Shared(memories=[], operation=operation, shared=root.name)
        for id in ids:
            with self._core.store.reading() as connection:
                send = sends.find(connection, id)
            moved = protocol.SharedMemory(id=id, origin=id, outcome="moved")
            try:
                if send and (added := self._send(root, send)):
                    moved.id, moved.outcome = added.id, "merged" if added.outcome == "merged" else "moved"
            except AWAY:
                shared.waiting = True
            except MemorydError:
                changing.undo_here(self._core, Undo(operation=operation), USER).result()
                raise
            shared.memories.append(moved)
        self.wake.set()
        return shared

    def _mark_waiting(self, call: Share, caller: Caller, transaction: Transaction) -> tuple[str, list[str]]:
        """Mark memories as waiting for their place, and move them to the namespace that they are shared to."""
        core, connection = self._core, transaction.connection
        condition = changing.visible_condition(core, call)
        going = {row.id: row for row in (rows.resolve(connection, prefix, condition) for prefix in call.ids)}
        operation = history.begin(connection, "share", caller.log_place(call.namespace), core.clock())
        number = core.store.namespaces.ensure(transaction, call.to)
        for row in going.values():
            namespace = core.store.namespaces.name(row.namespace)
            if caller.bound and call.to not in (namespace, *list_enclosing(namespace)):
                raise Invalid(f"{call.to} does not enclose {namespace}; memories are shared outward.")
            history.check_change(connection, caller, row.id, namespace)
            check_editable(row.id, row.tier, row.path)
            if why := _find_obstacle(row):
                raise Invalid(f"Memory {row.id[:8]} {why}, so it stays on this machine.", {"id": row.id})
            history.record(connection, operation, row.id, namespace, row)
            rows.change(connection, row.row, {"namespace": number, "tier": WAITING, "neighbours": ""})
        numbers = [row.row for row in going.values()]
        contexts.remove(connection, numbers)
        transaction.after_commit(lambda: core.embedding.refresh(numbers))
        return operation, list(going)

    # The thread ------------------------------------------------------------------------------------------------------

    def send(self) -> float | None:
        """Send waiting memories and fetch the shelves; return the seconds until the next run, None if none is due."""
        for root in self.roots:
            if root.line.state == "ready" and time.monotonic() - root.compared_at >= EVERY_S:
                self._offer_again(root)
        pauses = [self._remove_old(), pause := self._send_waiting()]
        due = [root.shelf.fetch() for root in self.roots if root.line.state == "ready" or root.shelf.is_expected()]
        if pause != 0.0:
            self._clean()
        return min([*due, *(one for one in pauses if one is not None)], default=None)

    def _remove_old(self) -> float | None:
        return taken.remove_others(self._core, [root.name for root in self.roots])

    def _offer_again(self, root: Root) -> None:
        root.compared_at = time.monotonic()
        try:
            taken.offer_again(self._core, root.name, root.ask_and_wait)
        except AWAY as error:  # the next line asks again
            log.info("%s was not asked for all that it has taken: %s", root.name, error.message)
        except MemorydError as error:
            log.warning("%s does not take again what it may have lost: %s", root.name, error.message)

    def _send_waiting(self) -> float | None:
        with self._core.store.reading() as connection:
            waiting = sends.list_waiting(connection, refused=False, limit=_PART)
        pauses = []
        for root in self.roots:
            places = [self._core.store.namespaces.name(one.row.namespace) for one in waiting]
            pairs = zip(waiting, places, strict=True)
            own = [one for one, place in pairs if root.holds(place) and not root.excludes(place)]
            if own and not self._send_all(root, own):
                pauses.append(max(1.0, root.line.retry_s()))
            elif own:
                pauses.append(0.0)  # there may be more
        return min(pauses) if pauses else _LOOK_AGAIN_S if waiting else None

    def _clean(self) -> None:
        """Remove the words of sent memories from full text and the log, where they would stay until the next upkeep."""
        if self._core.store.read_setting(sends.UNCLEAN):
            for _ in erasing.clean_words(self._core):
                if self.stopping.is_set():
                    return
            self._core.store.set_setting(sends.UNCLEAN, "").result()
            upkeep.clear_log(self._core.store)

    def _send_all(self, root: Root, waiting: list[Send]) -> bool:
        """Send some memories to a place; return whether it answered each time."""
        for one in waiting:
            if self.stopping.is_set():
                return False
            try:
                self._send(root, one)
            except AWAY as error:
                log.info("a save waits for %s: %s", root.name, error.message)
                return False
            except MemorydError as error:
                why = f"{error.code}: {error.message}"[:500]
                self._note(partial(sends.note_refused, memory=one.row.id, why=why, now=self._core.clock()))
        return True

    def _send(self, root: Root, send: Send) -> Added:
        row, said = send.row, send.said
        if said is None:
            said = _digest(row)
            self._note(partial(sends.note_said, memory=row.id, said=said, now=self._core.clock()))
        namespace = self._core.store.namespaces.name(row.namespace)
        call = Add(namespace=namespace, memory=taken.build_whole(row), idempotency_key=row.id)
        added: Added = root.ask_and_wait(call)
        left: Row | None = row
        while left is not None:
            if (now := _digest(left)) != said:
                root.ask_and_wait(_build_update(namespace, added.id, left))
                said = now
            last = msgspec.structs.replace(call, memory=taken.build_whole(left))
            note = taken.build_note(self._core, root.name, last, added)
            left = self._write(partial(self._delete_sent, row.id, said, note))
        return added

    def _delete_sent(
        self, id: str, said: bytes, note: Callable[[Transaction], None], transaction: Transaction
    ) -> Row | None:
        """Delete a memory here, and `note` that it was taken, if it is unchanged since it was sent; else return it."""
        row = rows.read_ids(transaction.connection, [id]).get(id)
        if row is None or row.tier != WAITING:  # deleted here meanwhile
            return None
        if _digest(row) != said:
            return row
        sends.take_out(transaction.connection, row)
        note(transaction)
        transaction.after_commit(lambda: self._core.embedding.remove_rows([row.row]))
        transaction.after_commit(self._core.sources.traces.clear)
        return None

    def _note(self, job: Callable[[Connection], None]) -> None:
        self._write(lambda transaction: job(transaction.connection))

    def _write(self, job: Any) -> Any:
        return self._core.store.write(job, over_limit=True).result()


def _find_obstacle(row: Row) -> str:
    """Return why a memory cannot be sent to another machine, empty if it can."""
    if row.turns:
        return "is of a conversation"
    if row.key is not None:
        return "has a key"
    return "is superseded" if row.superseded_by else ""


def _digest(row: Row) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode([getattr(row, name) for name in _SAID])).digest()


def _build_update(namespace: str, id: str, row: Row) -> Update:
    said = {name: getattr(row, name) for name in _SAID}
    said |= {"metadata": msgspec.json.decode(row.metadata), "pinned": bool(row.pinned)}
    return Update(namespace=namespace, id=id, replace_metadata=True, **said)


@handles(protocol.GetShared)
def get_shared(core: Core, call: protocol.GetShared) -> protocol.SharedStatus:
    """Return the state of the roots and the waiting memories; with `send` try again to send these."""
    shared = core.state(Shared, core)
    if call.send:
        core.store.write(lambda transaction: sends.send_again(transaction.connection), over_limit=True).result()
        for root in shared.roots:
            root.line.hurry()
        shared.wake.set()
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
            problem=root.line.reason.message if root.line.reason else root.refusal,
            token=root.identity.name if root.identity else "",
            role=root.identity.role if root.identity else "",
            repositories=root.settings.repositories,
            auto=root.settings.auto,
            exclude=root.settings.exclude,
            waiting=sum(root.holds(save.namespace) for save in saves),
            unreadable=root.unreadable,
            place=root.describe_place(),
        )
        for root in shared.roots
    ]
    roots += [
        protocol.RootStatus(
            name=name, server="", state="here", repositories=settings.repositories, auto="all", exclude=[]
        )
        for name, settings in core.config.shared.items()
        if not settings.server
    ]
    return protocol.SharedStatus(roots=roots, waiting=saves[:100])
