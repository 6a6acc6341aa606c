"""Listening to sessions that go on: what an event tells is kept at once, the session's file adds what it does not tell.

Each event of a host that keeps a file names it (`Listen`). A thread then reads what was said there after the cursor, a
row of `transcripts`, and writes it with the cursor's new place in one transaction:

- An entry that is known, by its id, gives nothing.
- One with the words that an event told, not met before, is that turn: nothing is added, the id of the entry is noted.
- Another is observed as a turn of its time.

What the agent said last may not be its answer: it is taken in once somebody speaks after it, or the session has ended.
The host may write an entry after the event, or end before it does: so the next event reads from the start of the last
stretch, and the start of another session in that namespace reads former ones to their ends. What the person took back
is deleted, with what was made of it, and so is what was said in a session that turns out to be a program's when it ends
(the operations `TAKEN_BACK` and `AUTOMATED`, which can be undone).

A file that was rewritten, or goes on from an entry before the cursor, is read from its beginning: ids tell what is
known. What it held when it was first named, or when something of its session was erased, is not taken in; so a fork
gives no copies of what its origin has. The cursor in a document or a database is a time.

After a thousand events without a reading what the file has by then is left out, too: it may be among what was told.
"""

import hashlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.client.credentials.private import WHOLE
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.programs.hooks.answering import find_speaker
from memoryd.client.programs.sessions.agents import AGENTS, DATABASE, DOCUMENT, LINES, PastAgent
from memoryd.client.programs.sessions.building import ANSWER, Session, Utterance, open_file
from memoryd.client.programs.sessions.prompts import QUEUED
from memoryd.client.projects.project import project_namespace
from memoryd.client.protocol import NewTurn, Observe, Observed, ObservedTurn
from memoryd.client.protocol.backfill import Listen
from memoryd.daemon.backfill import opening
from memoryd.daemon.backfill.tables import transcripts
from memoryd.daemon.backfill.tables.transcripts import Transcript, Unmatched
from memoryd.daemon.conversations import gate, observing
from memoryd.daemon.conversations.observing import Taken
from memoryd.daemon.core.checks import content_hash
from memoryd.daemon.core.core import Core
from memoryd.daemon.erasing.tables import erasing
from memoryd.daemon.language.rating import SMALL_TALK
from memoryd.daemon.memories.changing import delete_found
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.registry import handles
from memoryd.daemon.store import extraction, history, rows, turns
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.pauses import TurnPlace
from memoryd.daemon.store.turns import Skip
from memoryd.daemon.store.writer import Transaction

TAKEN_BACK, AUTOMATED = "taken back", "automated"  # kinds of operations, the first a reason as well
_MOST_FORMER = 20  # files of former sessions that a start looks at
_QUIET_S = 3600.0  # a session whose file did not change for so long has ended, whatever was heard of it
_AFTER_S = 0.05  # an event is answered first, and what comes at the same moment is read at once
_FLUSHED_AFTER_S = 0.5  # a host may write to its file after it said that the session is over
_AT_ONCE_S = 5.0  # within which an event that tells the same is the same: hooks may be installed twice
_AHEAD_S = 60.0  # how long before its event an entry may have been read
_WRITTEN_BEFORE_S = 10.0  # how long before the first event of a session its first entry may be written
_MOST_UNMATCHED = 1000  # of a session while its file is not read
_PART = 100  # utterances of one transaction
_TAIL_BYTES = 1024  # before the cursor, by which a rewritten file is told

log = logging.getLogger(__name__)


@handles(Listen)
def listen(core: Core, call: Listen, caller: Caller = USER) -> "Future[Observed]":
    """Take in what an event tells, and have the file of its session read; the future is done when that is on disk."""
    _check(call)
    is_in_file = call.moment == "stop" and opening.is_open(AGENTS[call.agent], call.file)
    told = [] if is_in_file else call.turns
    taken: list[Taken] = []
    if told:
        observed = Observe(namespace=call.namespace, session=call.session, folder=call.folder, turns=told)
        observing.check(call.namespace, call.session, told, caller)
        taken = observing.judge(core, observed, caller)
    if core.pauses.is_paused(TurnPlace(call.namespace, call.session, call.folder)):
        return observing.leave_out(taken)

    def write(transaction: Transaction) -> Observed:
        row = _find_or_make(core, transaction.connection, call)
        outcomes = Observed(turns=[], accepted=0, skipped=0)
        if taken and not row.automated:
            outcomes = _take_told(core, transaction, row, taken)
            if len(row.unmatched) > _MOST_UNMATCHED:
                row.unmatched, row.passed = row.unmatched[-_MOST_UNMATCHED:], max(row.passed, _measure(core, call))
        transcripts.put(transaction.connection, row)
        transaction.after_commit(lambda: _want(core, call))
        return outcomes

    return core.store.write(write)


