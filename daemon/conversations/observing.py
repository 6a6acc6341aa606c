"""Record the turns of a conversation in L0. No model is asked here; the worker rates the turns later.

One call is one transaction: if one of its turns is invalid, none is stored. A call is answered after the commit.
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
from memoryd.daemon.core import limits
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
_UNRECORDED = (PAUSED, PRIVATE)  # turns refused for these reasons are not even counted
FIRST_GUESS = 0.5  # the importance of a turn until the worker has rated it
_MAX_SESSION_BYTES = 256


class CheckedTurn(NamedTuple):
    """A turn to store, the reason why it is refused (None: it is accepted), and its importance if that is known."""

    turn: NewTurn
    refused: str | None = None
    importance: float | None = None


class TurnTarget(NamedTuple):
    """The namespace and session that turns are written to, and the transaction that writes them."""

    core: Core
    transaction: Transaction
    number: int
    name: str
    session: str
    now: float
    repeated: set[str]  # keys of accepted turns that repeat an earlier one: nothing is extracted from them
    user_accepted: bool | None = None  # whether the user's last turn of this call was accepted; None: it had none

    @property
    def connection(self) -> Connection:
        """The writer's connection."""
        return self.transaction.connection


@handles(Observe)
def observe(core: Core, call: Observe, caller: Caller = USER) -> "Future[Observed]":
    """Store the turns of a call; the future is done when they are on disk."""
    check(call.namespace, call.session, call.turns, caller)
    checked = judge(core, call, caller)
    return ignore(checked) if are_unrecorded(checked) else take(core, call.namespace, call.session, checked)


def judge(core: Core, call: Observe, caller: Caller = USER) -> list[CheckedTurn]:
    """Return the turns of a valid call, each with the reason if it is refused."""
    place, now = pauses.TurnPlace(call.namespace, call.session, call.folder), core.clock()
    times = (now if turn.created_at is None else turn.created_at for turn in call.turns)  # hooks may send turns late
    paused = PAUSED if any(core.pauses.covers(place, at) for at in times) else None
    prompt_ignored = core.pauses.find_ignored_prompt(place)
    reasons = []
    for turn in call.turns:  # the answer to an unrecorded prompt is not recorded either
        own = paused or (PRIVATE if turn.content == WHOLE else None)
        prompt_ignored = own if turn.role == "user" else prompt_ignored
        reasons.append(own or prompt_ignored)
    core.pauses.note_prompt(place, prompt_ignored)
    if recorded := [turn for turn, reason in zip(call.turns, reasons, strict=True) if reason is None]:
        citing.note(core, msgspec.structs.replace(call, turns=recorded), caller)
    return [
        CheckedTurn(turn, reason or gate.check(turn.content)) for turn, reason in zip(call.turns, reasons, strict=True)
    ]


def are_unrecorded(turns: Sequence[CheckedTurn]) -> bool:
    """Return whether all turns fall into a pause or are private, so that they leave no trace, not even a count."""
    return all(one.refused in _UNRECORDED for one in turns)


def ignore(turns: Sequence[CheckedTurn]) -> "Future[Observed]":
    """Answer a call without writing anything about its turns."""
    done: Future[Observed] = Future()
    done.set_result(Observed(turns=[_describe_ignored(one) for one in turns], accepted=0, skipped=len(turns)))
    return done


def _describe_ignored(checked: CheckedTurn) -> ObservedTurn:
    return ObservedTurn(outcome="skipped", id=checked.turn.id, reason=checked.refused or "")


