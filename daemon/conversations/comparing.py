"""Comparing: which saved memories a turn, or a memory that was just added, changes.

Each is compared once, in the background, with what was saved on purpose before it and is seen from its namespace: the
nearest ones by their vectors, in words by `agreement/changes`. What is not likely, but may be, is noted as well: it is
told as such.

Threads: the extraction worker's. `step` may be called by others; it does one small batch at a time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from memoryd.daemon.agreement import changes
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import extraction, later, links, queries, rows, turns, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.later import Pair
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

_BATCH = 4
_MOST_SAVED = 500  # the latest
_NEAREST, _NEAREST_OF_SAVED = 12, 4  # memories whose words are compared with a turn's, and with a saved memory's
_BEFORE = 2  # turns of the session that say what a turn is about
_LEAST_SURE = 0.8  # of what one saved memory tells of another: two facts of one form are seldom about one thing
_AS_NEAR = 0.15  # other memories that a sentence changes are at most so much farther than the first
_MOST_CHANGED = 3  # by one sentence


class _Statement(NamedTuple):
    """What is compared: a turn, with the turns just before it, or a memory, whose role is empty."""

    id: str
    namespace: int
    at: float
    role: str
    text: str
    before: tuple[str, ...] = ()


class _Found(NamedTuple):
    row: int
    change: changes.Change
    near: float


def step(core: Core) -> bool:
    """Compare one batch of turns and added memories; return whether there were any."""
    if core.embedding.active is None and core.embedding.report_state().state in ("loading", "fetching"):
        return False
    with core.store.reading() as connection:
        keys = extraction.read_keys(connection, extraction.COMPARE, _BATCH)
        if not keys:
            return False
        statements = _read(core, connection, keys)
        pairs = [pair for one in statements for pair in _find_pairs(core, connection, one)]

    def write(transaction: Transaction) -> None:
        later.add(transaction.connection, pairs)
        extraction.remove(transaction.connection, extraction.COMPARE, keys)

    core.store.write(write).result()
    return True


def _read(core: Core, connection: Connection, keys: Sequence[str]) -> list[_Statement]:
    """Return what some keys stand for."""
    recent = turns.read_keys(connection, keys)
    statements = [_Statement(one.key, one.namespace, one.created_at, one.role, one.content) for one in recent.values()]
    for row in rows.read_ids(connection, [key for key in keys if key not in recent]).values():
        role = str(msgspec.json.decode(row.metadata).get("role", "")) if row.turns else ""
        statements.append(_Statement(row.id, row.namespace, row.created_at, role, row.content))
    said = core.active.list_turns(frozenset(one.namespace for one in recent.values()))[::-1]
    return [_place(one, recent[one.id], said) if one.id in recent else one for one in statements]


def _place(one: _Statement, turn: turns.StoredTurn, said: Sequence[turns.StoredTurn]) -> _Statement:
    """Return a turn with what was said before it in its session."""
    before = [other for other in said if other.session == turn.session and other.role != "tool" and other.id < turn.id]
    return one._replace(before=tuple(other.content for other in before[-_BEFORE:]))


def _find_pairs(core: Core, connection: Connection, one: _Statement) -> list[Pair]:
    """Return what a statement changes, the nearest memories of each of its sentences."""
    reached = core.store.namespaces.reach(core.store.namespaces.name(one.namespace), None)
    saved = dict(queries.find_latest(connection, Filter(reached), core.clock(), _MOST_SAVED))
    if not saved:
        return []
    near = _measure(core, connection, [one.text, *one.before[-1:]], list(saved))
    chosen = sorted(saved, key=lambda row: -near[row])[: _NEAREST if one.role else _NEAREST_OF_SAVED]
    said, least = changes.Said(one.text, one.role, one.before), later.MAYBE if one.role else _LEAST_SURE
    found = [
        _Found(row, change, near[row])
        for row in chosen
        if (change := changes.find_change(saved[row], said, near[row], least))
    ]
    by_row = rows.read_rows(connection, [each.row for each in found])
    found = [each for each in found if each.row in by_row and _is_before(by_row[each.row], one)]
    pairs = [
        Pair(by_row[each.row].id, one.id, each.change.start, each.change.size, each.change.sure)
        for each in found
        if each in _choose([other for other in found if other.change.start == each.change.start])
    ]
    if not one.role:  # two statements that surely contradict each other were found when it was added
        known = {pair.memory for pair in pairs}
        against = rows.read_ids(connection, links.find_contradicted(connection, one.id)).values()
        pairs += [
            Pair(row.id, one.id, 0, len(one.text), 1.0)
            for row in against
            if row.id not in known and not row.turns and _is_before(row, one)
        ]
    return pairs


def _is_before(row: Row, one: _Statement) -> bool:
    return row.id != one.id and row.created_at <= one.at


def _choose(found: Sequence[_Found]) -> list[_Found]:
    """Return which of the memories that a sentence seems to change it does: the surest, and what it likely changes."""
    first, *others = sorted(found, key=lambda each: -each.change.sure)
    alike = [each for each in others if each.change.sure >= later.LIKELY and each.near >= first.near - _AS_NEAR]
    return [first, *alike][:_MOST_CHANGED]


def _measure(core: Core, connection: Connection, texts: Sequence[str], saved: Sequence[int]) -> dict[int, float]:
    """Return for each memory the cosine with the nearest of some texts; 0 without a vector."""
    near = dict.fromkeys(saved, 0.0)
    generation = core.embedding.active
    if generation is None:
        return near
    known = vectors.find(connection, generation.model, [vectors.text_hash(text) for text in texts])
    if not known:
        return near
    numbers, matrix = generation.read_exact(connection, saved)
    if numbers:
        cosines = (matrix @ np.stack(list(known.values())).T).max(axis=1)
        near |= dict(zip(numbers, map(float, cosines), strict=True))
    return near
