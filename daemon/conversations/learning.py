"""Facts of a conversation become memories; what is known already is evidence, no news. They take a language model.

A fact is compared with all memories of its namespace whatever their type: equal text, or a near one that says the
same, is counted as an access and stays as it is. What it contradicts on its subject is linked. A fact is beside its
turns, which stay, and names them in its metadata (`turns`). One run is one operation: `undo` takes back its facts.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Metadata, NewMemory
from memoryd.daemon.agreement.statements import find_contradiction, is_same
from memoryd.daemon.core.checks import check_content, content_hash
from memoryd.daemon.core.core import Core
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
MIN_CONFIDENCE = 0.7  # of a fact that is kept
_LONGEST = 1_000  # characters; what is longer is no fact

Finish = Callable[[Transaction, Sequence[QueuedTurn]], None]


class News(NamedTuple):
    """A fact with its vector, the ids of memories that say the same, and of those that say otherwise."""

    fact: Fact
    embedded: Embedded
    same: list[str]
    against: list[str]


def extract(core: Core, key: Conversation, said: Sequence[QueuedTurn]) -> Finish:
    """Draw the facts out of turns; return what writes them. Raises what the language model does where it fails."""
    provider = core.cognition.provider
    facts = provider.extract([(one.role, one.content) for one in said])
    place = core.store.namespaces.name(key.namespace)
    worth = [fact for fact in facts if is_worth_keeping(core, fact)]
    origins = {fact.text: core.recalls.find_repeated(place, key.session, fact.text) for fact in worth}
    made = core.embedding.embed_texts([fact.text for fact in worth])
    news = [_compare(core, key, fact, vector, origins[fact.text]) for fact, vector in zip(worth, made, strict=True)]

    def finish(transaction: Transaction, there: Sequence[QueuedTurn]) -> None:
        _Run(core, transaction, key, provider.name).write(news, said, there)

    return finish


def is_worth_keeping(core: Core, fact: Fact) -> bool:
    """Return whether a fact is sure enough and no longer than facts are."""
    try:
        check_content(fact.text)
    except (Invalid, UnicodeError):
        return False
    return len(fact.text) <= _LONGEST and fact.confidence >= MIN_CONFIDENCE


def _compare(core: Core, key: Conversation, fact: Fact, embedded: Embedded, origins: Sequence[str]) -> News:
    """Look for what a fact repeats and what it disagrees with."""
    if origins or embedded is None:
        return News(fact, embedded, list(origins), [])
    generation, vector = embedded
    floors = generation.embedder.floors
    mask = core.arrays.columns.build_mask(
        Filter(reached=frozenset([key.namespace]), words={"tier": [L1, L2]}), core.clock()
    )
    nearest = generation.index.find_nearest(vector, _NEIGHBOURS, mask)
    near = nearest.rows[nearest.similarities > floors.join - 0.01].tolist()
    if not near:
        return News(fact, embedded, [], [])
    with core.store.reading() as connection:
        numbers, matrix = generation.read_exact(connection, near)
        cosines = dict(zip(numbers, (matrix @ vector).tolist(), strict=True))
        others = [row for row in rows.read_rows(connection, numbers).values() if row.type != turns.TYPE]
    others = [row for row in others if cosines[row.row] >= floors.join]
    same = [row.id for row in others if cosines[row.row] >= floors.duplicate and is_same(row.content, fact.text)]
    against = [row.id for row in others if not is_turn(row) and find_contradiction(row.content, fact.text)]
    return News(fact, embedded, same, against)


class _Run:
    """One run in the writer's transaction. The operation begins with the first thing that changes."""

    def __init__(self, core: Core, transaction: Transaction, key: Conversation, by: str) -> None:
        self._core, self._transaction, self._key, self._by = core, transaction, key, by
        self._place = AddTarget(core.store.namespaces.name(key.namespace), key.namespace, "TRUE", True, None, USER)
        self._operation: str | None = None
        self._kept: list[tuple[Row, News]] = []

    def write(self, news: Sequence[News], said: Sequence[QueuedTurn], there: Sequence[QueuedTurn]) -> None:
        """Write what is new; of turns that were deleted meanwhile nothing is kept."""
        left = {one.id for one in there}
        known = 0
        for one in news:
            sources = [said[index] for index in one.fact.turns]
            if not sources or any(source.id not in left for source in sources):
                continue
            if self._is_known(one):
                known += 1
            else:
                self._insert(one, sources)
        count = self._transaction.connection, self._key.namespace
        turns.count(*count, "facts: kept", len(self._kept))
        turns.count(*count, "facts: known", known)

    def _is_known(self, news: News) -> bool:
        connection, passed = self._transaction.connection, self._core.clock()
        equal = queries.find_equal(connection, self._key.namespace, content_hash(news.fact.text), passed)
        same = [row for row in equal if row.type != turns.TYPE] or select_living(
            connection, rows.read_ids(connection, news.same).values(), passed
        )
        rows.count_accesses(connection, [(row.row, 1, self._core.clock()) for row in same])
        return bool(same) or any(_is_same(one, news) for _, one in self._kept)

    def _insert(self, news: News, sources: Sequence[QueuedTurn]) -> None:
        fact, connection = news.fact, self._transaction.connection
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
        against = list(rows.read_ids(connection, news.against).values())
        against += [kept for kept, one in self._kept if _is_contradiction(one, news)]
        verdict = Verdict(None, None, against)
        adding.insert(self._core, self._transaction, self._place, row, verdict, news.embedded, self._begin())
        self._kept.append((row, news))

    def _begin(self) -> str:
        if self._operation is None:
            kind = f"{history.JOB}{KIND}"
            self._operation = history.begin(self._transaction.connection, kind, self._place.name, self._core.clock())
        return self._operation


def _cosine(one: Embedded, other: Embedded) -> float:
    return float(np.dot(one[1], other[1])) if one and other and one[0] is other[0] else 0.0


def _is_same(kept: News, news: News) -> bool:
    """Return whether a fact of the same run says what another one says."""
    floor = news.embedded[0].embedder.floors.duplicate if news.embedded else 1.0
    near = _cosine(kept.embedded, news.embedded) >= floor and is_same(kept.fact.text, news.fact.text)
    return near or content_hash(kept.fact.text) == content_hash(news.fact.text)


def _is_contradiction(kept: News, news: News) -> bool:
    if news.embedded is None:
        return False
    near = _cosine(kept.embedded, news.embedded) >= news.embedded[0].embedder.floors.join
    return near and find_contradiction(kept.fact.text, news.fact.text) is not None
