"""Leaving L0: a turn that matters becomes a memory of L1, another is dropped. Also the job for quiet namespaces.

Whoever takes turns out of L0 calls `leave` in the same transaction as what made them leave. A promoted turn keeps its
key as its id and its time; the turns beside it are its neighbours for full text. What a search brought up is never
promoted: it is a memory already.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memoryd.daemon.core.checks import metadata_text
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.memories.adding import SHORT_CHARS, lifetime
from memoryd.daemon.store import history, rows, turns, vectors
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1
from memoryd.daemon.store.turns import Skip, Turn
from memoryd.daemon.store.writer import Transaction

TYPE = "turn"
UNIMPORTANT, RECALLED, TAKEN = "unimportant", "recall", "its id is taken"
CONDENSE_CHARS = 240  # a shorter memory is its own summary


class Leaving(NamedTuple):
    """A turn that leaves L0: `dropped` says why it is not kept, None when it is."""

    turn: Turn
    dropped: str | None


def judged(core: Core, turn: Turn) -> Leaving:
    """Say where a turn goes when it leaves L0 with its present importance."""
    if turn.source == turns.RECALL:
        return Leaving(turn, RECALLED)
    return Leaving(turn, None if turn.importance >= core.config.tiers.promote_from else UNIMPORTANT)


def leave(core: Core, transaction: Transaction, leaving: Sequence[Turn], operation: int | None = None) -> Counter[str]:
    """Take turns out of L0 and keep those that matter; return how many were promoted and dropped."""
    connection = transaction.connection
    if not leaving:
        return Counter()
    if operation is None:
        place = core.store.namespaces.name(leaving[0].namespace)
        operation = history.begin(connection, f"{history.JOB}promote", place, core.clock())
    taken = rows.by_ids(connection, [turn.key for turn in leaving])
    following = _following(transaction, leaving)
    promoted: list[Row] = []
    dropped: list[Leaving] = []
    for one in (judged(core, turn) for turn in leaving):
        turn = one.turn
        history.record_turn(connection, operation, turn, core.store.namespaces.name(turn.namespace))
        if one.dropped or turn.key in taken:
            dropped.append(one._replace(dropped=one.dropped or TAKEN))
        else:
            promoted.append(_inserted(core, transaction, turn, following.get(turn.key, "")))
    turns.remove(connection, leaving)
    _keep_account(core, transaction, promoted, dropped)
    core.active.follow(transaction, {turn.namespace for turn in leaving})
    return Counter(promoted=len(promoted), dropped=len(dropped))


def _inserted(core: Core, transaction: Transaction, turn: Turn, following: str) -> Row:
    row = Row(
        id=turn.key,
        namespace=turn.namespace,
        type=TYPE,
        source=turn.source,
        tier=L1,
        importance=turn.importance,
        created_at=turn.created_at,
        updated_at=turn.created_at,
        expires_at=lifetime(core, turn.source, turn.created_at),
        turns=1,
        content_hash=turn.content_hash,
        text_hash=vectors.text_hash(turn.content),
        metadata=metadata_text(turns.about(turn)),
        neighbours=neighbours(turn, following),
        content=turn.content,
    )
    row.row = rows.insert(transaction.connection, row)
    return row


def _keep_account(core: Core, transaction: Transaction, promoted: list[Row], dropped: list[Leaving]) -> None:
    connection = transaction.connection
    for row in promoted:
        turns.count(connection, row.namespace, f"gone: {history.JOB}promote")  # balanced by the memory that came
    turns.ask(connection, (row.id for row in promoted if len(row.content) > CONDENSE_CHARS), "condense")
    for turn, reason in dropped:
        turns.count(connection, turn.namespace, f"dropped: {reason}")
    skips = [
        Skip(turn.namespace, turn.session, turn.role, turn.content, _told(turn, reason), turn.created_at)
        for turn, reason in dropped
        if reason != RECALLED
    ]
    if skips:
        turns.skip(connection, skips, core.config.tiers.skipped)
    if promoted:
        numbers = [row.row for row in promoted]
        transaction.after_commit(lambda: core.embedding.refresh(numbers))
        transaction.after_commit(core.cognition.wake.set)


def _told(turn: Turn, reason: str | None) -> str:
    return f"left L0 with importance {turn.importance:.2f}" if reason == UNIMPORTANT else f"left L0: {reason}"


def neighbours(turn: Turn, following: str) -> str:
    """Return the turns before and after a turn for full text: short ones of a short one."""
    if len(turn.content) > SHORT_CHARS:
        return ""
    return "\n".join(text for text in (turn.previous, following) if text and len(text) <= SHORT_CHARS)


def _following(transaction: Transaction, leaving: Sequence[Turn]) -> dict[str, str]:
    """Return for each turn what was said next in its session, as far as that is in L0."""
    found: dict[str, str] = {}
    for namespace in {turn.namespace for turn in leaving}:
        last: dict[str, str] = {}
        for turn in turns.ring(transaction.connection, namespace):
            if turn.source != turns.RECALL:
                if before := last.get(turn.session):
                    found[before] = turn.content
                last[turn.session] = turn.key
    return found


# The job -------------------------------------------------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to empty L0 of the namespaces that were quiet for long."""
    quiet_h = core.config.tiers.quiet_h
    with core.store.reading() as connection:
        quiet = turns.quiet_since(connection, now - quiet_h * 3600)
    yield from steps(core, quiet, f"quiet for {quiet_h:g} h")


def steps(core: Core, namespaces: Iterable[int], why: str) -> Iterator[Step]:
    """Plan to empty L0 of some namespaces, the oldest turns first."""
    for namespace in sorted(namespaces):
        with core.store.reading() as connection:
            ring = turns.ring(connection, namespace)
        for turn in ring:
            dropped = judged(core, turn).dropped
            reason = why if dropped is None else f"{why}; {_told(turn, dropped)}"
            yield Step("drop" if dropped else "promote", turn.key, reason)


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: int) -> Counter[str]:
    """Carry out one slice; a turn that has left meanwhile is skipped."""
    there = turns.by_keys(transaction.connection, [step.target for step in planned])
    leaving = sorted(there.values(), key=lambda turn: turn.id)
    counts = leave(core, transaction, leaving, operation)
    counts["skipped"] += len(planned) - len(leaving)
    return +counts


PROMOTE = Work(plan, apply)
