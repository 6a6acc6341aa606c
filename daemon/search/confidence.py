"""Stage: the confidence of each hit, the probability that it is relevant, and the call's floor on it.

A logistic regression, fitted with the default model on the five best hits of each question of the development sets and
of questions that nothing answers. Its features: the cosine on the scale of the model (0 at the floor `far`, 1 at
`near`), the share of the question's words in the hit weighted by rarity, and whether an identifier or a proper name of
the question is missing from it. Rows shown with a hit (its question, its answers) count as part of it. A hit that was
moved before an older one, or replaces it, is at least as likely as that one. Function words are ignored, since they are
rare in a small store; the fit was made with them.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.language.names import Names, is_named
from memoryd.daemon.language.tongues import is_telling
from memoryd.daemon.search.precedence import ASKS, SHARES
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store.rows import Row
from memoryd.models import Floors

_NEARNESS = (-0.6, 1.2)  # clipped to this range
# The constant, then the factors of nearness, words held, a missing identifier, a missing proper name.
_BOTH = (-3.64, 1.72, 3.08, -2.38, -1.27)
_WORDS_ALONE = (-3.28, 0.0, 3.53, -2.04, -1.77)


def confidence(retrieval: Retrieval, sources: Sources) -> None:
    """Set the confidence of the hits, and drop those below the floor of the call."""
    del sources
    if not retrieval.ranked:
        return
    every = {id(one): one for head in retrieval.ranked for one in (head, *head.formers)}
    rate(retrieval, list(every.values()))
    floor = retrieval.call.floor or 0.0
    own = {key: one.confidence for key, one in every.items()}
    for candidate in retrieval.ranked:
        candidate.confidence = max(own[id(one)] for one in (candidate, *candidate.formers))
        if candidate.confidence < floor:
            candidate.lost = (
                f"its confidence {candidate.confidence:.3f} is below the floor of {floor:g} that was asked for"
            )
    retrieval.ranked = [candidate for candidate in retrieval.ranked if not candidate.lost]


def rate(retrieval: Retrieval, candidates: Sequence[Candidate]) -> None:
    """Set the confidence of candidates whose rows were read, without regard to their `formers`."""
    names = retrieval.hints.named
    for candidate, share in zip(candidates, _measure_shares(retrieval, candidates), strict=True):
        missing = map(bool, _list_missing(candidate, names))
        candidate.confidence = estimate(_measure_nearness(retrieval, candidate.similarity), share, *missing)
        if ASKS in candidate.cues:
            candidate.confidence *= SHARES[ASKS]


def explain_confidence(retrieval: Retrieval, candidate: Candidate) -> str:
    """Explain the confidence of a hit in words."""
    [share] = _measure_shares(retrieval, [candidate])
    nearness = _measure_nearness(retrieval, candidate.similarity)
    reasons = [f"{share:.0%} of the question's words"]
    if nearness is not None:
        reasons.insert(0, f"meaning {nearness:.2f} (0 is far, 1 is near)")
    if missing := [name for part in _list_missing(candidate, retrieval.hints.named) for name in part]:
        reasons.append(f"not in it: {', '.join(missing)}")
    if ASKS in candidate.cues:
        reasons.append("it only asks")
    if any(one.confidence >= candidate.confidence for one in candidate.formers):
        reasons.append("as sure as the older memory that it stands before")
    return "; ".join(reasons)


def estimate(nearness: float | None, share: float, lacks_identifier: bool, lacks_name: bool) -> float:
    """Return the confidence of a hit from its nearness in meaning and the share of the question's words it contains."""
    factors = _WORDS_ALONE if nearness is None else _BOTH
    measures = (1.0, nearness or 0.0, share, lacks_identifier, lacks_name)
    value = sum(factor * measure for factor, measure in zip(factors, measures, strict=True))
    return 1.0 / (1.0 + math.exp(-value))


def _measure_nearness(retrieval: Retrieval, similarity: float | None) -> float | None:
    """Return a cosine on the scale of its model, None if there was no vector to compare."""
    if similarity is None or retrieval.generation is None:
        return None
    return measure_nearness(retrieval.generation.embedder.floors, similarity)


def measure_nearness(floors: Floors, similarity: float) -> float:
    """Return a cosine on the scale of its model: 0 is far, 1 is near."""
    nearness = (max(0.0, similarity) - floors.far) / (floors.near - floors.far)
    return min(max(nearness, _NEARNESS[0]), _NEARNESS[1])


def _measure_shares(retrieval: Retrieval, rated: Sequence[Candidate]) -> list[float]:
    """Return for each candidate the share of the query's words that it contains, weighted by rarity."""
    words = retrieval.question.words if retrieval.question else []
    parts = [[row.row for row in _list_rows(candidate)] for candidate in rated]
    if not words:
        return [0.0] * len(parts)
    flags = _find_contained(retrieval, [row for part in parts for row in part])
    starts = np.cumsum([0, *map(len, parts[:-1])])
    telling = [is_telling(word.text) for word in words]
    rarities = np.array(
        [word.rarity if counts or not any(telling) else 0.0 for word, counts in zip(words, telling, strict=True)]
    )
    shares: list[float] = (rarities @ np.logical_or.reduceat(flags, starts, axis=1) / rarities.sum()).tolist()
    return shares


def weigh_held(retrieval: Retrieval, rows: Sequence[int], counts: Callable[[str], bool]) -> list[float]:
    """Return for each row the total rarity of the query's words in it for which `counts` is true."""
    words = retrieval.question.words if retrieval.question else []
    if not words or not rows:
        return [0.0] * len(rows)
    rarities = np.array([word.rarity if counts(word.text) else 0.0 for word in words])
    weights: list[float] = (rarities @ _find_contained(retrieval, rows)).tolist()
    return weights


def _find_contained(retrieval: Retrieval, numbers: Sequence[int]) -> NDArray[np.bool_]:
    """Return which of the query's words the rows contain, shape (words, rows)."""
    words = retrieval.question.words if retrieval.question else []
    rows = np.array(numbers, np.int64)
    places = retrieval.allowed.positions.find(rows)
    flags = np.array([word.posting.select_held(places) for word in words])
    for at in np.flatnonzero(rows < 0).tolist():  # turns of L0, which are in no index
        turn = retrieval.candidates.get(int(rows[at]))
        flags[:, at] = [turn is not None and word.stem in turn.stems for word in words]
    return flags


def _list_rows(candidate: Candidate) -> Iterator[Row]:
    if candidate.record is not None:
        yield candidate.record
    yield from candidate.related


def _list_missing(candidate: Candidate, names: Names) -> tuple[list[str], list[str]]:
    """Return the question's identifiers and proper names that the hit does not contain."""
    if not any(names):
        return [], []
    text = "\n".join(f"{row.content}\n{row.metadata}" for row in _list_rows(candidate)).casefold()
    identifiers, proper = ([name for name in part if not is_named(name, text)] for part in names)
    return identifiers, proper
