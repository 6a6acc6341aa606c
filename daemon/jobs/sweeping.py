"""The sweep: what was not used for long moves from L1 to the registry, a question and its answer as one memory.

Recency is `2^(-age / half_life)`, with the age since the last use: creation, change or access. With the half-life of 7
days the line of 0.2 is reached after 7 x log2(5) = 16.25 days. Pinned memories do not decay, so they stay; superseded
ones move as the others do; expired ones wait for `expire` where they are.

A turn of the user and the assistant's turn that answers it become one memory, which keeps the id of the user's turn;
its metadata names both (`turns`). If one of the two is still in use, the other waits for it. One that was superseded or
has expired is no half of a pair: the living one would be hidden with it, or bring it back. What was added moves alone
and unchanged.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.protocol import MAX_CONTENT_BYTES
from memoryd.daemon.conversations.promoting import CONDENSE_CHARS
from memoryd.daemon.core.checks import content_hash, metadata_text
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.store import aging, feedback, history, links, rows, successors, turns, vectors
from memoryd.daemon.store.aging import Leaf
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, TIERS, half_life_days
from memoryd.daemon.store.writer import Transaction

DAY_S = 86400.0


class Move(NamedTuple):
    """What a step needs: the memory and its answer (or None), each with when it was last used as planned."""

    row: int
    used_at: float
    answer: int | None = None
    answer_used_at: float = 0.0


IsCold = Callable[[Leaf], bool]


def recency(age_s: float, half_life_days: float) -> float:
    """Return how fresh something is: 1 when it is used, half after each half-life. The future counts as now."""
    return float(2.0 ** (-max(0.0, age_s) / (half_life_days * DAY_S)))


def cold_age_s(below: float, half_life_days: float) -> float:
    """Return the age from which recency is below a line: the inverse of `recency`."""
    return half_life_days * DAY_S * -math.log2(below) if below > 0 else math.inf


# Planning ------------------------------------------------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to move what is cold."""
    settings = core.config.tiers
    line = now - cold_age_s(settings.cold_below, half_life_days(L1, settings))
    born = now - settings.cold_after_s

    def is_cold(leaf: Leaf) -> bool:
        return leaf.used_at < line and leaf.created_at < born

    def reason(leaf: Leaf) -> str:
        value = recency(now - leaf.used_at, half_life_days(L1, settings))
        return f"not used for {(now - leaf.used_at) / DAY_S:.1f} days, recency {value:.2f}"

    with core.store.reading() as connection:
        yield from steps(connection, now, aging.find_unused(connection, now, line, born), is_cold, reason)


def plan_all(core: Core, now: float, reached: frozenset[int] | None) -> Iterator[Step]:
    """Plan to move everything of L1 in some namespaces, whatever its age."""
    with core.store.reading() as connection:
        leaves = aging.find_recent(connection, now, reached)
        yield from steps(connection, now, leaves, lambda leaf: True, lambda leaf: "asked for")


def steps(
    connection: Connection, now: float, leaving: Iterator[Leaf], is_cold: IsCold, reason: Callable[[Leaf], str]
) -> Iterator[Step]:
    """Plan the moves of memories, questions together with their answers."""
    for leaf in leaving:
        if aging.find_question(connection, now, leaf) is not None:
            continue  # it moves with its question, now or when that is cold too
        answer = aging.find_answer(connection, now, leaf)
        if answer is None:
            yield Step("move", leaf.id, reason(leaf), Move(leaf.row, leaf.used_at))
        elif is_cold(answer):
            data = Move(leaf.row, leaf.used_at, answer.row, answer.used_at)
            yield Step("pair", leaf.id, f"{reason(leaf)}; answered by {answer.id[:8]}", data)


