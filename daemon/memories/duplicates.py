"""Find duplicates and contradictions of a memory in the namespace that it is added to.

A memory is a duplicate if its normalised text is equal, or if it is similar and says the same (`statements`). A memory
on the same subject that contradicts it is linked, unless one of the two is a turn, for which the rules are unreliable.
An edited memory is compared again (`relink`).

The decision is made in the writer's transaction. The slow part, scanning the index and comparing texts, is done before
it by `search`, for all memories of the transaction; the transaction reads the memories found again and scans only the
vectors that were indexed since.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Add, AddMany, NewMemory
from memoryd.daemon.agreement.statements import find_contradiction, is_same
from memoryd.daemon.arrays.scan import AlikeQuery
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import content_hash
from memoryd.daemon.embedding.generation import Generation, Stamp
from memoryd.daemon.language.talk import is_talk, is_turn
from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.store import links, queries, rows, vectors
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import ALIVE, alive_values
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, L1, WAITING, build_searched

NEIGHBOURS = 8  # candidates per memory; a text that says the same is among the very nearest
_DEFAULT_TYPE = NewMemory(content="").type
_MARGIN = 0.01  # the index is exact to about 0.001

Embedded = tuple[Generation, vectors.Vector] | None
Comparison = Literal["same", "contradicts", ""]
Comparisons = dict[tuple[str, str], Comparison]  # cached results by (old text, new text)


class AddTarget(NamedTuple):
    """The target of an add: its namespace, the namespaces within reach, how duplicates are judged, and the caller."""

    name: str
    number: int
    visible: str  # SQL condition on the namespaces the caller reaches
    dedup: bool
    threshold: float | None
    caller: Caller
    tier: str = L1


class New(NamedTuple):
    """A memory to add, with its vector and the rows that may be near it.

    `near` are rows of the index (None: not searched yet), `twins` rows added before it in the same transaction.
    """

    memory: NewMemory
    embedded: Embedded
    near: Iterable[int] | None = None
    twins: Iterable[int] = ()


class NearMemory(NamedTuple):
    """A memory on the same subject."""

    row: Row
    similarity: float


class Verdict(NamedTuple):
    """The result for a memory: its duplicate, the highest similarity, the memories it contradicts, the nearest one."""

    same: Row | None
    similarity: float | None
    contradicted: list[Row]
    nearest: Row | None = None


class Batch(NamedTuple):
    """The memories of one transaction, and the results of the search before it.

    `near` has for each memory the rows that may be near it (None: there is an equal text, or it has no vector), `twins`
    the earlier memories of the batch that may, with their cosines. Vectors indexed after `stamp` were not searched.
    """

    memories: Sequence[NewMemory]
    embedded: Sequence[Embedded]
    near: list[list[int] | None]
    twins: list[list[tuple[int, float]]]
    known: Comparisons
    stamp: Stamp


# Before the transaction ----------------------------------------------------------------------------------------------


def search(core: Core, call: Add | AddMany, memories: Sequence[NewMemory], embedded: Sequence[Embedded]) -> Batch:
    """Find the memories near each memory of a call, except those whose text is stored already."""
    batch = Batch(memories, embedded, [None] * len(memories), [[] for _ in memories], {}, (0, 0))
    generation = next((one[0] for one in embedded if one), None)
    if generation is None or not call.dedup:
        return batch
    batch = batch._replace(stamp=generation.take_stamp())  # taken first, so that nothing is missed later
    number = core.store.namespaces.find_number(call.namespace)
    # A namespace that does not exist yet has no rows; no namespace has the number -1.
    place = AddTarget(call.namespace, -1 if number is None else number, "TRUE", True, call.dedup_threshold, USER)
    with core.store.reading() as connection:
        places = [
            at for at, one in enumerate(memories) if embedded[at] and not read_equal(core, connection, place, one)
        ]
        for at, rows_near in _scan(place, batch, places):
            batch.near[at] = rows_near
        _pair(place, batch)
        for at in places:
            _compare(core, connection, place, batch, at)
    return batch


def _scan(
    place: AddTarget, batch: Batch, places: Sequence[int], after: Stamp = (0, 0)
) -> Iterator[tuple[int, list[int]]]:
    """Yield for the given memories the rows of the index near them that were indexed after a stamp."""
    for kind in {batch.memories[at].type for at in places}:
        pairs = [(at, one) for at in places if batch.memories[at].type == kind and (one := batch.embedded[at])]
        generation = pairs[0][1][0]
        like = AlikeQuery(place.number, kind, _subject_floor(generation, place) - _MARGIN, NEIGHBOURS)
        rows_near = generation.find_alike(np.stack([vector for _, (_, vector) in pairs]), like, after)
        yield from ((at, near) for (at, _), near in zip(pairs, rows_near, strict=True))


def _floor(generation: Generation, place: AddTarget) -> float:
    """Return the lowest cosine of texts that may say the same."""
    return generation.embedder.floors.duplicate if place.threshold is None else place.threshold


def _subject_floor(generation: Generation, place: AddTarget) -> float:
    """Return the lowest cosine of texts on the same subject, which are compared."""
    return min(_floor(generation, place), generation.embedder.floors.join)


def _pair(place: AddTarget, batch: Batch) -> None:
    """Set for each memory of a batch the earlier ones of its type that are near it, nearest first."""
    embedded = [(at, one) for at, one in enumerate(batch.embedded) if one]
    matrix = np.stack([vector for _, (_, vector) in embedded])
    floor = _subject_floor(embedded[0][1][0], place) - _MARGIN
    cosines = matrix @ matrix.T
    for later, earlier in np.argwhere(np.tril(cosines > floor, -1)).tolist():
        one, other = embedded[later][0], embedded[earlier][0]
        if batch.memories[one].type == batch.memories[other].type:
            batch.twins[one].append((other, float(cosines[later, earlier])))
    for twins in batch.twins:
        twins.sort(key=lambda twin: -twin[1])
        del twins[NEIGHBOURS:]


def _compare(core: Core, connection: Connection, place: AddTarget, batch: Batch, at: int) -> None:
    """Fill the cache of comparisons for one memory, as far as its neighbours are known before the transaction."""
    memory = batch.memories[at]
    near = _select_near(core, connection, place, New(memory, batch.embedded[at], batch.near[at]))
    texts = [(one.similarity, one.row.content) for one in near]
    texts += [(cosine, batch.memories[twin].content) for twin, cosine in batch.twins[at]]
    for _, text in sorted(texts, reverse=True)[:NEIGHBOURS]:
        if _compare_texts(batch.known, text, memory.content) == "same":
            break


# Within the transaction ----------------------------------------------------------------------------------------------


def find_newer(place: AddTarget, batch: Batch) -> dict[int, list[int]]:
    """Return for the memories of a batch the rows near them that were indexed since the search."""
    places = [at for at, rows_near in enumerate(batch.near) if rows_near is not None]
    return dict(_scan(place, batch, places, batch.stamp))


def judge_each(
    core: Core, connection: Connection, place: AddTarget, batch: Batch, became: Sequence[Row]
) -> Iterator[tuple[New, Verdict]]:
    """Yield the memories of a batch with their verdicts; `became` are the rows of those before, added by the caller."""
    newer = find_newer(place, batch)
    for at, memory in enumerate(batch.memories):
        near = batch.near[at]
        twins = [became[twin].row for twin, _ in batch.twins[at]]
        new = New(memory, batch.embedded[at], None if near is None else [*near, *newer[at]], twins)
        same = find_by_id(connection, place.number, memory)
        yield new, Verdict(same, 1.0, []) if same else judge(core, connection, place, new, batch.known)


def list_superseded(memory: NewMemory) -> tuple[str, ...]:
    """Return the ids, or prefixes of ids, of the memories that a memory supersedes."""
    given = memory.supersedes or ()
    return (given,) if isinstance(given, str) else tuple(given)


def find_by_id(connection: Connection, namespace: int | None, memory: NewMemory) -> Row | None:
    """Return the stored memory with the given id; raise `Conflict` if its text or namespace differs."""
    if memory.id is None:
        return None
    row = rows.read_ids(connection, [memory.id]).get(memory.id)
    expected = (content_hash(memory.content), namespace)
    if row is not None and ((row.content_hash, row.namespace) != expected or row.tier == DOCUMENTS):
        raise Conflict(f"The id {memory.id} belongs to another memory.", {"id": memory.id})
    return row


def judge(core: Core, connection: Connection, place: AddTarget, new: New, comparisons: Comparisons) -> Verdict:
    """Compare a memory with equal and near ones in its namespace."""
    if not place.dedup:
        return Verdict(None, None, [])
    if same := read_equal(core, connection, place, new.memory):
        return Verdict(same, 1.0, [])
    if new.embedded is None:
        return Verdict(None, None, [])
    near, floor = _select_near(core, connection, place, new), _floor(new.embedded[0], place)
    contradicted = []
    is_said = is_talk(new.memory.type, new.memory.metadata, new.memory.content)
    for one in near:
        outcome = _compare_texts(comparisons, one.row.content, new.memory.content)
        if outcome == "same" and one.similarity >= floor and one.row.tier != WAITING:
            return Verdict(one.row, one.similarity, [])
        if outcome == "contradicts" and not is_said and not is_turn(one.row):
            contradicted.append(one.row)
    similarity = near[0].similarity if near and near[0].similarity >= floor else None
    nearest = next((one.row for one in near if not is_turn(one.row)), None)
    return Verdict(None, similarity, contradicted, nearest)


def read_equal(core: Core, connection: Connection, place: AddTarget, memory: NewMemory) -> Row | None:
    """Return the memory of the namespace with the same normalised text and type.

    If the new memory supersedes another one and gives no type, an equal memory of any type counts.
    """
    key, now = content_hash(memory.content), core.clock()
    equal = queries.find_equal(connection, place.number, key, now, memory.type)
    same = [row for row in equal if row.tier != WAITING]  # a memory that waits for a shared root is not merged into
    if not same and memory.supersedes is not None and memory.type == _DEFAULT_TYPE:
        others = queries.find_equal(connection, place.number, key, now)
        others = [row for row in others if row.tier != WAITING]
        same = [row for row in others if not row.turns and not row.id.startswith(list_superseded(memory))]
    return next(iter(same), None)


def _select_near(core: Core, connection: Connection, place: AddTarget, new: New) -> list[NearMemory]:
    """Return the memories of the namespace on the same subject, nearest first."""
    if new.embedded is None:
        return []
    generation, vector = new.embedded
    near = new.near
    if near is None:
        like = AlikeQuery(place.number, new.memory.type, _subject_floor(generation, place) - _MARGIN, NEIGHBOURS)
        [near] = generation.find_alike(vector[None, :], like)
    if not (candidates := sorted({*near, *new.twins})):
        return []
    condition = f"{ALIVE} AND {build_searched()}"
    alive = alive_values(core.clock())
    exact = cosines(vectors.read_exact(connection, generation.model, candidates, condition, alive), vector)
    subject = _subject_floor(generation, place)
    stored_rows = rows.read_rows(connection, [number for number, cosine in exact.items() if cosine >= subject])
    alike = [
        NearMemory(row, exact[row.row])
        for row in stored_rows.values()
        if (row.namespace, row.type) == (place.number, new.memory.type) and row.tier != DOCUMENTS and row.key is None
    ]
    return sorted(alike, key=lambda one: -one.similarity)[:NEIGHBOURS]


def _compare_texts(comparisons: Comparisons, old: str, new: str) -> Comparison:
    """Return whether two texts say the same, contradict each other, or neither; cached."""
    if (old, new) not in comparisons:
        comparisons[old, new] = "same" if is_same(old, new) else "contradicts" if find_contradiction(old, new) else ""
    return comparisons[old, new]


# After an edit -------------------------------------------------------------------------------------------------------


def find_near(row: Row, embedded: Embedded) -> list[int]:
    """Return the rows that may be about the same subject as a memory once it has the text of a vector."""
    if embedded is None or row.tier == DOCUMENTS or row.key is not None:
        return []
    generation, vector = embedded
    like = AlikeQuery(row.namespace, row.type, generation.embedder.floors.join - _MARGIN, NEIGHBOURS + 1)  # itself too
    return generation.find_alike(vector[None, :], like)[0]


def relink(core: Core, connection: Connection, before: Row, after: Row, near: New) -> None:
    """Update the contradictions of an edited memory: remove links that no longer apply, and add new ones.

    A link that the rules would not have made, such as between two versions of a memory, is kept. A dismissed link stays
    dismissed.
    """
    linked = rows.read_ids(connection, links.find_contradicted(connection, after.id))
    for other in linked.values():
        if is_same(other.content, after.content) or (
            _do_contradict(before, other) and (is_turn(after) or not _do_contradict(after, other))
        ):
            links.remove_contradiction(connection, after.id, other.id)
    if is_turn(after):
        return
    place = AddTarget("", after.namespace, "TRUE", True, None, USER)
    for row in (one.row for one in _select_near(core, connection, place, near)):
        if row.id not in {after.id, *linked} and not is_turn(row) and _do_contradict(row, after):
            newer, older = sorted((after, row), key=lambda one: (one.created_at, one.row), reverse=True)
            links.add(connection, newer.id, older.id, links.CONTRADICTS, core.clock())


def _do_contradict(one: Row, other: Row) -> bool:
    """Return whether two statements contradict each other, whichever is the newer one."""
    return bool(find_contradiction(one.content, other.content) or find_contradiction(other.content, one.content))
