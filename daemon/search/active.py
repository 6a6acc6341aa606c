"""Stage: the tail of L0. The last turns of the reached namespaces are candidates, verbatim, with tier L0.

They are in no index yet: the words are scored as full text scores its own, the meaning by their vector once the
background has made it. Of a very long turn the beginning is read; all of it is once it has left L0.
"""

from collections import Counter

import numpy as np

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import fulltext, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.tokenizer import stems_of
from memoryd.daemon.store.turns import Turn, as_row
from memoryd.daemon.tiers.active import Text

TAIL = 5
_READ_CHARS = 100_000


def active(retrieval: Retrieval, sources: Sources) -> None:
    """Add the last turns that the filters leave and that share a word or enough meaning with the query."""
    tail = [turn for turn in sources.active.tail(retrieval.chosen.reached, TAIL) if _passes(retrieval, turn)]
    if not tail:
        return
    with sources.store.reading() as connection:
        for turn in tail:
            _add(retrieval, connection, turn, sources.active.text(turn, lambda turn: _read(connection, turn)))
    retrieval.notes.update(tail=len(tail), found=len(retrieval.recent))


def _passes(retrieval: Retrieval, turn: Turn) -> bool:
    """Apply to a turn what the filters ask of a memory; those on metadata, paths and ids leave no turn."""
    chosen = retrieval.chosen
    fields = {"type": "turn", "source": turn.source, "tier": L0}
    return (
        not chosen.further
        and all(fields[name] in wanted for name, wanted in chosen.words.items())
        and (chosen.after is None or turn.created_at > chosen.after)
        and (chosen.before is None or turn.created_at < chosen.before)
    )


def _read(connection: Connection, turn: Turn) -> Text:
    return Text(vectors.text_hash(turn.content), Counter(stems_of(connection, turn.content[:_READ_CHARS])))


def _add(retrieval: Retrieval, connection: Connection, turn: Turn, text: Text) -> None:
    generation, vector = retrieval.generation, retrieval.vector
    similarity: float | None = None
    if generation is not None and isinstance(vector, np.ndarray):
        stored = vectors.cached(connection, generation.model, text.hash)
        similarity = None if stored is None else float(stored @ vector)
    floor = generation.embedder.floors.relevant if generation else 1.0
    words = fulltext.score(retrieval.question, text.stems) if retrieval.question else 0.0
    if words == 0.0 and (similarity is None or similarity < floor):
        return
    candidate = retrieval.candidate(-turn.id, L0)
    candidate.similarity, candidate.bm25 = similarity, words or None
    retrieval.recent[-turn.id] = as_row(turn)