def _check(call: Listen) -> None:
    if call.agent not in AGENTS:
        raise Invalid(f"{call.agent!r} is no agent whose sessions are read.")
    if not call.session or not call.file.startswith("/") or "\0" in call.file or min(call.size, call.at) < 0:
        raise Invalid("A session and the absolute path of its file are needed.")


def _find_or_make(core: Core, connection: Connection, call: Listen) -> Transcript:
    row = transcripts.find(connection, call.file, _name_part(call.agent, call.session))
    if row is None:
        row = Transcript(path=call.file, agent=call.agent, session=call.session, namespace="", folder="", at=0.0)
        row.passed = _measure(core, call, _WRITTEN_BEFORE_S)
    row.namespace, row.folder, row.at = call.namespace, call.folder, core.clock()
    row.ended = -1 if call.moment == "end" else 0
    return row


def _name_part(agent: str, session: str) -> str:
    """Return which part of a file is read: a session of a database, else all of it."""
    return session if AGENTS[agent].kind == DATABASE else ""


def _measure(core: Core, call: Listen, before_s: float = 0.0) -> int:
    """Return how far a file was at an event, or in milliseconds some time before it."""
    if AGENTS[call.agent].kind == LINES:
        return call.size
    return int(max(0.0, (call.at or core.clock()) - before_s) * 1000)


def _take_told(core: Core, transaction: Transaction, row: Transcript, taken: Sequence[Taken]) -> Observed:
    """Take in what an event tells, but for what the file told first, or another hook at the same moment."""
    fresh, outcomes = [], {}
    for number, one in enumerate(taken):
        text, now = content_hash(one.turn.content).hex(), core.clock()
        same = [other for other in row.unmatched if (other.role, other.text) == (one.turn.role, text)]
        read = next((other for other in same if other.entry and now - other.at <= _AHEAD_S), None)
        if read:
            row.unmatched.remove(read)
        told = read or next((other for other in same if not other.entry and now - other.at <= _AT_ONCE_S), None)
        if told:
            id = told.turn or None
            outcomes[number] = ObservedTurn(outcome="skipped", id=id, reason=observing.KNOWN, same_as=id)
        else:
            fresh.append((number, one, text))
    result = observing.write(core, transaction, row.namespace, row.session, [one for _, one, _ in fresh])
    for (number, one, text), outcome in zip(fresh, result.turns, strict=True):
        outcomes[number] = outcome
        if not observing.is_unheard([one]):
            id = _get_turn(outcome)
            row.unmatched.append(Unmatched("", one.turn.role, text, id, core.clock()))
    skipped = len(taken) - result.accepted
    return Observed(turns=[outcomes[number] for number in sorted(outcomes)], accepted=result.accepted, skipped=skipped)


def _get_turn(outcome: ObservedTurn) -> str:
    """Return the turn that has the words of another: itself, or the one that it repeats; empty where none has."""
    return (outcome.id if outcome.outcome == "accepted" else outcome.same_as) or ""


# Reading -------------------------------------------------------------------------------------------------------------


def _want(core: Core, call: Listen) -> None:
    reading = core.state(Reading, core)
    reading.want(call.file, _name_part(call.agent, call.session), call.moment)
    if call.moment == "start":
        reading.want_former(call.namespace, call.session)


