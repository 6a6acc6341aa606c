"""Record running sessions: turns that events report are stored at once, and the session's file adds the others.

Each event names the session's file (`Listen`). A thread then reads the file from a cursor, a row of `transcripts`, and
writes the entries together with the new cursor:

- An entry whose id is known is skipped.
- An entry with the same text as a reported turn is that turn: only its id is recorded.
- Any other entry is observed as a turn, with its own time.

The agent's last message may not be its final answer, so it is stored once another message follows or the session ends.
The host may write an entry after the event, or exit before writing it: so the next event reads the last exchange again,
and the start of a session reads the files of former sessions in that namespace to their ends. Messages that the user
retracted are deleted with everything derived from them, and so is a session that turns out to be a program's (the
operations `TAKEN_BACK` and `AUTOMATED`, which can be undone).

A file that was rewritten, or that continues from an entry before the cursor, is read from its beginning. What it held
when it was first named, or when a turn of its session was erased, is never read, so a forked session adds no copies.
For documents and databases the cursor is a time.

After 1,000 events without a reading, the file's content up to then is skipped, since it may repeat reported turns.
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
from memoryd.daemon.conversations.observing import CheckedTurn
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import content_hash
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

TAKEN_BACK, AUTOMATED = "taken back", "automated"  # kinds of operations; the first is also a reason of skips
_MAX_FORMER = 20  # files of former sessions that are checked when a session starts
_QUIET_S = 3600.0  # a session whose file has not changed for this long has ended, even without an event
_AFTER_S = 0.05  # the event is answered first, and events of the same moment are handled together
_FLUSHED_AFTER_S = 0.5  # the host may write to the file after the event that ends the session
_SAME_EVENT_S = 5.0  # equal turns within this time are one event, which hooks that are installed twice report twice
_AHEAD_S = 60.0  # how long before its event an entry may have been read
_WRITTEN_BEFORE_S = 10.0  # how long before a session's first event its first entry may have been written
_MAX_UNMATCHED = 1000  # reported turns of a session whose entries have not been read
_PART = 100  # utterances per transaction
_TAIL_BYTES = 1024  # hashed before the cursor, to notice that a file was rewritten

log = logging.getLogger(__name__)


@handles(Listen)
def listen(core: Core, call: Listen, caller: Caller = USER) -> "Future[Observed]":
    """Record the turns that an event reports, and request a reading of the session's file.

    The future is done when the reported turns are on disk.
    """
    if call.agent not in AGENTS:
        raise Invalid(f"{call.agent!r} is not an agent whose sessions can be read.")
    if not call.session or not call.file.startswith("/") or "\0" in call.file or min(call.size, call.at) < 0:
        raise Invalid("Give a session and the absolute path of its file.")
    is_in_file = call.moment == "stop" and opening.is_open(AGENTS[call.agent], call.file)
    reported = [] if is_in_file else call.turns
    checked: list[CheckedTurn] = []
    if reported:
        observed = Observe(namespace=call.namespace, session=call.session, folder=call.folder, turns=reported)
        observing.check(call.namespace, call.session, reported, caller)
        checked = observing.judge(core, observed, caller)
    if core.pauses.is_paused(TurnPlace(call.namespace, call.session, call.folder)):
        return observing.ignore(checked)
    part = _name_part(call.agent, call.session)

    def write(transaction: Transaction) -> Observed:
        row = transcripts.find(transaction.connection, call.file, part)
        if row is None:
            row = Transcript(path=call.file, agent=call.agent, session=call.session, namespace="", folder="", at=0.0)
            row.passed = _position(core, call, _WRITTEN_BEFORE_S)
        row.namespace, row.folder, row.at = call.namespace, call.folder, core.clock()
        row.ended = -1 if call.moment == "end" else 0
        outcomes = Observed(turns=[], accepted=0, skipped=0)
        if checked and not row.automated:
            outcomes = _record_reported(core, transaction, row, checked)
            if len(row.unmatched) > _MAX_UNMATCHED:
                row.unmatched, row.passed = row.unmatched[-_MAX_UNMATCHED:], max(row.passed, _position(core, call))
        transcripts.put(transaction.connection, row)
        transaction.after_commit(request_reading)
        return outcomes

    def request_reading() -> None:
        queue = core.state(ReadQueue, core)
        queue.add(call.file, part, call.moment)
        if call.moment == "start":
            queue.add_former(call.namespace, call.session)

    return core.store.write(write)


def _name_part(agent: str, session: str) -> str:
    """Return the part of a file to read: the session in a database, else empty for the whole file."""
    return session if AGENTS[agent].kind == DATABASE else ""


def _position(core: Core, call: Listen, before_s: float = 0.0) -> int:
    """Return the cursor at an event: the file's size, or for other kinds the time minus `before_s` in ms."""
    if AGENTS[call.agent].kind == LINES:
        return call.size
    return int(max(0.0, (call.at or core.clock()) - before_s) * 1000)


