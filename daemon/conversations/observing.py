"""Observing: turns of a conversation pass the gate and enter L0. No model is asked; the worker judges them later.

Acknowledged means journaled. One call is one transaction: its turns are all taken or, when one of them is wrong, none.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import msgspec

from memoryd.client.credentials.private import WHOLE
from memoryd.client.errors import Conflict, Forbidden, Invalid
from memoryd.client.protocol import NewTurn, Observe, Observed, ObservedTurn
from memoryd.daemon.conversations import citing, extracting, gate, pairing, promoting
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.sentences import ends_with_question
from memoryd.daemon.registry import handles
from memoryd.daemon.store import extraction, namespaces, pauses, rows, turns
from memoryd.daemon.store.actor import PRESENT
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import select_living
from memoryd.daemon.store.turns import RecentTurn, Skip, StoredTurn
from memoryd.daemon.store.writer import Transaction

REPEATED, DUPLICATE, KNOWN = "repeats a recalled memory", "duplicate", "observed before"
PAUSED, PRIVATE = "observing is paused", "marked as private, or the answer to it"
_UNHEARD = (PAUSED, PRIVATE)  # reasons for which it is not noted either that there was anything
FIRST_GUESS = 0.5  # the importance of a turn until it is judged
_MAX_SESSION_BYTES = 256


class Taken(NamedTuple):
    """A turn to be taken in: why the gate refuses it (None: it does not), and its importance if that is known."""

    turn: NewTurn
    refused: str | None = None
    importance: float | None = None


class TurnTarget(NamedTuple):
    """Where turns go, and what they pass through."""

    core: Core
    transaction: Transaction
    number: int
    name: str
    session: str
    now: float
    repeated: set[str]  # accepted turns that were said before: nothing new is learned of them
    heard: bool | None = None  # whether the user's last turn of this call was accepted; None: there was none

    @property
    def connection(self) -> Connection:
        """The writer's connection."""
        return self.transaction.connection


@handles(Observe)
def observe(core: Core, call: Observe, caller: Caller = USER) -> "Future[Observed]":
    """Take in turns; the future is done when they are on disk."""
    check(call.namespace, call.session, call.turns, caller)
    taken = judge(core, call, caller)
    return leave_out(taken) if is_unheard(taken) else take(core, call.namespace, call.session, taken)


def judge(core: Core, call: Observe, caller: Caller = USER) -> list[Taken]:
    """Return the turns of a call, which was checked, each with why it is refused if it is."""
    place, now = pauses.TurnPlace(call.namespace, call.session, call.folder), core.clock()
    said = (now if turn.created_at is None else turn.created_at for turn in call.turns)  # hooks may send it later
    paused = PAUSED if any(core.pauses.silences(place, at) for at in said) else None
    unheard = core.pauses.find_unheard(place)
    reasons = []
    for turn in call.turns:  # what follows a prompt that is not heard answers it, and is left out as well
        own = paused or (PRIVATE if turn.content == WHOLE else None)
        unheard = own if turn.role == "user" else unheard
        reasons.append(own or unheard)
    core.pauses.note_prompt(place, unheard)
    if heard := [turn for turn, reason in zip(call.turns, reasons, strict=True) if reason is None]:
        citing.note(core, msgspec.structs.replace(call, turns=heard), caller)
    return [Taken(turn, reason or gate.check(turn.content)) for turn, reason in zip(call.turns, reasons, strict=True)]


def is_unheard(taken: Sequence[Taken]) -> bool:
    """Return whether nothing is to be noted of some turns, not even that there was anything."""
    return all(one.refused in _UNHEARD for one in taken)


def leave_out(taken: Sequence[Taken]) -> "Future[Observed]":
    """Take note of nothing, also not that there was anything."""
    done: Future[Observed] = Future()
    done.set_result(Observed(turns=[_name_left_out(one) for one in taken], accepted=0, skipped=len(taken)))
    return done


def _name_left_out(one: Taken) -> ObservedTurn:
    return ObservedTurn(outcome="skipped", id=one.turn.id, reason=one.refused or "")


def check(namespace: str, session: str, new_turns: Sequence[NewTurn], caller: Caller) -> None:
    """Raise `Invalid` for what cannot be a turn, `Forbidden` where a token may not choose ids."""
    namespaces.check(namespace)
    if not new_turns:
        raise Invalid("No turns are given to observe.")
    checks.check_text("session", session)
    if len(session.encode()) > _MAX_SESSION_BYTES:
        raise Invalid(f"The session's name is longer than {_MAX_SESSION_BYTES} bytes.")
    for number, turn in enumerate(new_turns):
        try:
            if turn.content != WHOLE:
                checks.check_content(turn.content)
            checks.check_word("role", turn.role)
            if turn.speaker:
                checks.check_word("speaker", turn.speaker)
            checks.check_files(turn.files)
            if turn.id is not None:
                checks.check_id(turn.id)
        except Invalid as error:
            raise Invalid(f"Turn {number}: {error}", {"index": number}) from None
        if turn.id is not None and caller.bound:
            raise Forbidden("Only the machine's user may choose the id of a turn; leave it out.")


