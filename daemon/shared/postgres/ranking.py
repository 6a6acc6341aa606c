"""Score the candidates of a PostgreSQL server like those of this machine: by meaning and words, with a confidence.

The server counts the rows that contain a word; how often a text contains it is counted here, with our own tokenizer.
The steps that need the arrays in RAM are missing: cues, feedback, and precedence of answers and newer statements.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.client.confidence import word_of
from memoryd.client.protocol import Hit, Search
from memoryd.daemon.arrays.lexical import NO_POSTING, QueryWord, TextQuery, compute_rarity, score
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.language.names import find_names, is_named
from memoryd.daemon.language.tongues import is_telling
from memoryd.daemon.search.confidence import estimate, measure_nearness
from memoryd.daemon.search.fuse import MIN_FULL

Word = tuple[str, str]  # a word of the question, and its stem


class Found(NamedTuple):
    """A valid candidate before it is scored; `stems` are those of its text, in order."""

    hit: Hit
    similarity: float | None
    stems: list[str]


def rank(
    call: Search,
    found: Sequence[Found],
    words: Sequence[Word],
    counted: tuple[int, Sequence[int]],
    generation: Generation | None,
    vector_weight: float,
) -> list[Hit]:
    """Return the hits, best first. `counted`: the rows within reach, and how many of them contain each word."""
    question = _build_question(found, words, counted)
    scores = score(question, [Counter(one.stems) for one in found], [len(one.stems) for one in found])
    full = max([MIN_FULL * question.weight, *scores])
    weight = 0.0 if generation is None else 1.0 if call.mode == "dense" else vector_weight
    telling = [word for word in question.words if is_telling(word.text)] or question.words
    names = find_names(call.query)
    hits = []
    for (hit, similarity, stems), bm25 in zip(found, scores, strict=True):
        floors = generation.embedder.floors if generation else None
        meaning = max(0.0, floors.rescale(similarity)) if floors and similarity is not None else 0.0
        hit.score = weight * meaning + (1 - weight) * (bm25 / full if full else 0.0)
        hit.similarity, hit.bm25 = similarity, bm25 or None
        held, text = set(stems), f"{hit.content}\n{hit.metadata}".casefold()
        weighs = sum(word.rarity for word in telling)
        share = sum(word.rarity for word in telling if word.stem in held) / weighs if weighs else 0.0
        missing = tuple(any(not is_named(name, text) for name in part) for part in names)
        nearness = measure_nearness(floors, similarity) if floors and similarity is not None else None
        hit.confidence = round(estimate(nearness, share, *missing), 4)
        hit.confidence_word = word_of(hit.confidence)
        if _passes(call, hit, weight):
            hits.append(hit)
    return sorted(hits, key=lambda hit: (-hit.score, -hit.created_at))[: call.limit]


def _build_question(found: Sequence[Found], words: Sequence[Word], counted: tuple[int, Sequence[int]]) -> TextQuery:
    total, counts = counted
    asked = [
        QueryWord(text, stem, compute_rarity(total, count), count, NO_POSTING)
        for (text, stem), count in zip(words, counts, strict=True)
    ]
    average = sum(len(one.stems) for one in found) / max(1, len(found))
    return TextQuery(asked, [], average or 1.0, math.fsum(word.rarity for word in asked))


def _passes(call: Search, hit: Hit, weight: float) -> bool:
    """Return whether a hit is above the floors of a call and, in a search by words alone, has a word of the query."""
    options = call.options
    return (
        (bool(weight) or bool(hit.bm25))
        and hit.confidence >= (call.floor or 0.0)
        and hit.score >= (options.min_score or 0.0)
        and (options.min_similarity is None or (hit.similarity or -1.0) >= options.min_similarity)
    )