def _record_reported(core: Core, transaction: Transaction, row: Transcript, checked: Sequence[CheckedTurn]) -> Observed:
    """Store the turns of an event, except those already read from the file or reported by another hook."""
    fresh, outcomes = [], {}
    for number, one in enumerate(checked):
        text, now = content_hash(one.turn.content).hex(), core.clock()
        same = [other for other in row.unmatched if (other.role, other.text) == (one.turn.role, text)]
        read = next((other for other in same if other.entry and now - other.at <= _AHEAD_S), None)
        if read:
            row.unmatched.remove(read)
        known = read or next((other for other in same if not other.entry and now - other.at <= _SAME_EVENT_S), None)
        if known:
            id = known.turn or None
            outcomes[number] = ObservedTurn(outcome="skipped", id=id, reason=observing.KNOWN, same_as=id)
        else:
            fresh.append((number, one, text))
    result = observing.write(core, transaction, row.namespace, row.session, [one for _, one, _ in fresh])
    for (number, one, text), outcome in zip(fresh, result.turns, strict=True):
        outcomes[number] = outcome
        if not observing.are_unrecorded([one]):
            row.unmatched.append(Unmatched("", one.turn.role, text, _find_turn(outcome), core.clock()))
    skipped = len(checked) - result.accepted
    return Observed(turns=[outcomes[number] for number in sorted(outcomes)], accepted=result.accepted, skipped=skipped)


def _find_turn(outcome: ObservedTurn) -> str:
    """Return the id of the stored turn: the accepted one, or the one that it repeats; empty if there is none."""
    return (outcome.id if outcome.outcome == "accepted" else outcome.same_as) or ""


# Reading -------------------------------------------------------------------------------------------------------------


class ReadQueue:
    """The files that are waiting to be read; one thread reads them and ends when there are no more."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._files: dict[tuple[str, str], str] = {}  # (path, part) -> moment of the last event; an "end" stays
        self._starts: list[tuple[str, str]] = []  # (namespace, session) that started: former sessions are to be read
        self._is_running = False

    def add(self, path: str, part: str, moment: str) -> None:
        """Have a file, or one session in it, read soon."""
        with self._lock:
            is_over = self._files.get((path, part)) == "end"
            self._files[path, part] = "end" if is_over else moment
        self._start()

    def add_former(self, namespace: str, session: str) -> None:
        """Have the files of a namespace's other sessions read to their ends, since `session` has started there."""
        with self._lock:
            self._starts.append((namespace, session))
        self._start()

    def _start(self) -> None:
        with self._lock:
            if self._is_running:
                return
            self._is_running = True
        try:
            self._core.background.run("listening", self._run)
        except MemorydError:  # the daemon is stopping; the next event after its start reads the file
            self._is_running = False

    def _run(self) -> None:
        stopping = self._core.background.stopping
        stopping.wait(_AFTER_S)
        while True:
            with self._lock:
                if stopping.is_set() or not (self._files or self._starts):
                    self._is_running = False
                    return
                (path, part), moment = self._files.popitem() if self._files else (("", ""), "")
                started = None if path else self._starts.pop()
            try:
                if started:
                    with self._core.store.reading() as connection:
                        former = transcripts.find_former(connection, *started, _MAX_FORMER)
                    for row in filter(_has_unread_end, former):
                        self.add(row.path, _name_part(row.agent, row.session), "end")
                    continue
                if moment == "end":
                    stopping.wait(_FLUSHED_AFTER_S)
                read(self._core, path, part, moment)
            except (OSError, MemorydError) as error:  # the next event tries again
                log.info("a session's file was not read: %s", error)
            except Exception:
                log.exception("a session's file was not read")


