"""Full-text search: memories ranked by BM25 for the words of a query.

Terms are OR-ed: with AND one absent word would empty the result. Stop words are dropped, first-person pronouns kept.

The best memories are found without scoring every memory that has a common word (MaxScore: Turtle, Flood 1995). Scores
are added word by word, from the rarest to the commonest. Once the remaining words cannot lift a memory that has none of
the earlier ones among the best, they are added only to memories that may still be among the best. The words of a query
may have `MAX_POSTINGS` in total: the commonest words beyond that are left out.

BM25 (Robertson, Walker 1994) has the constants of FTS5's own bm25(), k1 = 1.2 and b = 0.75, and gives the same scores.
It is computed here for two reasons. FTS5 weighs a word by how many rows of the whole table have it, which would reveal
to a caller with a limited reach what words the memories of others have. And from arrays it is many times faster.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.positions import find_top
from memoryd.daemon.arrays.postings import UNITS, Counts, Posting, Postings
from memoryd.daemon.store.tokenizer import split_words, stem_words

MAX_TERMS = 64
MAX_POSTINGS = 5_000_000  # scored for one query; the commonest words beyond that are left out
MIN_TERMS = 2  # this many words are scored even beyond `MAX_POSTINGS`
_K1, _B = 1.2, 0.75
_LEAST_RARITY = 1e-6  # for a word that more than half of all memories have
_COMMON = 2_048  # before a word with more postings than this, check whether it can be limited to candidates
_SEARCH_COST = 32  # a binary search for one position costs as much as a scan of this many
_ROUNDING = 1.0001  # allows for the rounding of float32 scores
Scores = NDArray[np.float32]


class QueryWord(NamedTuple):
    """A word of a query, and the posting of its stem; `documents` memories within reach have it."""

    text: str
    stem: str
    rarity: float  # inverse document frequency
    documents: int
    posting: Posting


class TextQuery(NamedTuple):
    """The words of a query, the rarest first, those left out as too common, and the average length of a memory.

    `weight` is the sum of the words' rarities, `documents` the number of memories within reach.
    """

    words: list[QueryWord]
    left_out: list[str]
    average: float
    weight: float
    documents: int = 0

    @property
    def asked(self) -> list[str]:
        """The words that some memory has."""
        return [word.text for word in self.words if word.documents]


def ask(
    connection: apsw.Connection,
    postings: Postings,
    text: str,
    reached: Mask | None = None,
) -> TextQuery:
    """Return the query of a text, with rarities among all memories or only among those of a mask."""
    documents, average = postings.measure_corpus(reached)
    counted = []
    for word in split_words(connection, text)[:MAX_TERMS]:
        for stem in stem_words(connection, word)[:1]:
            counted.append((_count_documents(connection, postings, stem, reached), word, stem))
    query_words: list[QueryWord] = []
    cost = matching = 0
    for number, word, stem in sorted(counted):
        cost, matching = cost + number, matching + bool(number)
        if matching > MIN_TERMS and cost > MAX_POSTINGS:
            break
        posting = postings.find(connection, stem)
        holding = len(posting.places) if reached is None else number
        query_words.append(QueryWord(word, stem, compute_rarity(documents, holding), holding, posting))
    texts = {word.text for word in query_words}
    weight = sum(word.rarity for word in query_words)
    left_out = [word for _, word, _ in counted if word not in texts]
    return TextQuery(query_words, left_out, average, weight, documents)


def widen(question: TextQuery, documents: int, average: float, holding: Mapping[str, int]) -> TextQuery:
    """Return a query with its rarities among more memories, of which `holding` have a stem."""
    total = question.documents + documents
    words = []
    for word in question.words:
        number = word.documents + holding.get(word.stem, 0)
        words.append(word._replace(documents=number, rarity=compute_rarity(total, number)))
    words.sort(key=lambda word: word.documents)
    average = (question.average * question.documents + average * documents) / max(1, total)
    return TextQuery(words, question.left_out, max(1.0, average), sum(word.rarity for word in words), total)


def rank(postings: Postings, question: TextQuery, allowed: Mask, limit: int) -> list[tuple[int, float]]:
    """Return (row, BM25) of the best `limit` memories that a mask allows, best first."""
    words = sorted(question.words, key=lambda word: -word.rarity)
    bounds = [_compute_bound(word, question.average) for word in words]
    rest = [sum(bounds[at:]) * _ROUNDING for at in range(len(words) + 1)]
    total = np.zeros(len(allowed.allowed), np.float32)
    hits: list[NDArray[np.int32]] = []
    least = 0.0  # the lowest score among the best so far
    at = 0
    while at < len(words) and rest[at] >= least:
        hits.append(_add(postings, words[at], question.average, total, allowed))
        at += 1
        if at < len(words) and len(words[at].posting.places) > _COMMON:
            least = _find_least(total, hits, limit)
    places = np.concatenate(hits) if hits else np.zeros(0, np.int32)
    for number, word in enumerate(words[at:], start=at):
        places = np.sort(places[total[places] + rest[number] >= least])
        _add_to(postings, word, question.average, total, places)
    best = places[find_top(total[places], limit)]
    best = best[np.lexsort((best, -total[best]))]
    return list(zip(allowed.positions.read_rows(best).tolist(), total[best].tolist(), strict=True))


def _add(postings: Postings, word: QueryWord, average: float, total: Scores, allowed: Mask) -> NDArray[np.int32]:
    """Add a word's scores to the totals of allowed memories; return the positions whose total was zero before."""
    inside = allowed.select_at(word.posting.places)
    places, counts = word.posting.places[inside], word.posting.counts[inside]
    new: NDArray[np.int32] = places[total[places] == 0]
    total[places] += _compute_scores(postings, word, average, places, counts)
    return new


