"""Store the turns of one past session in parts, all within one operation."""

from collections.abc import Sequence

import msgspec

from memoryd.client.errors import Conflict, Invalid
from memoryd.client.protocol.backfill import Backfill, Backfilled
from memoryd.client.transport.batches import split_batches
from memoryd.daemon.backfill.planning import PlannedTurn, plan
from memoryd.daemon.backfill.tables import said, transcripts
from memoryd.daemon.conversations import observing
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.sentences import ends_with_question
from memoryd.daemon.memories.batches import PART, PART_BYTES, cut_short
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.store import erasures, history, namespaces, rows, turns, vectors
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.pauses import TurnPlace
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L2
from memoryd.daemon.store.turns import StoredTurn
from memoryd.daemon.store.writer import Transaction, wait_patiently

SOURCE = KIND = "backfill"

TAKEN, KNOWN = "taken", "known"
ERASED, DELETED = "something of its session was erased", "it was deleted"


@handles(Backfill)
def backfill(core: Core, call: Backfill, caller: Caller = USER) -> "Parts[Backfilled]":
    """Store turns of a past session as memories; with `dry_run` only return what would be done."""
    _check(call, caller)
    if not call.turns:
        begun = Backfilled(dry_run=call.dry_run)
        if not call.dry_run:
            begun.operation = core.store.write(lambda transaction: _begin(core, transaction, call)).result()
        return begun
    done = Backfilled(operation=call.operation, dry_run=call.dry_run)

    def is_paused(folder: str, at: float) -> bool:
        core.give_way()  # once for each turn
        return core.pauses.hides(TurnPlace(call.namespace, call.session, folder), at)

    planned = plan(call.turns, is_paused)
    own = planned[call.before : len(planned) - call.after]
    for one in own:
        if one.refused:
            _count(done, one.refused)
    wanted = [one for one in own if not one.refused]
    number = core.store.namespaces.find_number(call.namespace)
    number = -1 if number is None else number
    with core.store.reading() as connection:
        stored = _find_stored(core, connection, call, number, planned[: call.before])
        is_erased = erasures.was_erased_from(connection, call.session)
        if call.dry_run or is_erased:
            for one in wanted:
                outcome = _compare(core, connection, call, number, one, stored)
                _count(done, ERASED if is_erased and outcome == TAKEN else outcome)
                if outcome == TAKEN and not is_erased:
                    done.keys.append(one.key.hex() if _is_kept_once(one) else "")
            return done
    kept = 0
    for part in split_batches(wanted, PART, lambda one: len(one.turn.content.encode()), PART_BYTES):
        if kept:
            yield
        try:
            core.check_going_on()
            core.give_way()
            core.store.check_room()
            done.operation = _keep(core, call, part, stored, done)
        except Exception as error:
            raise cut_short(error, kept, len(wanted), done.operation) from None
        kept += len(part)
    return done


def _find_stored(
    core: Core, connection: Connection, call: Backfill, number: int, before: Sequence[PlannedTurn]
) -> dict[str, str]:
    """Return by id the turns that an earlier call has sent and that are stored."""
    stored: dict[str, str] = {}
    return {
        str(one.turn.id): stored[str(one.turn.id)]
        for one in before
        if not one.refused and _compare(core, connection, call, number, one, stored) != TAKEN
    }


def _check(call: Backfill, caller: Caller) -> None:
    namespaces.check(call.namespace)
    if min(call.before, call.after) < 0 or call.before + call.after > len(call.turns):
        raise Invalid(f"before={call.before} and after={call.after} do not fit {len(call.turns)} turns.")
    if not call.turns:
        return
    observing.check(call.namespace, call.session, call.turns, caller)
    for number, turn in enumerate(call.turns):
        lacking = next((name for name in ("id", "created_at") if getattr(turn, name) is None), None)
        if lacking:
            raise Invalid(f"Turn {number} has no {lacking}, which a past turn needs.", {"index": number})