# Applying ------------------------------------------------------------------------------------------------------------


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: int) -> Counter[str]:
    """Run one slice; what was used, pinned or moved since is skipped."""
    counts: Counter[str] = Counter()
    moves: list[Move] = [step.data for step in planned]
    numbers = [number for move in moves for number in (move.row, move.answer) if number is not None]
    present = rows.by_rows(transaction.connection, numbers)
    for move in moves:
        row = _is_unused(present, move.row, move.used_at)
        answer = None if move.answer is None else _is_unused(present, move.answer, move.answer_used_at)
        if row is None or (move.answer is not None and answer is None):
            counts["skipped"] += 1
        elif answer is not None and _can_pair(row, answer, core.clock.passed()):
            _pair(core, transaction, row, answer, operation)
            counts["paired"] += 1
        else:
            for one in (row, *((answer,) if answer else ())):
                _move(core, transaction, one, operation)
                counts["moved"] += 1
    return counts


def _is_unused(present: dict[int, Row], number: int, used_at: float) -> Row | None:
    row = present.get(number)
    if row is None or row.tier != L1 or row.pinned:
        return None
    return row if max(row.updated_at, row.last_accessed_at or 0.0) <= used_at else None


def _move(core: Core, transaction: Transaction, row: Row, operation: int) -> None:
    place = core.store.namespaces.name(row.namespace)
    history.record(transaction.connection, operation, row.id, place, row)
    rows.change(transaction.connection, row.row, {"tier": TIERS[L1].to})


def _can_pair(question: Row, answer: Row, now: float) -> bool:
    """Return whether two turns can be one memory."""
    size = len(question.content.encode()) + len(answer.content.encode())
    together = question.namespace == answer.namespace and size + 32 < MAX_CONTENT_BYTES
    return together and all(
        row.superseded_by is None and (row.expires_at is None or row.expires_at > now) for row in (question, answer)
    )


def _pair(core: Core, transaction: Transaction, question: Row, answer: Row, operation: int) -> None:
    """Make one memory of a question and its answer, in place of the question."""
    connection = transaction.connection
    place = core.store.namespaces.name(question.namespace)
    history.record(connection, operation, question.id, place, question)
    rows.change(connection, question.row, pair_fields(question, answer))
    history.record(connection, operation, answer.id, place, answer)
    links.take_over(connection, answer.id, question.id)
    rows.delete(connection, [answer.row])
    successors.take_over(connection, answer.id, question.id)
    if len(question.content) + len(answer.content) > CONDENSE_CHARS:
        turns.ask(connection, [question.id], "condense")
    transaction.after_commit(lambda: core.embedding.remove_row(answer.row))
    transaction.after_commit(lambda: core.embedding.refresh([question.row]))
    transaction.after_commit(core.cognition.wake.set)


def pair_fields(question: Row, answer: Row) -> dict[str, Any]:
    """Return the columns of the one memory that a question and its answer become."""
    content = f"{rows.ASKED}{question.content}{rows.ANSWERED}{answer.content}"
    count = question.turns + answer.turns
    asked, told = msgspec.json.decode(question.metadata), msgspec.json.decode(answer.metadata)
    metadata = {**told, **asked, "turns": [question.id, answer.id]}
    metadata = {name: value for name, value in metadata.items() if name not in ("role", "answers")}
    accessed = [at for at in (question.last_accessed_at, answer.last_accessed_at) if at is not None]
    expiries = (question.expires_at, answer.expires_at)
    return {
        "tier": TIERS[L1].to,
        "turns": count,
        "content": content,
        "content_hash": content_hash(content),
        "text_hash": vectors.text_hash(rows.embedded_text(content, turns=count)),
        "summary": "",
        "metadata": metadata_text(metadata),
        "neighbours": "",  # the one was the other's
        "feedback": feedback.merged(question.feedback, answer.feedback),
        "importance": max(question.importance, answer.importance),
        "updated_at": max(question.updated_at, answer.updated_at),
        "access_count": question.access_count + answer.access_count,
        "last_accessed_at": max(accessed, default=None),
        "expires_at": None if None in expiries else max(at for at in expiries if at is not None),
    }


SWEEP = Work(plan, apply)
