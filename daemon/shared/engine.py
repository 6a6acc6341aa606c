"""One root's exchange with its server: offer again what it lost, pull what is new, push what waits.

Nothing waits for it: memories are acknowledged, searched and changed here whether the server answers or not. A server
that went back to a former state (a failover, a restored copy) is in another life than the one that this machine knows:
what came after the number that both have in common is offered again, before anything is pulled.

Threads: one for each root, which alone uses the connection.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg
from msgspec import Struct

from memoryd.client.errors import Forbidden, MemorydError, Unavailable
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing
from memoryd.daemon.shared import applying, exchange, offering, room, schema, server
from memoryd.daemon.shared.backfill import SharedBackfill
from memoryd.daemon.shared.messages import Head, Offered, RemoteMemory
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.session import Applied, ExchangeSession
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.store.writer import Transaction, wait_patiently

PUSHED = 200  # rows of one offer
LIMIT_S = 30.0  # of silence of the server
NOTED_S = 60.0  # between two notes of how far this machine has read
ATTEMPTS = 5  # of a transaction that another one was in the way of
_FIRST_COPY = 2_000  # rows from which what is pulled is no news

log = logging.getLogger(__name__)

T = TypeVar("T")
Timeline = Sequence[tuple[str, int]]


class EngineFigures(Struct):
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
    """The exchange of one root. `connect` opens its server."""

    def __init__(self, core: Core, root: Root, machine: str, connect: Callable[[Root], ServerConnection]) -> None:
        self.core, self.root, self.machine = core, root, machine
        self._noted_at = 0.0
        self.figures = EngineFigures()
        self._connect = connect
        self.server: ServerConnection | None = None
        self.channel = ""  # on which the server reports changes of the root
        self._may_push = True
        self._backfill = SharedBackfill(core, root.name, machine)
        self.max_rows = 0  # memories of the root on this machine; 0: all
        self.has_more = False  # vectors are still to be made

    def exchange_all(self, pull: bool = True) -> bool:
        """Exchange everything that there is, or only push what waits; return whether the server answered."""
        try:
            if self.server is None or not self.server.is_open:
                self.close()
                self.server = self._connect(self.root)
                self._ask(exchange.read_terms)
                pull = True
            if pull:
                self._follow(self._ask(lambda server: exchange.look(server, self.root.name, self.root.life)))
                self._push(lost=True)
                self._pull()
            self._push()
            self._note_machine()
            can_fill = pull and self._may_push and self.server.has_vectors
            self.has_more = can_fill and self._backfill.work(self._ask, self.figures.head)
        except (psycopg.Error, MemorydError) as error:
            self._note(server.failure(error) if isinstance(error, psycopg.Error) else error)
            return False
        self._note_state(*self._find_lack())
        if self.figures.state == "ready":
            self.figures.ready_at = self.core.clock()
        return True

    def _find_lack(self) -> tuple[str, str]:
        """Return the state after a whole exchange, and what does not work although the server answers."""
        with self.core.store.reading() as connection:
            fault = shared.find_fault(connection)
            waiting = shared.count_waiting(connection, self.root.id)
        if fault:
            return "refused", fault
        if not self._may_push:
            return "old", "The server asks for a newer memoryd; nothing is pushed."
        if waiting and not self.root.writable:
            return "refused", f"This role may only read {self.root.name}: {waiting} changes made before stay here."
        if self.root.partial and self.server is not None and not self.server.has_vectors:
            return "ready", (
                "The server has no vectors that this role may use, so searches find only what is here; its owner runs"
                " `memctl shared migrate`."
            )
        return "ready", ""

    def close(self) -> None:
        """End the connection."""
        if self.server is not None:
            self.server.close()
        self.server = None

    def _note(self, error: MemorydError) -> None:
        """Keep why nothing is exchanged."""
        self.close()
        self._note_state("refused" if isinstance(error, Forbidden) else "offline", error.message)

    def _note_state(self, state: str, error: str) -> None:
        """Keep how the exchange is; say in the log what is wrong, once."""
        if error and (state, error) != (self.figures.state, self.figures.error):
            log.warning("%s is not wholly exchanged: %s", self.root.name, error)
        self.figures.state, self.figures.error = state, error

    def _ask(self, question: Callable[[ServerConnection], T]) -> T:
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

    def _change_root(self, **fields: Any) -> None:
        """Keep how far the exchange is."""
        changed = {name: value for name, value in fields.items() if getattr(self.root, name) != value}
        if changed:
            self._write(lambda transaction: shared.change_root(transaction.connection, self.root.id, **changed))
            self._move(**changed)

    def _move(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self.root, name, value)

    def _note_machine(self) -> None:
        """Note on the server now and then how far this machine has read; learn what is new there."""
        if time.monotonic() < self._noted_at + NOTED_S:
            return
        self._noted_at = time.monotonic()
        self._ask(exchange.read_terms)
        note = exchange.note_machine
        self.figures.machines = self._ask(lambda server: note(server, self.root.name, self.machine, self.root.cursor))

    # The server's timeline -------------------------------------------------------------------------------------------

    def _follow(self, head: Head) -> None:
        """Take over where the server is; note which versions it lost, if it went back to a former state."""
        self.channel, self.figures.head = head.channel, head.seq
        self._may_push = head.min_client <= schema.CLIENT
        if head.can_write != bool(self.root.writable):
            self._change_root(writable=int(head.can_write))
        mine = self.root.timeline
        there = mine if head.lives is None else head.lives
        point = find_parting(mine, self.root.mark, there, head.seq)
        lives = msgspec.json.encode(there).decode()
        if point == self.root.mark:
            self._change_root(lives=lives, mark=head.seq)
            return
        # From its start, as what left a namespace here may be in it again; a part of a root from where they parted.
        cursor = min(self.root.cursor, point) if self.root.partial else 0
        places = {"lives": lives, "mark": head.seq, "cursor": cursor}

        def write(transaction: Transaction) -> int:
            lost = shared.mark_lost(transaction.connection, self.root.id, mine, point)
            shared.change_root(transaction.connection, self.root.id, **places)
            return lost

        lost = self._write(write)
        self._move(**places)
        self.figures.compared += 1
        log.warning("the server of %s went back to a former state: %d memories are offered again", self.root.name, lost)

    # Pull ------------------------------------------------------------------------------------------------------------

    def _pull(self) -> None:
        """Read the feed to its end."""
        self._choose_start()
        root = self.root
        while True:
            pulled = self._ask(lambda server: exchange.pull(server, root.name, root.life, root.cursor))
            if pulled.head.lives is not None or pulled.head.seq < root.mark:
                self._follow(pulled.head)
                self._push(lost=True)
                continue
            first_copy = pulled.head.seq - root.cursor > _FIRST_COPY
            cursor = pulled.rows[-1].seq if pulled.rows else pulled.head.seq
            self.figures.head = pulled.head.seq
            if pulled.rows or (cursor, pulled.head.seq) != (root.cursor, root.mark):
                self._apply(pulled.rows, first_copy, cursor=cursor, mark=pulled.head.seq)
            if cursor >= pulled.head.seq:
                return

    def _apply(self, rows: Sequence[RemoteMemory], first_copy: bool = False, **places: int) -> None:
        """Apply rows of the server together with how far it was read."""
        made = self._backfill.take(self._ask, rows)

        def write(transaction: Transaction) -> Applied:
            session = ExchangeSession(self.core, transaction, self.root, first_copy)
            session.vectors = made
            applying.apply(session, rows)
            if places:
                shared.change_root(transaction.connection, self.root.id, **places)
            return session.done

        self._finish(self._write(write, alone=first_copy))
        self._move(**places)
        if rows and room.fit(self.core, self.root, self.max_rows):
            self._move(partial=1)
        self.figures.pulled += len(rows)

    def _finish(self, done: Applied) -> None:
        """Do what follows once rows of the server are applied."""
        if done.purged:
            for _ in erasing.clean(self.core):
                pass
        self.figures.conflicts += len(done.conflicts)
        for id in done.conflicts:
            log.warning("memory %s was changed on two machines; see `memctl shared conflicts`", id[:8])

    def _choose_start(self) -> None:
        """Begin the first copy so that no more comes than is to be here; copy all where more is to be here now."""
        root, max_rows = self.root, self.max_rows
        places = self._ask(lambda server: room.choose_start(server, root, max_rows))
        self._change_root(**places)
        if places.get("partial"):
            pinned = self._ask(lambda server: room.list_pinned(server, root, max_rows))
            for part in split_evenly(pinned, PUSHED):
                self._apply(self._ask(lambda server: exchange.fetch(server, root.name, part)))  # noqa: B023

    # Push ------------------------------------------------------------------------------------------------------------

    def _push(self, lost: bool = False) -> None:
        """Offer what waits, or only what the server lost, until nothing does."""
        while self._may_push and self.root.writable:
            with self.core.store.reading() as connection:
                waiting = shared.read_lost(connection, self.root.id, PUSHED)
                if not (waiting or lost):
                    waiting = shared.read_dirty(connection, self.root.id, PUSHED)
            if not waiting:
                return
            going = self._write(
                lambda t, waiting=waiting: offering.prepare(  # type: ignore[misc]
                    ExchangeSession(self.core, t, self.root), waiting
                )
            )
            if going:
                self._offer(going)

    def _offer(self, going: Sequence[offering.Outgoing]) -> None:
        """Offer some changes and take over the answers."""
        root, offers = self.root, [one.offer for one in going]
        offered = self._ask(
            lambda server: exchange.offer(server, root.name, self.machine, root.life, root.mark, offers)
        )
        if offered.parted or offered.life != root.life:  # numbers of another life: it is offered again
            return self._follow(self._ask(lambda server: exchange.look(server, root.name, root.life)))
        places = {"mark": offered.seq, "cursor": _read_on(root.cursor, going, offered)}

        def write(transaction: Transaction) -> Applied:
            session = ExchangeSession(self.core, transaction, self.root)
            offering.answer(session, going, offered.answers)
            shared.change_root(transaction.connection, self.root.id, **places)
            return session.done

        self._finish(self._write(write))
        self._move(**places)
        self.figures.head = offered.seq
        self.figures.pushed += sum(one.said == "taken" for one in offered.answers)
        return None


def _read_on(cursor: int, going: Sequence[offering.Outgoing], offered: Offered) -> int:
    """Return how far the feed is known after an offer: to its end if nobody else pushed since it was read."""
    tags = {one.offer.tag for one in going}
    known = {one.seq for one in offered.answers} | {one.row.seq for one in offered.answers if one.row}
    known |= {one.sibling.seq for one in offered.answers if one.sibling and one.sibling.tag in tags}
    return offered.seq if known.issuperset(range(cursor + 1, offered.seq + 1)) else cursor


def find_parting(mine: Timeline, mark: int, there: Timeline, head: int) -> int:
    """Return up to which number this machine's timeline and the server's are the same one.

    A timeline is a list of lives with their first numbers; `mark` and `head` are where the last ones end.
    """
    if not mark:
        return 0
    ends_there = {life: end for (life, _), end in zip(there, _list_ends(there, head), strict=True)}
    for (life, _), end in reversed(list(zip(mine, _list_ends(mine, mark), strict=True))):
        if life in ends_there:
            return min(end, ends_there[life])
    return 0


def _list_ends(timeline: Timeline, end: int) -> list[int]:
    """Return the last number of each life of a timeline."""
    return [start - 1 for _, start in timeline[1:]] + ([end] if timeline else [])