def take(core: Core, namespace: str, session: str, taken: Sequence[Taken]) -> "Future[Observed]":
    """Write turns that were checked; the oldest leave L0 when it is full."""
    return core.store.write(lambda transaction: write(core, transaction, namespace, session, taken))


def write(core: Core, transaction: Transaction, namespace: str, session: str, taken: Sequence[Taken]) -> Observed:
    """Write turns that were checked, within a transaction."""
    number = core.store.namespaces.ensure(transaction, namespace)
    place = TurnTarget(core, transaction, number, namespace, session, core.clock(), set())
    results: list[ObservedTurn] = []
    for one in taken:
        results.append(_take_turn(place, one))
        if one.turn.role == "user":
            place = place._replace(heard=results[-1].outcome == "accepted")
    noted = sum(one.refused not in _UNHEARD for one in taken)
    turns.count(place.connection, number, "observed", noted)
    accepted = sum(result.outcome == "accepted" for result in results)
    _queue_accepted(place, taken, results)
    core.active.note_writer([result.id for result in results if result.outcome == "accepted"], PRESENT.get().token)
    _make_room(place)
    core.active.follow(transaction, [number])
    transaction.after_commit(core.cognition.wake.set)
    return Observed(turns=results, accepted=accepted, skipped=len(results) - accepted)


def _queue_accepted(place: TurnTarget, taken: Sequence[Taken], results: Sequence[ObservedTurn]) -> None:
    """Queue the accepted turns for extraction and summaries; seeded turns belong to no open conversation."""
    keys = [
        result.id
        for one, result in zip(taken, results, strict=True)
        if result.outcome == "accepted" and result.id and result.id not in place.repeated and one.importance is None
    ]
    delays = extracting.list_delays(place.core, place.session)
    extraction.queue_conversation(place.connection, (place.number, place.session), keys, delays, place.now)


def _take_turn(place: TurnTarget, taken: Taken) -> ObservedTurn:
    turn = taken.turn
    if taken.refused in _UNHEARD:
        return _name_left_out(taken)
    asked = _find_asked(place, turn)
    if taken.refused and not (asked and taken.refused in gate.QUIET):
        return _skip(place, turn, taken.refused)
    key = checks.content_hash(turn.content)
    if turn.id is not None and _is_known(place, turn.id, key):
        return _skip(place, turn, KNOWN, [turn.id])
    if origins := _select_alive(place, place.core.recalls.find_repeated(place.name, place.session, turn.content)):
        turns.count(place.connection, place.number, "evidence", len(origins))
        return _skip(place, turn, REPEATED, origins)
    if asked:  # "No." to one question is not that to another
        is_repeat = asked in place.repeated and bool(_find_equal(place, key))
        return _note_repeat(place, _accept(place, taken, key, asked), is_repeat)
    same = _find_equal(place, key)
    if same and not ends_with_question(turn.content):
        return _skip(place, turn, DUPLICATE, same)
    # A question that is asked again may have another answer, which belongs to it.
    return _note_repeat(place, _accept(place, taken, key, _find_answered(place, turn)), bool(same))


def _note_repeat(place: TurnTarget, accepted: ObservedTurn, is_repeat: bool) -> ObservedTurn:
    if is_repeat and accepted.id:
        place.repeated.add(accepted.id)
    return accepted


def _find_asked(place: TurnTarget, turn: NewTurn) -> str | None:
    latest = turns.read_latest(place.connection, place.number, place.session, 1)
    asked = pairing.find_asked(next(iter(latest), None), turn, _time_of(place, turn))
    return None if asked is None else asked.key


def _is_known(place: TurnTarget, id: str, key: bytes) -> bool:
    """Return whether a turn was observed before; raise `Conflict` when its id belongs to something else."""
    holder = turns.find_id(place.connection, id)
    if holder is not None and holder != (key, place.number):
        raise Conflict(f"The id {id} belongs to another turn or memory.", {"id": id})
    return holder is not None


def _find_equal(place: TurnTarget, key: bytes) -> list[str]:
    """Return the id of a turn or memory of this namespace with the same text; count an access to a memory."""
    memory = turns.find_equal_memory(place.connection, place.number, key, place.core.clock())
    if memory is not None:
        return _select_alive(place, [memory])
    turn = turns.find_equal_turn(place.connection, place.number, key)
    return [] if turn is None else [turn]