def _has_unread_end(row: Transcript) -> bool:
    """Return whether a session is over and its file has changed since it was read to the end."""
    if AGENTS[row.agent].kind == DATABASE:  # its size says nothing: other sessions are written to it
        return row.ended < 0 or (row.ended == 0 and time.time() - row.at > _QUIET_S)
    with suppress(OSError):
        status = os.lstat(row.path)
        return status.st_size != row.ended and (row.ended != 0 or time.time() - status.st_mtime > _QUIET_S)
    return False


class Cursor(NamedTuple):
    """Where a reading starts, the file's inode and size then, and where the next reading starts."""

    start: int
    inode: int
    size: int
    settled: int = 0  # where the next reading starts
    before: bytes = b""  # hash of the bytes before that


def read(core: Core, path: str, part: str, moment: str) -> None:
    """Record what was added to the file of a session, or to its part of a database, since the last reading.

    `moment` is that of the event: nothing follows an `end`, and at a `stop` the agent has answered.
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
        if session.there is not None and moment != "end":  # the host may restore a marked entry until it deletes it
            session.utterances[:] = [said._replace(taken_back=False) for said in session.utterances]
        for origin in session.continues if row.size < 0 else ():  # at the first reading
            core.state(ReadQueue, core).add(origin, "", "end")
        settled = max(cursor.start, session.settled)
        cursor = cursor._replace(settled=settled, before=_hash_before(found, settled) if agent.kind == LINES else b"")
    with act_as(Actor("", row.session, "")):
        _Recording(core, row, session, cursor, moment).write()


def _read_session(agent: PastAgent, path: Path, start: int, part: str) -> Session:
    for session in agent.read(path, start, part):
        return session
    raise Invalid(f"{path.name} holds no session.")


def _find_cursor(path: Path, row: Transcript, to_end: bool) -> Cursor:
    """Return where to continue reading: at the beginning if the file was replaced or rewritten."""
    status, kind = opening.check(path), AGENTS[row.agent].kind
    start = row.offset if status.st_ino == row.inode and not to_end else 0
    if start and kind == LINES and (start > status.st_size or _hash_before(path, start) != row.before):
        start = 0
    return Cursor(0 if kind == DOCUMENT else start, status.st_ino, status.st_size)


def _hash_before(path: Path, offset: int) -> bytes:
    begin = max(0, offset - _TAIL_BYTES)
    with open_file(path) as file:
        return hashlib.sha256(os.pread(file.fileno(), offset - begin, begin)).digest()


class _EntryTurn(NamedTuple):
    """An utterance with its turn, its namespace, the SHA-256 of its text, and why it is left out (empty: it is not)."""

    utterance: Utterance
    turn: NewTurn
    namespace: str
    text: str
    left_out: str


class _Recording:
    """Writes the utterances that were read from one file."""

    def __init__(self, core: Core, row: Transcript, session: Session, cursor: Cursor, moment: str) -> None:
        self._core, self._row, self._session, self._cursor = core, row, session, cursor
        self._to_end, self._is_answered = moment == "end", moment in ("stop", "end")
        self._prompt_ignored = row.unheard if cursor.start else ""
        self._ignored_at_cursor = self._prompt_ignored
        self._automated = session.automated if self._to_end else "automated session" if row.automated else ""
        self._entries = {utterance.id for utterance in session.utterances}
        self._speaker = find_speaker()
        # The session's namespace is not that of its folder, so somebody chose it for the whole session.
        self._is_namespace_chosen = not row.folder.startswith("/") or project_namespace(row.folder) != row.namespace

    def write(self) -> None:
        """Write all utterances in parts, and the cursor with the last part."""
        utterances = self._session.utterances
        with self._core.store.reading() as connection:
            # The turns of entries that the host has deleted, by entry; none if the host has lost all entries.
            there, deleted = self._session.there, dict[str, str]()
            if there:
                known_there = transcripts.find_retractable(connection, self._row.session)
                deleted = {id: turn for id, turn in known_there.items() if id not in there}
            # The facts and summaries that were derived from retracted turns.
            derived: list[str] = []
            retracted = [said.id for said in utterances if said.taken_back or self._automated]
            if retracted or deleted:
                entries = transcripts.find_entries(connection, [*retracted, *deleted])
                ids = [turn for turn in entries.values() if turn]
                derived = erasing.find_derived(connection, ids) if ids else []
            known = transcripts.find_entries(connection, [said.id for said in utterances])
        for begin in range(0, max(1, len(utterances)), _PART):
            self._core.check_going_on()
            part = []
            for said in utterances[begin : begin + _PART]:
                if said.id in known and not (said.taken_back or self._automated):
                    self._note_prompt(said, "")  # it is known, so it was recorded
                elif (one := self._build_turn(said)) is not None:
                    part.append(one)
            is_last = begin + _PART >= len(utterances)
            write = partial(
                self._write_part, part=part, deleted=deleted if is_last else {}, derived=derived, is_last=is_last
            )
            self._core.store.write(write).result()

    def _build_turn(self, utterance: Utterance) -> _EntryTurn | None:
        """Return an utterance as a turn, None if it is invalid."""
        self._core.give_way()
        namespace, now, folder = self._row.namespace, self._core.clock(), utterance.folder
        # That of its own folder, unless the folder is gone or the session's namespace was chosen.
        if not self._is_namespace_chosen and folder != self._row.folder and os.path.isabs(folder):
            namespace = project_namespace(folder) if os.path.isdir(folder) else namespace
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
            log.info("an entry of a session is not recorded: %s", error)
            return None
        place = TurnPlace(namespace, self._row.session, utterance.folder or self._row.folder)
        own = observing.PRIVATE if turn.content == WHOLE else ""
        if not own:
            pauses = self._core.pauses
            is_session_paused = any(one.kind == "session" and one.name == place.session for one in pauses.list_all())
            is_paused = is_session_paused or pauses.covers(place, turn.created_at or 0.0)
            own = observing.PAUSED if is_paused else ""
        self._note_prompt(utterance, own)
        left_out = own or self._prompt_ignored or self._automated
        if utterance.kind == ANSWER and not (self._is_settled(utterance) or self._is_answered):
            left_out = left_out or "it may not be the answer yet"
        return _EntryTurn(utterance, turn, namespace, content_hash(turn.content).hex(), left_out)

    def _note_prompt(self, utterance: Utterance, ignored: str) -> None:
        """Remember why the last prompt is ignored (empty: it is not), since its answer is ignored as well."""
        if utterance.role == "user":
            self._prompt_ignored = ignored
        if self._is_settled(utterance):
            self._ignored_at_cursor = self._prompt_ignored

    def _is_settled(self, utterance: Utterance) -> bool:
        return utterance.offset < self._cursor.settled

    def _write_part(
        self,
        transaction: Transaction,
        part: Sequence[_EntryTurn],
        deleted: dict[str, str],
        derived: list[str],
        is_last: bool,
    ) -> None:
        connection = transaction.connection
        row = transcripts.find(connection, self._row.path, self._row.session)  # events may have changed it meanwhile
        if row is None:
            return
        known = transcripts.find_entries(connection, [one.utterance.id for one in part])
        fresh, retracted = [], dict(deleted)
        for one in part:
            said = one.utterance
            turn = known[said.id] if said.id in known else self._match(transaction, row, one)
            if turn is None and said.id not in known:
                if not (one.left_out or said.taken_back or said.offset < row.passed):
                    fresh.append(one)
            elif turn and (said.taken_back or self._automated):
                retracted[said.id] = turn
        self._observe(transaction, row, fresh)
        self._delete_retracted(transaction, row, retracted, derived)
        if is_last:
            row.offset, row.before = self._cursor.settled, self._cursor.before
            row.inode, row.size = self._cursor.inode, self._cursor.size
            row.unheard = self._ignored_at_cursor
            row.automated = bool(self._automated)
            row.ended = self._cursor.size if self._to_end else row.ended
        transcripts.put(connection, row)

    def _match(self, transaction: Transaction, row: Transcript, one: _EntryTurn) -> str | None:
        """Return the stored turn of a new entry, None if it must be stored; record the match."""
        connection, id = transaction.connection, one.utterance.id
        if turns.find_id(connection, id):  # a backfill has stored it
            turn = id
        else:
            same = [other for other in row.unmatched if (other.role, other.text) == (one.turn.role, one.text)]
            reported = next((other for other in same if other.entry not in self._entries), None)
            if reported is None:
                return None
            row.unmatched.remove(reported)
            turn = reported.turn
            if turn and one.utterance.to_program and turns.rate(connection, turn, SMALL_TALK):
                extraction.remove(connection, "rate", [turn])
                self._core.active.follow(
                    transaction, {one.namespace for one in turns.read_keys(connection, [turn]).values()}
                )
        self._note_entry(connection, id, turn or None)
        return turn

    def _note_entry(self, connection: Connection, id: str, turn: str | None) -> None:
        can_be_retracted = self._session.there is not None
        transcripts.note_entry(connection, id, turn, self._row.session if can_be_retracted else "")

    def _observe(self, transaction: Transaction, row: Transcript, fresh: Sequence[_EntryTurn]) -> None:
        connection, now = transaction.connection, self._core.clock()
        row.unmatched = [other for other in row.unmatched if not other.entry or now - other.at <= _AHEAD_S]
        for namespace, group in groupby(fresh, key=lambda one: one.namespace):
            entries = list(group)
            checked = [
                CheckedTurn(one.turn, gate.check(one.turn.content), SMALL_TALK if one.utterance.to_program else None)
                for one in entries
            ]
            outcomes = observing.write(self._core, transaction, namespace, row.session, checked).turns
            for one, outcome in zip(entries, outcomes, strict=True):
                turn = _find_turn(outcome)
                self._note_entry(connection, one.utterance.id, turn or None)
                if now - one.utterance.at <= _AHEAD_S or one.utterance.kind == QUEUED:
                    # Its event may follow; a queued prompt gets a second entry with another id.
                    row.unmatched.append(Unmatched(one.utterance.id, one.turn.role, one.text, turn, now))
        del row.unmatched[:-_MAX_UNMATCHED]

    def _delete_retracted(
        self, transaction: Transaction, row: Transcript, retracted: dict[str, str], derived: list[str]
    ) -> None:
        """Delete the turns of retracted entries (entry -> turn) and the memories derived from them."""
        connection = transaction.connection
        keys = [
            turn
            for turn, count in Counter(retracted.values()).items()
            if transcripts.count_entries(connection, turn) == count  # else the same text was also said elsewhere
        ]
        for id in retracted:  # None, not empty, for an automated session, which a backfill may import on request
            self._note_entry(connection, id, None if self._automated else "")
        own = [turns.to_row(turn) for turn in turns.read_keys(connection, keys).values()]
        own += [one for one in rows.read_ids(connection, keys).values() if one.turns]
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
