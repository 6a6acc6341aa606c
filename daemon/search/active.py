"""Stage: the tail of L0. The last turns of the reached namespaces are candidates, verbatim, with tier L0.

They are in no index yet: the words are scored here with the formula that full text uses (BM25, k1 = 1.2, b = 0.75), the
meaning by their vector once the background has made it.
"""

import math
from collections.abc import Iterable

import numpy as np

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import fulltext, vectors
from memoryd.daemon.store.store import Connection
from memoryd.daemon.store.turns import Turn, as_row

TAIL = 5
_K1, _B, _AVERAGE_WORDS = 1.2, 0.75, 30.0


def active(retrieval: Retrieval, sources: Sources) -> None:
    """Add the last turns that the filters leave and that share a word or enough meaning with the query."""
    tail = [turn for turn in sources.active.tail(retrieval.chosen.reached, TAIL) if _passes(retrieval, turn)]
    if not tail:
        return
    with sources.store.reading() as connection:
        wanted = fulltext.stems_of(connection, retrieval.call.query)
        for turn in tail:
            _add(retrieval, sources, connection, turn, wanted)
    retrieval.notes.update(tail=len(tail), found=len(retrieval.recent))


def _passes(retrieval: Retrieval, turn: Turn) -> bool:
    """Apply to a turn what the filters ask of a memory; those on metadata, paths and ids leave no turn."""
    chosen = retrieval.chosen
    fields = {"type": "turn", "source": turn.source, "tier": "L0"}
    return (
        not chosen.further
        and all(fields[name] in wanted for name, wanted in chosen.words.items())
        and (chosen.after is None or turn.created_at > chosen.after)
        and (chosen.before is None or turn.created_at < chosen.before)
    )


def _add(retrieval: Retrieval, sources: Sources, connection: Connection, turn: Turn, wanted: Iterable[str]) -> None:
    generation, vector = retrieval.generation, retrieval.vector
    similarity: float | None = None
    if generation is not None and isinstance(vector, np.ndarray):
        stored = vectors.cached(connection, generation.model, vectors.text_hash(turn.content))
        similarity = None if stored is None else float(stored @ vector)
    floor = generation.embedder.floors.relevant if generation else 1.0
    words = _bm25(retrieval, sources, connection, turn.content, wanted)
    if words == 0.0 and (similarity is None or similarity < floor):
        return
    candidate = retrieval.candidate(-turn.id, "L0")
    candidate.similarity, candidate.bm25 = similarity, words or None
    retrieval.recent[-turn.id] = as_row(turn)


def _bm25(retrieval: Retrieval, sources: Sources, connection: Connection, text: str, wanted: Iterable[str]) -> float:
    words = fulltext.stems_of(connection, text, stop_words=True)
    counted = retrieval.within or sources.store.frequencies
    memories = max(1, retrieval.within.memories if retrieval.within else sources.store.facts.count())
    score = 0.0
    for stem in wanted:
        times = words.count(stem)
        if not times:
            continue
        documents = counted.find(connection, stem) or 0
        rarity = max(1e-6, math.log((memories - documents + 0.5) / (documents + 0.5)))
        score += rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * len(words) / _AVERAGE_WORDS))
    return score