def _select_alive(place: TurnTarget, ids: list[str]) -> list[str]:
    """Return those of some memories that still are and can be seen from here, and count an access of each."""
    passed = place.core.clock()
    known = select_living(place.connection, rows.read_ids(place.connection, ids).values(), passed)
    seen = place.core.store.namespaces.reach(place.name, None)
    there = [row for row in known if seen is None or row.namespace in seen or row.namespace == place.number]
    rows.count_accesses(place.connection, [(row.row, 1, place.now) for row in there])
    return [row.id for row in there]


def _skip(place: TurnTarget, turn: NewTurn, reason: str, same: Sequence[str] = ()) -> ObservedTurn:
    explanation = f"{reason} ({same[0][:8]})" if same else reason
    skip = Skip(place.number, place.session, turn.role, turn.content, explanation, _time_of(place, turn))
    turns.skip(place.connection, [skip])
    turns.count(place.connection, place.number, f"skipped: {reason}")
    return ObservedTurn(outcome="skipped", id=turn.id, reason=reason, same_as=same[0] if same else None)


def _accept(place: TurnTarget, taken: Taken, key: bytes, answers: str | None) -> ObservedTurn:
    turn, connection = taken.turn, place.connection
    made = StoredTurn(
        key=turn.id or place.core.new_id(),
        namespace=place.number,
        session=place.session,
        role=turn.role,
        importance=FIRST_GUESS if taken.importance is None else taken.importance,
        created_at=_time_of(place, turn),
        answers=answers,
        content_hash=key,
        previous="\n".join(turns.find_previous(connection, place.number, place.session)),
        content=turn.content,
        speaker=turn.speaker,
        files="\n".join(turn.files),
    )
    turns.insert(connection, made)
    tasks = ["embed"] if taken.importance is not None else ["rate", "embed"]
    extraction.queue(connection, [made.key], *tasks, *([] if turn.role == "tool" else [extraction.COMPARE]))
    return ObservedTurn(outcome="accepted", id=made.key)


def _find_answered(place: TurnTarget, turn: NewTurn) -> str | None:
    """Return the turn that another one answers: a question, else for the assistant whatever the user said last."""
    latest = turns.read_latest(place.connection, place.number, place.session, pairing.LOOK_BACK)
    asked = pairing.find_question(latest, turn, _time_of(place, turn))
    if asked is not None and _is_last_heard(place, asked):
        return asked.key
    return _find_requested(place, turn) if turn.role == "assistant" and pairing.can_answer(turn) else None


def _is_last_heard(place: TurnTarget, asked: RecentTurn) -> bool:
    """Return whether nothing that its speaker said after a turn was skipped."""
    if asked.role == "user" and place.heard is not None:
        return place.heard
    return not turns.was_skipped_after(place.connection, place.number, place.session, asked.role, asked.at)


def _find_requested(place: TurnTarget, turn: NewTurn) -> str | None:
    """Return what the user said last, which the assistant replies to unless it did."""
    if place.heard is False:
        return None
    at = _time_of(place, turn)
    asked = turns.find_question(place.connection, place.number, place.session, at, pairing.WITHIN_S)
    if asked is None:
        return None
    key, asked_at = asked
    if place.heard is None and turns.was_skipped_after(place.connection, place.number, place.session, "user", asked_at):
        return None  # it answers a turn that was not kept
    return key


def _time_of(place: TurnTarget, turn: NewTurn) -> float:
    return place.now if turn.created_at is None else turn.created_at


def _make_room(place: TurnTarget) -> None:
    ring = turns.read_ring(place.connection, place.number)
    excess = len(ring) - place.core.config.tiers.ring
    promoting.leave(place.core, place.transaction, choose_leaving(ring, excess, place.core.active.writers))


def choose_leaving(ring: Sequence[StoredTurn], excess: int, writers: Mapping[str, str]) -> list[StoredTurn]:
    """Return which turns leave L0, oldest first: those of the writer that has most there, so that each keeps a share.

    `writers` has the tokens that turns came with.
    """
    if excess <= 0:
        return []
    by_writer: dict[str, deque[StoredTurn]] = {}
    for turn in ring:
        by_writer.setdefault(writers.get(turn.key, ""), deque()).append(turn)
    leaving = []
    for _ in range(excess):
        largest = max(by_writer.values(), key=lambda its: (len(its), -its[0].id if its else 0))
        leaving.append(largest.popleft())
    return sorted(leaving, key=lambda turn: turn.id)
