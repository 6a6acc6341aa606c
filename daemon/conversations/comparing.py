"""Find the saved memories that a later statement, a turn or an added memory, may change.

Each statement is compared once, in the background, with memories that were saved on purpose before it and are visible
from its namespace: the nearest by vector, compared word by word in `agreement/changes`. Likely and merely possible
changes are both recorded, with their probability.

Threads: the extraction worker's. Other threads may call `step`, which does one small batch.
"""

import time
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

_BATCH = 8
_GATHER_S = 0.1  # how long a smaller batch waits for more while clients are served, since each batch is a transaction
_MAX_SAVED = 500  # only the latest saved memories are compared
_NEAREST, _NEAREST_OF_SAVED = 12, 4  # memories whose words are compared with a turn, and with an added memory
_BEFORE = 2  # preceding turns of the session, which say what a turn is about
_MIN_SURE_OF_SAVED = 0.8  # higher for an added memory: two facts of similar form are seldom about the same thing
_MAX_FARTHER = 0.15  # in cosine: how much farther than the first match further memories that a sentence changes may be
_MAX_CHANGED = 3  # memories changed by one sentence


class _Statement(NamedTuple):
    """A turn with the turns just before it, or an added memory, whose role is empty."""

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
        count = len(extraction.read_keys(connection, extraction.COMPARE, _BATCH))
    if not count:
        return False
    if count < _BATCH and core.crowded():
        time.sleep(_GATHER_S)
    with core.store.reading() as connection:
        keys = extraction.read_keys(connection, extraction.COMPARE, _BATCH)
        statements = _read(core, connection, keys)
    pairs = []
    for one in statements:
        core.give_way()
        with core.store.reading() as connection:
            pairs += _find_pairs(core, connection, one)

    def write(transaction: Transaction) -> None:
        later.add(transaction.connection, pairs)
        extraction.remove(transaction.connection, extraction.COMPARE, keys)

    core.store.write(write).result()
    return True


def _read(core: Core, connection: Connection, keys: Sequence[str]) -> list[_Statement]:
    """Return the statements with the given keys."""
    recent = turns.read_keys(connection, keys)
    statements = [_Statement(one.key, one.namespace, one.created_at, one.role, one.content) for one in recent.values()]
    for row in rows.read_ids(connection, [key for key in keys if key not in recent]).values():
        role = str(msgspec.json.decode(row.metadata).get("role", "")) if row.turns else ""
        statements.append(_Statement(row.id, row.namespace, row.created_at, role, row.content))
    said = core.active.list_turns(frozenset(one.namespace for one in recent.values()))[::-1]
    for at, turn in enumerate(recent.values()):  # with the preceding turns of its session
        near = [one for one in said if one.session == turn.session and one.role != "tool" and one.id < turn.id]
        statements[at] = statements[at]._replace(before=tuple(one.content for one in near[-_BEFORE:]))
    return statements


def _find_pairs(core: Core, connection: Connection, one: _Statement) -> list[Pair]:
    """Return the pairs of a statement and the memories that it changes, decided for each of its sentences."""
    reached = core.store.namespaces.reach(core.store.namespaces.name(one.namespace), None)
    # Leave out memories that were added later.
    saved = queries.find_latest(connection, Filter(reached), core.clock(), _MAX_SAVED, until=one.at)
    if not saved:
        return []
    near = _measure(core, connection, [one.text, *one.before[-1:]], saved)
    nearest = sorted(saved, key=lambda row: -near[row])[: _NEAREST if one.role else _NEAREST_OF_SAVED]
    said, least = changes.Said(one.text, one.role, one.before), later.MAYBE if one.role else _MIN_SURE_OF_SAVED
    by_row = {number: row for number, row in rows.read_rows(connection, nearest).items() if _is_before(row, one)}
    found = [
        _Found(number, change, near[number])
        for number in nearest
        if number in by_row and (change := changes.find_change(by_row[number].content, said, near[number], least))
    ]
    pairs = [
        Pair(by_row[each.row].id, one.id, each.change.start, each.change.size, each.change.sure)
        for each in found
        if each in _choose([other for other in found if other.change.start == each.change.start])
    ]
    if not one.role:  # definite contradictions were found when the memory was added
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
    """Keep, of the memories that a sentence seems to change, the most probable one and likely ones about as near."""
    first, *others = sorted(found, key=lambda each: -each.change.sure)
    alike = [each for each in others if each.change.sure >= later.LIKELY and each.near >= first.near - _MAX_FARTHER]
    return [first, *alike][:_MAX_CHANGED]


def _measure(core: Core, connection: Connection, texts: Sequence[str], saved: Sequence[int]) -> dict[int, float]:
    """Return by row the highest cosine between a memory and any of the texts; 0 without a vector."""
    near = dict.fromkeys(saved, 0.0)
    generation = core.embedding.active
    if generation is None:
        return near
    numbers = np.array(saved, np.int64)
    for vector in vectors.find(connection, generation.model, [vectors.text_hash(text) for text in texts]).values():
        for row, cosine in generation.index.compute_similarities(vector, numbers):
            near[row] = max(near[row], cosine)
    return near
