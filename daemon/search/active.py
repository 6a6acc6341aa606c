"""Stage: search the turns of L0, which are in no index yet, by words and by meaning.

Words are scored with the formula of full text, meaning by the turn's vector once the worker has made it; until then
`degraded` says so. Stems and vectors of turns are cached in RAM, so that a search of some hundred turns costs one
matrix product. Of a long turn the first 100,000 characters are searched by words, and the model's window by meaning;
the rest once it has left L0.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from memoryd.client.protocol import Filtered
from memoryd.daemon.arrays import lexical
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import rows, vectors, where
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.tokenizer import stem_words
from memoryd.daemon.store.turns import TYPE, StoredTurn, describe, to_row
from memoryd.daemon.tiers.active import Text

_READ_CHARS = 100_000
_HASHES = {"content_hash", "text_hash"}


def active(retrieval: Retrieval, sources: Sources) -> None:
    """Add the turns that pass the filters and share a word with the query or are nearest to it."""
    turns = _list_turns(retrieval, sources)
    if not turns:
        return
    with sources.store.reading() as connection:
        turns = select_turns(connection, retrieval.chosen, retrieval.call, turns)
        turns = [turn for turn in turns if turn.key != retrieval.excluded]
        texts = sources.active.read_texts(turns, lambda turn: _read(connection, turn))
        similarities = _compute_similarities(retrieval, connection, texts)
    if retrieval.generation and retrieval.vector is not None and (waiting := similarities.count(None)):
        retrieval.degrade("pending_embeddings")
        retrieval.notes["pending_embeddings"] = waiting
    words: list[float | None] = [None] * len(texts)
    if retrieval.question is not None:
        scores = lexical.score(retrieval.question, [text.stems for text in texts], [text.length for text in texts])
        words = [score or None for score in scores]  # None: it has no word of the query
    for place in _find_best(words, retrieval.depth) | _find_best(similarities, retrieval.wanted):
        turn = turns[place]
        candidate = retrieval.ensure_candidate(-turn.id, L0)
        candidate.similarity, candidate.bm25 = similarities[place], words[place]
        candidate.stems = texts[place].stems
        retrieval.recent[-turn.id] = to_row(turn)
    retrieval.notes.update(turns=len(turns), found=len(retrieval.recent))


def _list_turns(retrieval: Retrieval, sources: Sources) -> list[StoredTurn]:
    """Return the turns of L0, and turns that became memories after the mask of this search was made."""
    there = sources.active.list_turns(retrieval.chosen.reached)
    keys = {turn.key for turn in there}
    turns = [turn for turn in retrieval.turns if turn.key not in keys]
    if not turns:
        return there
    with sources.store.reading() as connection:
        by_id = rows.read_ids(connection, [turn.key for turn in turns])
    unseen = [key for key, row in by_id.items() if not retrieval.allowed.select(np.array([row.row], np.int64))[0]]
    return there + [turn for turn in turns if turn.key in unseen]


def _find_best(scores: Sequence[float | None], count: int) -> set[int]:
    """Return the indexes of the highest scores."""
    pairs = ((score, place) for place, score in enumerate(scores) if score is not None)
    return {place for _, place in heapq.nlargest(count, pairs)}


def select_turns(
    connection: Connection, selection: Filter, call: Filtered[Any], turns: Sequence[StoredTurn]
) -> list[StoredTurn]:
    """Return the turns that pass the filters of a call, which treat a turn as the memory that it would become."""
    rest = [turn for turn in turns if _is_match(selection, call, turn)]
    if selection.where is None:
        return rest
    matching = where.select_matching(connection, selection.where, [_to_object(turn) for turn in rest])
    return [turn for turn in rest if turn.key in matching]


def _to_object(turn: StoredTurn) -> dict[str, Any]:
    row = msgspec.structs.asdict(to_row(turn))
    return {name: row[name] for name in row.keys() - _HASHES} | {
        "metadata": describe(turn),
        "pinned": False,
        "searchable": True,
    }


def _is_match(selection: Filter, call: Filtered[Any], turn: StoredTurn) -> bool:
    fields = {"type": TYPE, "source": turn.source, "tier": L0}
    return (
        all(fields[name] in values for name, values in selection.words.items())
        and (selection.after is None or turn.created_at > selection.after)
        and (selection.before is None or turn.created_at < selection.before)
        and call.path_prefix is None  # a turn has no path
        and (not selection.ids or turn.key.startswith(selection.ids))
    )


def _read(connection: Connection, turn: StoredTurn) -> Text:
    text = " ".join([turn.content[:_READ_CHARS], turn.speaker, *turn.files.splitlines()])
    stems = Counter(stem_words(connection, text))
    return Text(vectors.text_hash(turn.content), stems, stems.total())


def _compute_similarities(retrieval: Retrieval, connection: Connection, texts: Sequence[Text]) -> list[float | None]:
    """Return the cosine of each text with the query, None if its vector is not made yet."""
    generation, vector = retrieval.generation, retrieval.vector
    if generation is None or not isinstance(vector, np.ndarray):
        return [None] * len(texts)
    model = generation.model
    missing = [text.hash for text in texts if text.model != model]
    by_hash = vectors.find(connection, model, missing) if missing else {}
    for text in texts:
        if text.hash in by_hash:
            text.model, text.vector = model, by_hash[text.hash]
    known = [text.vector for text in texts if text.model == model and text.vector is not None]
    cosines = iter((np.stack(known) @ vector).tolist() if known else ())
    return [next(cosines) if text.model == model and text.vector is not None else None for text in texts]
