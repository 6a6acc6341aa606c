"""Extract facts from conversations with a language model, and store them as memories.

A fact is compared with all memories of its namespace. If one says the same, an access to it is counted and the fact is
dropped; a memory that it contradicts is linked. A fact names its turns, which stay, in its metadata (`turns`). A run is
one operation, which `undo` takes back.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Metadata, NewMemory
from memoryd.daemon.agreement.statements import find_contradiction, is_same
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_content, content_hash
from memoryd.daemon.language.talk import is_turn
from memoryd.daemon.llm.provider import Fact
from memoryd.daemon.memories import adding
from memoryd.daemon.memories.duplicates import AddTarget, Embedded, Verdict
from memoryd.daemon.store import history, queries, rows, turns
from memoryd.daemon.store.caller import USER
from memoryd.daemon.store.extraction import Conversation, QueuedTurn
from memoryd.daemon.store.filters import Filter, select_living
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.writer import Transaction

KIND = "extract"
SOURCE = queries.EXTRACTION
_NEIGHBOURS = 8
MIN_CONFIDENCE = 0.7  # facts below it are dropped
_MAX_CHARS = 1_000  # of a fact

Finish = Callable[[Transaction, Sequence[QueuedTurn]], None]


class ComparedFact(NamedTuple):
    """A fact with its vector, the ids of memories that say the same, and of those that contradict it."""

    fact: Fact
    embedded: Embedded
    same: list[str]
    against: list[str]


def extract(core: Core, key: Conversation, said: Sequence[QueuedTurn]) -> Finish:
    """Extract the facts of turns; return the function that writes them. Errors of the language model propagate."""
    provider = core.cognition.provider
    facts = provider.extract([(one.role, one.content) for one in said])
    place = core.store.namespaces.name(key.namespace)
    kept = [fact for fact in facts if is_worth_keeping(core, fact)]
    vectors = core.embedding.embed_texts([fact.text for fact in kept])
    compared = [
        _compare(core, key, fact, vector, core.recalls.find_repeated(place, key.session, fact.text))
        for fact, vector in zip(kept, vectors, strict=True)
    ]

    def finish(transaction: Transaction, there: Sequence[QueuedTurn]) -> None:
        _Run(core, transaction, key, provider.name).write(compared, said, there)

    return finish


def is_worth_keeping(core: Core, fact: Fact) -> bool:
    """Return whether a fact is valid content, certain enough and not too long."""
    try:
        check_content(fact.text)
    except (Invalid, UnicodeError):
        return False
    return len(fact.text) <= _MAX_CHARS and fact.confidence >= MIN_CONFIDENCE


def _compare(core: Core, key: Conversation, fact: Fact, embedded: Embedded, origins: Sequence[str]) -> ComparedFact:
    """Find the memories that a fact repeats (`origins`: those its session was given) and those that it contradicts."""
    if origins or embedded is None:
        return ComparedFact(fact, embedded, list(origins), [])
    generation, vector = embedded
    floors = generation.embedder.floors
    mask = core.arrays.columns.build_mask(
        Filter(reached=frozenset([key.namespace]), words={"tier": [L1, L2]}), core.clock()
    )
    nearest = generation.index.find_nearest(vector, _NEIGHBOURS, mask)
    near = nearest.rows[nearest.similarities > floors.join - 0.01].tolist()
    if not near:
        return ComparedFact(fact, embedded, [], [])
    with core.store.reading() as connection:
        numbers, matrix = generation.read_exact(connection, near)
        cosines = dict(zip(numbers, (matrix @ vector).tolist(), strict=True))
        others = [row for row in rows.read_rows(connection, numbers).values() if row.type != turns.TYPE]
    others = [row for row in others if cosines[row.row] >= floors.join]
    same = [row.id for row in others if cosines[row.row] >= floors.duplicate and is_same(row.content, fact.text)]
    against = [row.id for row in others if not is_turn(row) and find_contradiction(row.content, fact.text)]
    return ComparedFact(fact, embedded, same, against)


class _Run:
    """One run in the writer's transaction. Its operation is created with the first fact that is inserted."""

    def __init__(self, core: Core, transaction: Transaction, key: Conversation, by: str) -> None:
        self._core, self._transaction, self._key, self._by = core, transaction, key, by
        self._place = AddTarget(core.store.namespaces.name(key.namespace), key.namespace, "TRUE", True, None, USER)
        self._operation: str | None = None
        self._inserted: list[tuple[Row, ComparedFact]] = []

    def write(self, facts: Sequence[ComparedFact], said: Sequence[QueuedTurn], remaining: Sequence[QueuedTurn]) -> None:
        """Insert the new facts, except those of turns that were deleted meanwhile."""
        remaining_ids = {turn.id for turn in remaining}
        known = 0
        for one in facts:
            sources = [said[index] for index in one.fact.turns]
            if not sources or any(source.id not in remaining_ids for source in sources):
                continue
            if self._is_known(one):
                known += 1
            else:
                self._insert(one, sources)
        turns.count(self._transaction.connection, self._key.namespace, "facts: kept", len(self._inserted))
        turns.count(self._transaction.connection, self._key.namespace, "facts: known", known)

    def _is_known(self, compared: ComparedFact) -> bool:
        """Return whether a memory or an earlier fact of this run says the same; count an access to such memories."""
        connection, now = self._transaction.connection, self._core.clock()
        equal = queries.find_equal(connection, self._key.namespace, content_hash(compared.fact.text), now)
        same = [row for row in equal if row.type != turns.TYPE] or select_living(
            connection, rows.read_ids(connection, compared.same).values(), now
        )
        rows.count_accesses(connection, [(row.row, 1, now) for row in same])
        return bool(same) or any(_is_same(other, compared) for _, other in self._inserted)

    def _insert(self, compared: ComparedFact, sources: Sequence[QueuedTurn]) -> None:
        fact, connection = compared.fact, self._transaction.connection
        about: Metadata = {"turns": [source.key for source in sources], "confidence": fact.confidence, "by": self._by}
        memory = NewMemory(
            content=fact.text,
            type=fact.type,
            source=SOURCE,
            origin="heard",
            importance=fact.confidence,
            created_at=max(source.created_at for source in sources),
            metadata={**about, **({"session": self._key.session} if self._key.session else {})},
        )
        row = adding.new_row(self._core, self._place, memory, content_hash(fact.text))
        row.expires_at = rows.compute_expiry(self._core.config.lifetime.days, SOURCE, row.created_at)
        against = list(rows.read_ids(connection, compared.against).values())
        against += [other_row for other_row, other in self._inserted if _is_contradiction(other, compared)]
        verdict = Verdict(None, None, against)
        kind, now = f"{history.JOB}{KIND}", self._core.clock()
        self._operation = self._operation or history.begin(connection, kind, self._place.name, now)
        adding.insert(self._core, self._transaction, self._place, row, verdict, compared.embedded, self._operation)
        self._inserted.append((row, compared))


def _cosine(one: Embedded, other: Embedded) -> float:
    return float(np.dot(one[1], other[1])) if one and other and one[0] is other[0] else 0.0


def _is_same(one: ComparedFact, other: ComparedFact) -> bool:
    """Return whether two facts of the same run say the same."""
    floor = other.embedded[0].embedder.floors.duplicate if other.embedded else 1.0
    near = _cosine(one.embedded, other.embedded) >= floor and is_same(one.fact.text, other.fact.text)
    return near or content_hash(one.fact.text) == content_hash(other.fact.text)


def _is_contradiction(one: ComparedFact, other: ComparedFact) -> bool:
    if other.embedded is None:
        return False
    near = _cosine(one.embedded, other.embedded) >= other.embedded[0].embedder.floors.join
    return near and find_contradiction(one.fact.text, other.fact.text) is not None