def _add_to(postings: Postings, word: QueryWord, average: float, total: Scores, places: NDArray[np.int32]) -> None:
    """Add a word's scores to the totals of some positions, which are in ascending order."""
    all_places = word.posting.places
    if len(places) * _SEARCH_COST > len(all_places):
        inside = np.zeros(len(total), np.bool_)
        inside[places] = True
        at = np.flatnonzero(inside[np.minimum(all_places, len(inside) - 1)])
    else:
        at = np.minimum(np.searchsorted(all_places, places), len(all_places) - 1)
        at = at[all_places[at] == places]
    places = all_places[at]
    total[places] += _compute_scores(postings, word, average, places, word.posting.counts[at])


def _compute_scores(
    postings: Postings, word: QueryWord, average: float, places: NDArray[np.int32], counts: Counts
) -> Scores:
    lengths = postings.read_lengths(places)
    scores: Scores = np.float32(word.rarity) * _saturate(counts * np.float32(1 / UNITS), lengths, average)
    return scores


def _compute_bound(word: QueryWord, average: float) -> float:
    """Return an upper bound of all memories' scores for a word."""
    shortest = word.posting.shortest
    return word.rarity * max((_saturate(count / UNITS, size, average) for count, size in shortest.items()), default=0.0)


def _find_least(total: Scores, hits: list[NDArray[np.int32]], limit: int) -> float:
    scores = total[np.concatenate(hits)]
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit]) if len(scores) >= limit else 0.0


def score(question: TextQuery, texts: Sequence[Mapping[str, float]], lengths: Sequence[float]) -> list[float]:
    """Return the BM25 of texts that are not indexed, given the counts of their stems and their lengths in words."""
    total, sizes = np.zeros(len(texts)), np.array(lengths, np.float64)
    for word in question.words:
        times = np.array([stems.get(word.stem, 0) for stems in texts], np.float64)
        total += word.rarity * _saturate(times, sizes, question.average)
    scores: list[float] = total.tolist()
    return scores


def _count_documents(connection: apsw.Connection, postings: Postings, stem: str, reached: Mask | None) -> int:
    if reached is None:
        return postings.count_documents(connection, stem)
    return int(np.count_nonzero(reached.select_at(postings.find(connection, stem).places)))


def compute_rarity(documents: int, holding: int) -> float:
    """Return the inverse document frequency of a word that `holding` of the documents have."""
    return max(_LEAST_RARITY, math.log((max(documents, holding) - holding + 0.5) / (holding + 0.5)))


def _saturate(counts: Any, lengths: Any, average: float) -> Any:
    return counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B / average * lengths))