def check(namespace: str, session: str, new_turns: Sequence[NewTurn], caller: Caller) -> None:
    """Raise `Invalid` if a turn is malformed, `Forbidden` if the caller may not choose ids."""
    namespaces.check(namespace)
    if not new_turns:
        raise Invalid("No turns are given to observe.")
    limits.check_text("session", session)
    if len(session.encode()) > _MAX_SESSION_BYTES:
        raise Invalid(f"The session's name is longer than {_MAX_SESSION_BYTES} bytes.")
    for number, turn in enumerate(new_turns):
        try:
            if turn.content != WHOLE:
                limits.check_content(turn.content)
            limits.check_word("role", turn.role)
            if turn.speaker:
                limits.check_word("speaker", turn.speaker)
            limits.check_files(turn.files)
            if turn.id is not None:
                limits.check_id(turn.id)
        except Invalid as error:
            raise Invalid(f"Turn {number}: {error}", {"index": number}) from None
        if turn.id is not None and caller.bound:
            raise Forbidden("Only the machine's user may choose the id of a turn; leave it out.")


def take(core: Core, namespace: str, session: str, checked: Sequence[CheckedTurn]) -> "Future[Observed]":
    """Write checked turns; the oldest leave L0 when it is full."""
    return core.store.write(lambda transaction: write(core, transaction, namespace, session, checked))


def write(
    core: Core, transaction: Transaction, namespace: str, session: str, checked: Sequence[CheckedTurn]
) -> Observed:
    """Write checked turns within a transaction."""
    number = core.store.namespaces.ensure(transaction, namespace)
    place = TurnTarget(core, transaction, number, namespace, session, core.clock(), set())
    results: list[ObservedTurn] = []
    for one in checked:
        results.append(_take_turn(place, one))
        if one.turn.role == "user":
            place = place._replace(user_accepted=results[-1].outcome == "accepted")
    turns.count(place.connection, number, "observed", sum(one.refused not in _UNRECORDED for one in checked))
    # Nothing is extracted from repeats, nor from turns whose importance is given.
    keys = [
        result.id
        for one, result in zip(checked, results, strict=True)
        if result.outcome == "accepted" and result.id and result.id not in place.repeated and one.importance is None
    ]
    delays = extracting.list_delays(core, session)
    extraction.queue_conversation(place.connection, (number, session), keys, delays, place.now)
    accepted = [result.id for result in results if result.outcome == "accepted"]
    core.active.note_writer(accepted, PRESENT.get().token)
    ring = turns.read_ring(place.connection, number)
    promoting.leave(core, transaction, choose_leaving(ring, len(ring) - core.config.tiers.ring, core.active.writers))
    core.active.follow(transaction, [number])
    transaction.after_commit(core.cognition.wake.set)
    return Observed(turns=results, accepted=len(accepted), skipped=len(results) - len(accepted))


def _take_turn(place: TurnTarget, checked: CheckedTurn) -> ObservedTurn:
    turn = checked.turn
    if checked.refused in _UNRECORDED:
        return _describe_ignored(checked)
    latest = turns.read_latest(place.connection, place.number, place.session, 1)
    question = pairing.find_asked(next(iter(latest), None), turn, _time_of(place, turn))
    asked = None if question is None else question.key  # which a short turn directly follows
    if checked.refused and not (asked and checked.refused in gate.QUIET):
        return _skip(place, turn, checked.refused)
    key = limits.content_hash(turn.content)
    if turn.id is not None and _is_known(place, turn.id, key):
        return _skip(place, turn, KNOWN, [turn.id])
    if origins := _select_alive(place, place.core.recalls.find_repeated(place.name, place.session, turn.content)):
        turns.count(place.connection, place.number, "evidence", len(origins))
        return _skip(place, turn, REPEATED, origins)
    if asked:  # "No." may answer several questions, so an equal text is no duplicate here
        is_repeat = asked in place.repeated and bool(_find_equal(place, key))
        return _note_repeat(place, _accept(place, checked, key, asked), is_repeat)
    same = _find_equal(place, key)
    if same and not ends_with_question(turn.content):
        return _skip(place, turn, DUPLICATE, same)
    # A repeated question is stored again, since its answer may differ this time.
    return _note_repeat(place, _accept(place, checked, key, _find_answered(place, turn)), bool(same))