def _begin(core: Core, transaction: Transaction, call: Backfill) -> str:
    """Return the operation to write in: the one that the call names, or a new one."""
    connection, operation = transaction.connection, call.operation
    if operation is None:
        return history.begin(connection, KIND, "", core.clock())
    if history.kind_of(connection, operation) != KIND:
        raise Invalid(f"{operation!r} is not the id of a backfill that could be continued.")
    if (undone_by := history.find_undo(connection, operation)) is not None:
        said = f"The backfill, operation {operation[:8]}, was undone by operation {undone_by[:8]}."
        raise Conflict(said, {"stored": 0, "operations": [operation]})
    return operation


def _keep(core: Core, call: Backfill, part: Sequence[PlannedTurn], stored: dict[str, str], done: Backfilled) -> str:
    """Store a part of the turns in one transaction; return the operation."""
    begun = msgspec.structs.replace(call, operation=done.operation)

    def write(transaction: Transaction) -> tuple[str, list[str], dict[str, str]]:
        connection, operation = transaction.connection, _begin(core, transaction, begun)
        place = core.store.namespaces.find_number(call.namespace)
        number = -1 if place is None else place
        outcomes, known, made = [], dict(stored), []
        for one in part:
            outcomes.append(_compare(core, connection, call, number, one, known))
            if outcomes[-1] == TAKEN:
                number = core.store.namespaces.ensure(transaction, call.namespace)  # not created before it is needed
                row = _make_row(core, call, number, one, known)
                # Recorded before the insert: a trigger that counts turns reads the history.
                history.record(connection, operation, row.id, call.namespace, None)
                made.append((rows.insert(connection, row), number, row.type))
        transaction.after_commit(lambda: core.embedding.index_rows(made, [None] * len(made)))
        return operation, outcomes, known

    operation, outcomes, known = wait_patiently(lambda: core.store.write(write), core.check_going_on)
    stored.update(known)
    for outcome in outcomes:
        _count(done, outcome)
    return operation


def _compare(
    core: Core, connection: Connection, call: Backfill, number: int, one: PlannedTurn, stored: dict[str, str]
) -> str:
    """Return the outcome for a turn: `TAKEN`, `KNOWN`, or why it is left out; add its stored id to `stored`."""
    id = str(one.turn.id)
    recorded = transcripts.find_entries(connection, [id]).get(id)  # the turn made of it while the session ran
    present = next((key for key in (id, recorded) if key and turns.find_id(connection, key)), None)
    same = present or said.find(connection, call.session, one.key, SOURCE)
    if same:
        stored[id] = same
        return KNOWN
    if recorded is not None or said.was_deleted(connection, call.session, vectors.text_hash(one.turn.content)):
        return DELETED
    if _is_kept_once(one):
        same = turns.find_equal_memory(connection, number, one.key, core.clock())
        same = same or turns.find_equal_turn(connection, number, one.key)
        if same:
            stored[id] = same
            return observing.DUPLICATE
    stored[id] = id
    return TAKEN


def _is_kept_once(one: PlannedTurn) -> bool:
    """Return whether a turn is left out if its text is stored already; answers and questions may repeat."""
    return not (one.asked or ends_with_question(one.turn.content))


def _make_row(core: Core, call: Backfill, number: int, one: PlannedTurn, stored: dict[str, str]) -> Row:
    turn = one.turn
    at = core.clock() if turn.created_at is None else turn.created_at
    kept = StoredTurn(
        key=str(turn.id),
        namespace=number,
        session=call.session,
        role=turn.role,
        importance=one.importance,
        source=SOURCE,
        created_at=at,
        answers=stored.get(one.answers or ""),
        content_hash=one.key,
        content=turn.content,
        speaker=turn.speaker,
        files="\n".join(turn.files),
    )
    return turns.to_memory(kept, L2, one.neighbours, core.config.lifetime.days)


def _count(done: Backfilled, outcome: str) -> None:
    if outcome == TAKEN:
        done.taken += 1
    elif outcome == KNOWN:
        done.known += 1
    else:
        done.left_out[outcome] = done.left_out.get(outcome, 0) + 1
