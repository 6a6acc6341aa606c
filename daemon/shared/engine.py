"""One root's exchange with its server: pull, push, and what to do when the server lost something.

A step pulls what is new, pushes what waits, and fetches what the server did not take, which is then merged here and
pushed again. Nothing waits for it: memories are acknowledged, searched and changed here whether the server answers or
not. A server that lost the end of its log (a failover, a restored copy) has another tag at the state that was last seen
here, or none; then all versions are compared, and what it lacks is pushed again.

Threads: one for each root, which alone uses the connection.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
from msgspec import Struct
from psycopg.sql import Composed

from memoryd.client.errors import Forbidden, MemorydError, Unavailable
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing
from memoryd.daemon.shared import applying, exchange, pushing, room, server
from memoryd.daemon.shared.applying import Remote
from memoryd.daemon.shared.backfill import Backfill
from memoryd.daemon.shared.exchange import Head
from memoryd.daemon.shared.pushing import Outgoing
from memoryd.daemon.shared.server import Server
from memoryd.daemon.shared.session import Applied, Session
from memoryd.daemon.store import shared
from memoryd.daemon.store.shared import Root
from memoryd.daemon.store.writer import Transaction, wait_patiently

PUSHED = 200  # rows of one push
LIMIT_S = 30.0  # of one exchange
NOTED_S = 60.0  # between two notes of how far this machine has read
ATTEMPTS = 5  # of a transaction that another one was in the way of
_FIRST_COPY = 2_000  # rows from which what is pulled is no news

log = logging.getLogger(__name__)

T = TypeVar("T")
Places = dict[str, int | str]
Connect = Callable[[Root], Server]
Report = Callable[[], Composed | None]


class Figures(Struct):
    """What an engine did since it started, and how it is."""

    state: str = "starting"  # ready, offline, refused, old
    error: str = ""
    pulled: int = 0
    pushed: int = 0
    conflicts: int = 0
    compared: int = 0  # how often the server had lost something
    ready_at: float | None = None
    head: int = 0
    machines: list[str] = []


class Engine:
    """The exchange of one root. `connect` opens its server, `report` returns what is run with a push to report it."""

    def __init__(self, core: Core, root: Root, machine: str, connect: Connect, report: Report = lambda: None) -> None:
        self.core, self.root, self.machine = core, root, machine
        self._report = report
        self._noted_at = 0.0
        self.figures = Figures()
        self._connect = connect
        self.server: Server | None = None
        self._may_push = True
        self._backfill = Backfill(core, root.name, machine)
        self.max_rows = 0  # memories of the root on this machine; 0: all
        self.has_more = False  # vectors are still to be made

    def exchange_all(self, pull: bool = True) -> bool:
        """Exchange everything that there is, or only push what waits; return whether the server answered."""
        try:
            if self.server is None or not self.server.is_open:
                self.close()
                self.server = self._connect(self.root)
                self._may_push = self._ask(exchange.read_terms)
            if pull:
                self._pull()
            if self._may_push:
                self._push()
            self._note_machine()
            can_fill = pull and self.server.has_vectors
            self.has_more = can_fill and self._backfill.work(self._ask, self.figures.head)
        except (psycopg.Error, MemorydError) as error:
            self._note(server.failure(error) if isinstance(error, psycopg.Error) else error)
            return False
        self.figures.state = "ready" if self._may_push else "old"
        self.figures.error = self._find_lack()
        self.figures.ready_at = self.core.clock()
        return True

    def _find_lack(self) -> str:
        """Return what does not work although the server answers."""
        if not self._may_push:
            return "The server asks for a newer memoryd; nothing is pushed."
        if self.root.partial and self.server is not None and not self.server.has_vectors:
            return (
                "The server has no vectors that this role may use, so searches find only what is here; its owner runs"
                " `memctl shared migrate`."
            )
        return ""

    def close(self) -> None:
        """End the connection."""
        if self.server is not None:
            self.server.close()
        self.server = None

    def _note(self, error: MemorydError) -> None:
        """Keep why nothing is exchanged; say so in the log when it is news."""
        self.close()
        state = "refused" if isinstance(error, Forbidden) else "offline"
        if (state, error.message) != (self.figures.state, self.figures.error):
            log.warning("%s is not exchanged: %s", self.root.name, error.message)
        self.figures.state, self.figures.error = state, error.message

    def _ask(self, question: Callable[[Server], T]) -> T:
        """Ask the server something, within the limit; again where another transaction was in the way."""
        for attempt in range(ATTEMPTS):
            if self.server is None:
                raise Unavailable("The server is not connected.")
            try:
                with self.server.time_limit(LIMIT_S):
                    return question(self.server)
            except psycopg.Error as error:
                if not server.is_passing(error) or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(random.uniform(0.0, 0.02 * 2**attempt))
        raise AssertionError("unreachable")

    def _write(self, job: Callable[[Transaction], T], alone: bool = False) -> T:
        return wait_patiently(lambda: self.core.store.write(job, alone=alone), self.core.check_going_on)

    def _note_machine(self) -> None:
        """Note on the server now and then how far this machine has read; learn of the others and of its terms."""
        if time.monotonic() < self._noted_at + NOTED_S:
            return
        self._noted_at = time.monotonic()
        self._may_push = self._ask(exchange.read_terms)
        self.figures.machines = self._ask(lambda server: exchange.note_machine(server, self.root, self.machine))

    # Pull ------------------------------------------------------------------------------------------------------------

    def _pull(self) -> None:
        """Read the feed to its end."""
        root, compared = self.root, False
        self._choose_start()
        while True:
            found = self._ask(lambda server: exchange.pull(server, root))
            if is_lost(root, found.head):
                if compared:
                    raise Unavailable("The server's log is not that of its memories; it is compared again later.")
                self._compare(found.head)
                compared = True
                continue
            self.figures.head = found.head.seq
            is_end = len(found.rows) < exchange.PULLED
            cursor = found.head.seq if is_end else found.rows[-1].seq
            first_copy = found.head.seq - root.cursor > _FIRST_COPY
            if cursor != root.cursor or found.head.seq != root.mark:
                self._apply(found.rows, first_copy, cursor=cursor, mark=found.head.seq, tag=found.head.tag)
            if is_end:
                return

    def _apply(self, rows: Sequence[Remote], first_copy: bool = False, **places: int | str) -> None:
        """Apply versions of the server together with how far it was read."""
        made = self._backfill.take(self._ask, rows)

        def write(transaction: Transaction) -> Applied:
            session = Session(self.core, transaction, self.root, first_copy)
            session.vectors = made
            applying.apply(session, rows)
            if places:
                shared.change_root(transaction.connection, self.root.id, **places)
            return session.done

        done = self._write(write, alone=first_copy)
        if done.purged:
            for _ in erasing.clean(self.core):
                pass
        self._move(**places)
        if rows and room.fit(self.core, self.root, self.max_rows):
            self._move(partial=1)
        self.figures.pulled += len(rows)
        self.figures.conflicts += len(done.conflicts)
        for id in done.conflicts:
            log.warning("memory %s was changed on two machines; see `memctl shared conflicts`", id[:8])

    def _choose_start(self) -> None:
        """Begin the first copy so that no more comes than is to be here; copy all where more is to be here now."""
        root, max_rows = self.root, self.max_rows
        places = self._ask(lambda server: room.choose_start(server, root, max_rows))
        if places:
            self._write(lambda transaction: shared.change_root(transaction.connection, root.id, **places))
            self._move(**places)
        if places.get("partial"):
            pinned = self._ask(lambda server: room.list_pinned(server, root, max_rows))
            for part in split_evenly(pinned, exchange.PULLED):
                self._fetch(part)

    def _move(self, **places: int | str) -> None:
        for name, value in places.items():
            setattr(self.root, name, value)

    def _compare(self, head: Head) -> None:
        """Compare all versions with a server that does not remember what was seen last."""
        root, is_old = self.root, is_pruned(self.root, head)
        head, there = self._ask(lambda server: exchange.read_inventory(server, root))
        with self.core.store.reading() as connection:
            here = shared.read_all_versions(connection, root.id)
        lost = [id for id, version in here.items() if version and id not in there]
        for part in split_evenly(lost, exchange.PULLED):
            self._requeue(part, is_old)
        others = [id for id, version in there.items() if here.get(id) != version]
        if root.partial:  # of what is not here the newest is enough
            new = [id for id in others if id not in here]
            others = [id for id in others if id in here] + new[-self.max_rows :]
        for part in split_evenly(others, exchange.PULLED):
            self._fetch(part)
        places: Places = {"cursor": head.seq, "mark": head.seq, "tag": head.tag}
        self._write(lambda transaction: shared.change_root(transaction.connection, root.id, **places))
        self._move(**places)
        self.figures.compared += 1
        log.warning(
            "%s was compared with its server, which %s: %d memories that it lacks, %d others",
            root.name,
            "forgot what was before" if is_old else "had lost its latest changes",
            len(lost),
            len(others),
        )

    def _requeue(self, ids: Sequence[str], is_old: bool) -> None:
        """Push again what the server lost; what it forgot because it was deleted long ago is deleted here."""
        settle = pushing.follow_deletion if is_old else pushing.requeue
        self._write(lambda transaction: settle(Session(self.core, transaction, self.root), ids))

    def _fetch(self, ids: Sequence[str]) -> None:
        """Read memories by their ids and apply them; first those that they were merged into, which may not be here."""
        rows = self._ask(lambda server: exchange.fetch(server, self.root.name, ids))
        merged = [remote.merged_into for remote in rows if remote.merged_into]
        if self.root.partial and merged:
            rows = [*self._ask(lambda server: exchange.fetch(server, self.root.name, merged)), *rows]
        self._apply(rows)

    # Push ------------------------------------------------------------------------------------------------------------

    def _push(self) -> None:
        """Push the outbox to its end; what the server did not take is merged here and pushed again."""
        after = 0
        while True:
            with self.core.store.reading() as connection:
                queued = shared.read_outbox(connection, self.root.id, after, PUSHED)
            if not queued:
                return
            going = self._write(lambda t, queued=queued: pushing.prepare(Session(self.core, t, self.root), queued))  # type: ignore[misc]
            missed = self._offer(going)
            if missed:
                self._fetch_keys(going, missed)
                self._fetch(missed)
            after = queued[-1].change  # what is left of these comes with the next step

    def _fetch_keys(self, going: Sequence[Outgoing], missed: Sequence[str]) -> None:
        """Read the memories that have the keys of those which the server did not take: they may not be here."""
        for one in going if self.root.partial else ():
            place, key = one.record["ns"], one.record["key"]
            if key is not None and one.queued.memory in missed:
                self._apply(self._ask(lambda server: exchange.fetch_key(server, self.root.name, place, key)))  # noqa: B023

    def _offer(self, going: Sequence[Outgoing]) -> list[str]:
        """Push versions; return the ids of those that the server did not take. One that it refuses is set aside."""
        if not going:
            return []
        try:
            report = self._report()
            pushed = self._ask(lambda server: exchange.push(server, self.root, self.machine, going, report))
        except psycopg.Error as error:
            if not server.is_refusal(error):
                raise
            if len(going) == 1:
                self._set_aside(going[0], str(server.failure(error).message))
                return []
            half = len(going) // 2
            return self._offer(going[:half]) + self._offer(going[half:])
        places = self._place_after_push(pushed.head, len(going))

        def write(transaction: Transaction) -> None:
            pushing.acknowledge(Session(self.core, transaction, self.root), going, pushed.accepted)
            if places:
                shared.change_root(transaction.connection, self.root.id, **places)

        self._write(write)
        self._move(**places)
        self.figures.pushed += len(pushed.accepted)
        self.figures.head = pushed.head.seq
        return [one.queued.memory for one in going if pushed.accepted.get(one.queued.memory) != one.record["vtag"]]

    def _place_after_push(self, head: Head, count: int) -> Places:
        """Return how far the server is known after a push; nowhere new where it lost something, which a pull sees."""
        if is_lost(self.root, head):
            return {}
        places: Places = {"mark": head.seq, "tag": head.tag}
        nobody_else_pushed = head.seq - count == self.root.cursor
        return {**places, "cursor": head.seq} if nobody_else_pushed else places

    def _set_aside(self, going: Outgoing, reason: str) -> None:
        log.warning("memory %s is refused by the server of %s: %s", going.queued.memory[:8], self.root.name, reason)
        now = self.core.clock()
        self._write(lambda transaction: shared.note_stuck(transaction.connection, going.queued, reason, now))


def is_lost(root: Root, head: Head) -> bool:
    """Return whether the server does not remember the state that was seen last."""
    return root.mark > 0 and (head.seq < root.mark or head.tag_at_mark != root.tag)


def is_pruned(root: Root, head: Head) -> bool:
    """Return whether the server keeps no log that is as old as what was seen last."""
    return head.oldest is not None and head.oldest > root.mark