def _note_repeat(place: TurnTarget, accepted: ObservedTurn, is_repeat: bool) -> ObservedTurn:
    if is_repeat and accepted.id:
        place.repeated.add(accepted.id)
    return accepted


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
    """Return the ids that name living memories within reach of the namespace, and count an access to each."""
    living = select_living(place.connection, rows.read_ids(place.connection, ids).values(), place.core.clock())
    reached = place.core.store.namespaces.reach(place.name, None)
    visible = [row for row in living if reached is None or row.namespace in reached or row.namespace == place.number]
    rows.count_accesses(place.connection, [(row.row, 1, place.now) for row in visible])
    return [row.id for row in visible]


def _skip(place: TurnTarget, turn: NewTurn, reason: str, same: Sequence[str] = ()) -> ObservedTurn:
    explanation = f"{reason} ({same[0][:8]})" if same else reason
    skip = Skip(place.number, place.session, turn.role, turn.content, explanation, _time_of(place, turn))
    turns.skip(place.connection, [skip])
    turns.count(place.connection, place.number, f"skipped: {reason}")
    return ObservedTurn(outcome="skipped", id=turn.id, reason=reason, same_as=same[0] if same else None)


def _accept(place: TurnTarget, checked: CheckedTurn, key: bytes, answers: str | None) -> ObservedTurn:
    turn, connection = checked.turn, place.connection
    stored = StoredTurn(
        key=turn.id or place.core.new_id(),
        namespace=place.number,
        session=place.session,
        role=turn.role,
        importance=FIRST_GUESS if checked.importance is None else checked.importance,
        created_at=_time_of(place, turn),
        answers=answers,
        content_hash=key,
        previous="\n".join(turns.find_previous(connection, place.number, place.session)),
        content=turn.content,
        speaker=turn.speaker,
        files="\n".join(turn.files),
    )
    turns.insert(connection, stored)
    tasks = ["embed"] if checked.importance is not None else ["rate", "embed"]
    extraction.queue(connection, [stored.key], *tasks, *([] if turn.role == "tool" else [extraction.COMPARE]))
    return ObservedTurn(outcome="accepted", id=stored.key)


def _find_answered(place: TurnTarget, turn: NewTurn) -> str | None:
    """Return the key of the turn that this one answers: a question or, for the assistant, the user's last prompt."""
    latest = turns.read_latest(place.connection, place.number, place.session, pairing.LOOK_BACK)
    asked = pairing.find_question(latest, turn, _time_of(place, turn))
    if asked is not None and _is_speakers_last(place, asked):
        return asked.key
    return _find_open_prompt(place, turn) if turn.role == "assistant" and pairing.can_answer(turn) else None


def _is_speakers_last(place: TurnTarget, asked: RecentTurn) -> bool:
    """Return whether no later turn of its speaker was skipped, which the answer could belong to instead."""
    if asked.role == "user" and place.user_accepted is not None:
        return place.user_accepted
    return not turns.was_skipped_after(place.connection, place.number, place.session, asked.role, asked.at)


def _find_open_prompt(place: TurnTarget, turn: NewTurn) -> str | None:
    """Return the key of the user's last prompt if it has no answer yet."""
    if place.user_accepted is False:
        return None
    at = _time_of(place, turn)
    asked = turns.find_question(place.connection, place.number, place.session, at, pairing.WITHIN_S)
    if asked is None:
        return None
    key, asked_at = asked
    if place.user_accepted is None and turns.was_skipped_after(
        place.connection, place.number, place.session, "user", asked_at
    ):
        return None  # the turn answers a skipped prompt
    return key


def _time_of(place: TurnTarget, turn: NewTurn) -> float:
    return place.now if turn.created_at is None else turn.created_at


def choose_leaving(ring: Sequence[StoredTurn], excess: int, writers: Mapping[str, str]) -> list[StoredTurn]:
    """Return the turns that leave L0, oldest first: each time one of the writer with the most turns in it.

    So a busy writer does not push out the turns of the others. `writers` maps turns to the tokens that wrote them.
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