class Reading:
    """Which files are to be read; one thread reads them while there are any."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._wanted: dict[tuple[str, str], str] = {}  # by path and part: the last moment, an end if there was one
        self._former: list[tuple[str, str]] = []  # namespaces of which former sessions are read, and those that begin
        self._is_at_work = False

    def want(self, path: str, part: str, moment: str) -> None:
        """Have a file, or the part of a session, read soon as it is at a moment."""
        with self._lock:
            is_over = self._wanted.get((path, part)) == "end"
            self._wanted[path, part] = "end" if is_over else moment
        self._begin()

    def want_former(self, namespace: str, session: str) -> None:
        """Have the files of former sessions of a namespace read to their ends; one begins there."""
        with self._lock:
            self._former.append((namespace, session))
        self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._is_at_work:
                return
            self._is_at_work = True
        try:
            self._core.background.run("listening", self._work)
        except MemorydError:  # the daemon stops; the next start reads it
            self._is_at_work = False

    def _work(self) -> None:
        stopping = self._core.background.stopping
        stopping.wait(_AFTER_S)
        while True:
            with self._lock:
                if stopping.is_set() or not (self._wanted or self._former):
                    self._is_at_work = False
                    return
                (path, part), moment = self._wanted.popitem() if self._wanted else (("", ""), "")
                place = None if path else self._former.pop()
            try:
                if place:
                    self._read_former(*place)
                    continue
                if moment == "end":
                    stopping.wait(_FLUSHED_AFTER_S)
                read(self._core, path, part, moment)
            except (OSError, MemorydError) as error:  # the next event reads it
                log.info("a session's file was not read: %s", error)
            except Exception:
                log.exception("a session's file was not read")

    def _read_former(self, namespace: str, session: str) -> None:
        with self._core.store.reading() as connection:
            found = transcripts.find_former(connection, namespace, session, _MOST_FORMER)
        for row in found:
            if _has_ended(row):
                self.want(row.path, _name_part(row.agent, row.session), "end")


def _has_ended(row: Transcript) -> bool:
    """Return whether a session is over and its file has grown since it was read to its end."""
    if AGENTS[row.agent].kind == DATABASE:  # others write there, too
        return row.ended < 0 or (row.ended == 0 and time.time() - row.at > _QUIET_S)
    with suppress(OSError):
        status = os.lstat(row.path)
        return status.st_size != row.ended and (row.ended != 0 or time.time() - status.st_mtime > _QUIET_S)
    return False


class Cursor(NamedTuple):
    """Where a file is read from, what it was then, and where it is read from the next time."""

    start: int
    inode: int
    size: int
    settled: int = 0  # where the next reading begins
    before: bytes = b""  # hash of what is before that


def read(core: Core, path: str, part: str, moment: str) -> None:
    """Take in what was said in the file of a session, or in its part of a database, since it was last read.

    `moment` is that of the event: after an `end` nothing more is said there, before a `stop` the agent has answered.
    """
    with core.store.reading() as connection:
        row = transcripts.find(connection, path, part)
    if row is None:
        return
    agent = AGENTS[row.agent]
    with opening.find(agent, path) as found:
        cursor = _find_cursor(found, row, moment == "end")
        if cursor.size == row.size and cursor.start and agent.kind == LINES and moment not in ("stop", "end"):
            return
        session = _read_session(agent, found, cursor.start, part)
        if cursor.start and session.is_torn:
            cursor = cursor._replace(start=0)
            session = _read_session(agent, found, 0, part)
        if session.there is not None and moment != "end":  # what is marked may come back until it is deleted
            session.utterances[:] = [said._replace(taken_back=False) for said in session.utterances]
        for other in session.goes_on_from if row.size < 0 else ():  # this file is new
            core.state(Reading, core).want(other, "", "end")
        settled = max(cursor.start, session.settled)
        cursor = cursor._replace(settled=settled, before=_hash_before(found, settled) if agent.kind == LINES else b"")
    with act_as(Actor("", row.session, "")):
        _Hearing(core, row, session, cursor, moment).take()


def _read_session(agent: PastAgent, path: Path, start: int, part: str) -> Session:
    for session in agent.read(path, start, part):
        return session
    raise Invalid(f"{path.name} holds no session.")


def _find_cursor(path: Path, row: Transcript, to_end: bool) -> Cursor:
    """Return where to read on: at the beginning of a file that is not the one which was read."""
    status, kind = opening.check(path), AGENTS[row.agent].kind
    start = row.offset if status.st_ino == row.inode and not to_end else 0
    if start and kind == LINES and (start > status.st_size or _hash_before(path, start) != row.before):
        start = 0
    return Cursor(0 if kind == DOCUMENT else start, status.st_ino, status.st_size)


def _hash_before(path: Path, offset: int) -> bytes:
    begin = max(0, offset - _TAIL_BYTES)
    with open_file(path) as file:
        return hashlib.sha256(os.pread(file.fileno(), offset - begin, begin)).digest()


class _Said(NamedTuple):
    """An utterance as a turn: where it goes, the SHA-256 of its words, why it is not taken in (empty: it is)."""

    utterance: Utterance
    turn: NewTurn
    namespace: str
    text: str
    left_out: str


class _Hearing:
    """What was read of a file, while it is taken in."""

    def __init__(self, core: Core, row: Transcript, session: Session, cursor: Cursor, moment: str) -> None:
        self._core, self._row, self._session, self._cursor = core, row, session, cursor
        self._to_end, self._is_answered = moment == "end", moment in ("stop", "end")
        self._unheard = row.unheard if cursor.start else ""
        self._unheard_at_cursor = self._unheard
        self._automated = session.automated if self._to_end else "automated session" if row.automated else ""
        self._there = {utterance.id for utterance in session.utterances}
        self._speaker = find_speaker()
        self._is_named = not row.folder.startswith("/") or project_namespace(row.folder) != row.namespace

    def take(self) -> None:
        """Write all of it part by part, the cursor with the last one."""
        utterances = self._session.utterances
        gone = self._find_gone()
        derived = self._find_derived(utterances, gone)
        with self._core.store.reading() as connection:
            known = transcripts.find_entries(connection, [said.id for said in utterances])
        for begin in range(0, max(1, len(utterances)), _PART):
            self._core.check_going_on()
            part = []
            for said in utterances[begin : begin + _PART]:
                if said.id in known and not (said.taken_back or self._automated):
                    self._follow(said, "")  # it was heard before
                elif (one := self._describe(said)) is not None:
                    part.append(one)
            is_last = begin + _PART >= len(utterances)
            write = partial(self._write, part=part, gone=gone if is_last else {}, derived=derived, is_last=is_last)
            self._core.store.write(write).result()

    def _describe(self, utterance: Utterance) -> _Said | None:
        """Return an utterance as a turn, None for one that cannot be one."""
        self._core.give_way()
        namespace, now = self._place(utterance.folder), self._core.clock()
        turn = NewTurn(
            role=utterance.role,
            content=utterance.content,
            created_at=min(utterance.at, now) if utterance.at > 0 else now,
            id=utterance.id,
            speaker=self._speaker if utterance.role == "user" else "",
            files=utterance.files,
        )
        try:
            observed = Observe(namespace=namespace, session=self._row.session, turns=[turn])
            turn = find_privacy(self._core).clean(observed)[0].turns[0]
            observing.check(namespace, self._row.session, [turn], USER)
        except Invalid as error:
            log.info("something said in a session is not kept: %s", error)
            return None
        own = self._find_reason(turn, TurnPlace(namespace, self._row.session, utterance.folder or self._row.folder))
        self._follow(utterance, own)
        left_out = own or self._unheard or self._automated
        if utterance.kind == ANSWER and not (self._is_settled(utterance) or self._is_answered):
            left_out = left_out or "it may not be the answer yet"
        return _Said(utterance, turn, namespace, content_hash(turn.content).hex(), left_out)

    def _follow(self, utterance: Utterance, unheard: str) -> None:
        """Follow whether what answers an utterance is heard: not if it is not, for a reason."""
        if utterance.role == "user":
            self._unheard = unheard
        if self._is_settled(utterance):
            self._unheard_at_cursor = self._unheard

    def _is_settled(self, utterance: Utterance) -> bool:
        return utterance.offset < self._cursor.settled

    def _place(self, folder: str) -> str:
        """Return the namespace of a folder: that of the session's where it is gone, or a place was named for all."""
        if self._is_named or folder == self._row.folder or not os.path.isabs(folder) or not os.path.isdir(folder):
            return self._row.namespace
        return project_namespace(folder)

    def _find_reason(self, turn: NewTurn, place: TurnPlace) -> str:
        """Return why a turn is not heard, and what answers it is not either; empty where it is."""
        if turn.content == WHOLE:
            return observing.PRIVATE
        pauses, at = self._core.pauses, turn.created_at or 0.0
        is_session_paused = any(one.kind == "session" and one.name == place.session for one in pauses.list_all())
        return observing.PAUSED if is_session_paused or pauses.silences(place, at) else ""

    def _find_gone(self) -> dict[str, str]:
        """Return the turns of entries that the host deleted: they were taken back. A host that lost all took none."""
        if not (there := self._session.there):
            return {}
        with self._core.store.reading() as connection:
            heard = transcripts.find_heard(connection, self._row.session)
        return {id: turn for id, turn in heard.items() if id not in there}

    def _find_derived(self, utterances: Sequence[Utterance], gone: dict[str, str]) -> list[str]:
        """Return what was made of the turns that were taken back: facts, and summaries of their session."""
        back = [said.id for said in utterances if said.taken_back or self._automated]
        if not back and not gone:
            return []
        with self._core.store.reading() as connection:
            ids = [turn for turn in transcripts.find_entries(connection, [*back, *gone]).values() if turn]
            return erasing.find_derived(connection, ids) if ids else []

    def _write(
        self,
        transaction: Transaction,
        part: Sequence[_Said],
        gone: dict[str, str],
        derived: list[str],
        is_last: bool,
    ) -> None:
        connection = transaction.connection
        row = transcripts.find(connection, self._row.path, self._row.session)  # an event may have told more meanwhile
        if row is None:
            return
        known = transcripts.find_entries(connection, [one.utterance.id for one in part])
        fresh, back = [], dict(gone)
        for one in part:
            said = one.utterance
            turn = known[said.id] if said.id in known else self._match(transaction, row, one)
            if turn is None and said.id not in known:
                if not (one.left_out or said.taken_back or said.offset < row.passed):
                    fresh.append(one)
            elif turn and (said.taken_back or self._automated):
                back[said.id] = turn
        self._observe(transaction, row, fresh)
        self._take_back(transaction, row, back, derived)
        if is_last:
            row.offset, row.before = self._cursor.settled, self._cursor.before
            row.inode, row.size = self._cursor.inode, self._cursor.size
            row.unheard = self._unheard_at_cursor
            row.automated = bool(self._automated)
            row.ended = self._cursor.size if self._to_end else row.ended
        transcripts.put(connection, row)

    def _match(self, transaction: Transaction, row: Transcript, one: _Said) -> str | None:
        """Return the turn that has the words of an entry which was not met before; None where there is none."""
        connection, id = transaction.connection, one.utterance.id
        if turns.find_id(connection, id):  # a backfill took it in
            turn = id
        else:
            same = [other for other in row.unmatched if (other.role, other.text) == (one.turn.role, one.text)]
            told = next((other for other in same if other.entry not in self._there), None)
            if told is None:
                return None
            row.unmatched.remove(told)
            turn = told.turn
            if turn and one.utterance.to_program and turns.rate(connection, turn, SMALL_TALK):
                extraction.remove(connection, "rate", [turn])
                self._core.active.follow(
                    transaction, {one.namespace for one in turns.read_keys(connection, [turn]).values()}
                )
        self._note_entry(connection, id, turn or None)
        return turn

    def _note_entry(self, connection: Connection, id: str, turn: str | None) -> None:
        is_kept_there = self._session.there is None
        transcripts.note_entry(connection, id, turn, "" if is_kept_there else self._row.session)

    def _observe(self, transaction: Transaction, row: Transcript, fresh: Sequence[_Said]) -> None:
        connection, now = transaction.connection, self._core.clock()
        row.unmatched = [other for other in row.unmatched if not other.entry or now - other.at <= _AHEAD_S]
        for namespace, group in groupby(fresh, key=lambda one: one.namespace):
            taken = list(group)
            outcomes = observing.write(
                self._core,
                transaction,
                namespace,
                row.session,
                [
                    Taken(one.turn, gate.check(one.turn.content), SMALL_TALK if one.utterance.to_program else None)
                    for one in taken
                ],
            ).turns
            for one, outcome in zip(taken, outcomes, strict=True):
                turn = _get_turn(outcome)
                self._note_entry(connection, one.utterance.id, turn or None)
                if now - one.utterance.at <= _AHEAD_S or one.utterance.kind == QUEUED:
                    # Its event may be yet to come; of what was queued an entry with another id.
                    row.unmatched.append(Unmatched(one.utterance.id, one.turn.role, one.text, turn, now))
        del row.unmatched[:-_MOST_UNMATCHED]

    def _take_back(self, transaction: Transaction, row: Transcript, back: dict[str, str], derived: list[str]) -> None:
        """Delete the turns of entries that were taken back, by their ids, and what was made of them."""
        connection = transaction.connection
        going = []
        for turn, times in Counter(back.values()).items():
            if transcripts.count_entries(connection, turn) == times:  # else it was said again
                going.append(turn)
        for id in back:  # a backfill may be asked to take in automated sessions
            self._note_entry(connection, id, None if self._automated else "")
        own = [turns.to_row(turn) for turn in turns.read_keys(connection, going).values()]
        own += [one for one in rows.read_ids(connection, going).values() if one.turns]
        own = [one for one in own if turns.read_session(one) == row.session]
        if not own:
            return
        reason, now = self._automated or TAKEN_BACK, self._core.clock()
        skips = []
        for one in own:
            role = msgspec.json.decode(one.metadata).get("role", "")
            skips.append(Skip(one.namespace, row.session, role, one.content, reason, one.created_at))
        turns.skip(connection, skips)
        operation = history.begin(connection, AUTOMATED if self._automated else TAKEN_BACK, row.namespace, now)
        made = list(rows.read_ids(connection, derived).values())
        delete_found(self._core, transaction, [*own, *made], operation)
