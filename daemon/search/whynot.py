"""Explain why a memory is not among the hits of a query, by checking each filter, arm and stage for it."""

import re
from typing import Any

import msgspec
import numpy as np

from memoryd.client.confidence import FLOOR
from memoryd.client.errors import Invalid, NotFound
from memoryd.client.protocol import Meant, Search, Why, WhyNot
from memoryd.client.times import iso
from memoryd.daemon.arrays import lexical
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.language.tongues import count_languages
from memoryd.daemon.registry import handles
from memoryd.daemon.search.active import select_turns
from memoryd.daemon.search.candidates import find_nearer_alone
from memoryd.daemon.search.clean import read
from memoryd.daemon.search.confidence import explain_confidence, rate
from memoryd.daemon.search.outcomes import describe_why, format_figures
from memoryd.daemon.search.pipeline import retrieve
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import history, namespaces, queries, rows, successors, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import ALIVE, alive_values, build_contained, compile_filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import build_searched
from memoryd.daemon.store.vectors import Vector
from memoryd.models.catalog import CATALOG

_NO_FILTERS: dict[str, Any] = {
    "type": [],
    "source": [],
    "tier": [],
    "where": {},
    "after": None,
    "before": None,
    "path_prefix": None,
}
_SHOWN = 200  # characters of a condition
_ID = re.compile("[0-9a-fA-F]{4,32}")
_WORD = re.compile(r"\w+")
_NEAREST = 4  # memories that match the given words
_SHOWN_CHARS = 160  # of each of them
_WORDS_CHARS = 1000  # of the given words that are searched for


@handles(WhyNot)
def why_not(sources: Sources, call: WhyNot) -> Why:
    """Return the stage that dropped the memory and the reason, or its rank if it is a hit."""
    if not call.id.strip():
        raise Invalid("Say which memory is missing: give its id, or words of it.")
    row, others, words = _find_rows(sources, call)
    place = sources.store.namespaces.name(row.namespace)
    reached = sources.store.namespaces.reach(namespaces.check(call.namespace), call.reach)
    if reached is None or row.namespace in reached:
        why = _find_reason(sources, call, row, place)
    else:
        is_usual = call.reach is None or (call.namespace and call.reach == "visible")
        origin = (call.namespace or "/") + ("" if is_usual else f" with the reach {call.reach}")
        seen = f"it is in {place or '/'}, which is not seen from {origin}"
        why = Why(
            id=row.id, found=False, namespace=place, stage="reach", reason=f"{seen}; the reach `all` sees all there is"
        )
    if "[secret: " in row.content:
        why.reason = "; ".join(filter(None, [why.reason, "a secret was taken out of its text before it was stored"]))
    why.others = [Meant(id=other.id, text=_shorten(other)) for other in others]
    why.said, why.figures = [*words, *describe_why(why)], {} if why.stage == "reach" else format_figures(why)
    return why


def _find_reason(sources: Sources, call: WhyNot, row: Row, place: str) -> Why:
    retrieval, _ = retrieve(sources, call)
    ranks = {candidate.row: rank for rank, candidate in enumerate(retrieval.ranked, start=1)}
    candidate = retrieval.candidates.get(row.row)
    why = Why(id=row.id, found=row.row in ranks, rank=ranks.get(row.row), namespace=place)
    if retrieval.ranked:
        last = retrieval.ranked[-1]
        why.last_hit_score, why.last_hit_confidence = last.score, last.confidence
    if candidate is not None:
        why.similarity, why.bm25, why.score = candidate.similarity, candidate.bm25, candidate.score
        why.similarity_rank = _rank_among_all(retrieval, "similarity", candidate.similarity, candidate.similarity_rank)
        why.bm25_rank = _rank_among_all(retrieval, "bm25", candidate.bm25, candidate.bm25_rank)
        why.parts = candidate.parts
        why.stage, why.shown_with = candidate.lost_in, candidate.shown_with
        # If it is shown with another one, its distance does not matter; causes come first.
        reasons = [_explain_distance(retrieval, row, candidate), *_explain_rank(retrieval, candidate)]
        why.reason = candidate.lost if why.shown_with else "; ".join(filter(None, reasons))
        if not why.shown_with:
            _add_confidence(sources, retrieval, candidate, why)
        return why
    with sources.store.reading() as connection:
        why.stage, why.reason = "filter", _explain_filters(sources, connection, call, row)
        if why.reason:
            return why
        if row.row > 0:
            why.stage, why.reason = "candidates", _explain_no_candidate(sources, connection, retrieval, row, why)
        else:
            why.stage = "active"
            why.reason = "other turns in L0 are nearer to the query, by their words and their meaning"
    return why


def _rank_among_all(retrieval: Retrieval, name: str, value: float | None, rank: int | None) -> int | None:
    """Convert the rank of a memory among memories into its rank among memories and turns of L0."""
    if rank is None or value is None:
        return rank
    turns = (getattr(one, name) for row, one in retrieval.candidates.items() if row < 0)
    return rank + len([other for other in turns if other is not None and other > value])


def _find_rows(sources: Sources, call: WhyNot) -> tuple[Row, list[Row], list[str]]:
    """Return the memory or turn that the call names, others that match its words, and how it was chosen.

    Raise `NotFound` if there is none, with the operation that deleted it, if one did. A caller with a token
    learns nothing about memories out of its reach.
    """
    place, spaces = namespaces.check(call.namespace), sources.store.namespaces
    reached = spaces.reach(place, call.reach) if sources.caller.bound else None
    unknown: NotFound | None = None
    if _ID.fullmatch(call.id):
        try:
            with sources.store.reading() as connection:
                return history.find_row(connection, call.id, reached, tells_gone=not sources.caller.bound), [], []
        except NotFound as error:
            if "operation" in error.data:
                raise
            where = f"that is seen from {place or '/'} " if sources.caller.bound else ""
            gone = "" if sources.caller.bound else " It may have been erased, or its file was changed."
            unknown = NotFound(f"No memory {where}has an id that begins with {call.id}.{gone}", error.data)
    having, near = _find_like(sources, call, reached)
    if not having and not unknown:
        with sources.store.reading() as connection:
            if deleted := history.find_deleted(connection, call.id, reached):
                history.find_row(connection, deleted, reached, tells_gone=True)  # raises an error that explains it
    matching = having if unknown else [*having, *near]
    if not matching:
        raise unknown or NotFound(
            f"No memory is like {call.id!r}. It was not kept, or it is gone: `memctl history --kind delete"
            " --kind job:expire` lists what was deleted, `memctl tiers --turns` what was said last."
        )
    first, *others = matching
    how = "has these words" if first in having else "is the nearest; no memory has all of these words"
    return first, others, [f"{first.id[:8]} {how}: {_shorten(first)}"]


def _find_like(sources: Sources, call: WhyNot, reached: frozenset[int] | None) -> tuple[list[Row], list[Row]]:
    """Return the memories in any state that contain all words, and others that are near."""
    reach = call.reach if sources.caller.bound else "all"
    near = Search(query=call.id, limit=_NEAREST, floor=FLOOR, touch=False, namespace=call.namespace, reach=reach)
    found = {one.record.id: one.record for one in retrieve(sources, near)[0].ranked if one.record}
    contained, values = build_contained(call.id[:_WORDS_CHARS])
    order = queries.Order("created", ascending=False, limit=_NEAREST, offset=0)
    with sources.store.reading() as connection:
        listed, _ = queries.find_page(connection, (f"{namespaces.condition(reached)} AND {contained}", values), order)
    words = set(_WORD.findall(call.id.casefold()))
    turns_too = [row for row in found.values() if words <= set(_WORD.findall(row.content.casefold()))]
    having = {row.id: row for row in (*turns_too, *listed)}
    return list(having.values())[:_NEAREST], [row for id, row in found.items() if id not in having]


def _shorten(row: Row) -> str:
    return " ".join(row.content[: 2 * _SHOWN_CHARS].split())[:_SHOWN_CHARS]


def _add_confidence(sources: Sources, retrieval: Retrieval, candidate: Candidate, why: Why) -> None:
    """Set the confidence of a hit, or of a candidate below the limit, and the explanation of it."""
    if candidate.lost_in == "clean":
        read(retrieval, [candidate], sources)
        if candidate.record is not None:
            rate(retrieval, [candidate])
    if candidate.record is not None and (why.found or candidate.lost_in in ("clean", "confidence")):
        why.confidence, why.confidence_reason = candidate.confidence, explain_confidence(retrieval, candidate)


def _explain_rank(retrieval: Retrieval, candidate: Candidate) -> list[str]:
    """Return what lowered the rank of a candidate, and the reason why it was dropped."""
    if not candidate.lost:
        return []
    reasons = []
    if "age" in candidate.parts:
        days = f"{retrieval.call.options.half_life_days:g}"
        reasons.append(f"every {days} days halve the score (half_life_days), which takes {-candidate.parts['age']:.3f}")
    for other in retrieval.ranked:
        if other.record and candidate.record and any(one is candidate for one in other.formers):
            disagrees = candidate.record.id in retrieval.contradictions.get(other.record.id, {})
            says = "disagrees with it" if disagrees else "tells what became of it"
            age = "newer" if other.record.created_at >= candidate.record.created_at else "older, which is asked for"
            reasons.append(f"{other.record.id[:8]} {says}, is {age}, and stands before it")
    return [*reasons, candidate.lost]


def _explain_distance(retrieval: Retrieval, row: Row, candidate: Candidate) -> str:
    """Return why a candidate is far from the query by words and meaning; empty if it is not."""
    generation = retrieval.generation
    similarity = -1.0 if candidate.similarity is None else candidate.similarity
    if generation is None or candidate.bm25 is not None or similarity >= generation.embedder.floors.far:
        return ""
    read = CATALOG[generation.name].languages if generation.name in CATALOG else ()
    for what, text in (("question", retrieval.call.query), ("text", row.content)):
        if read and not count_languages([text]).keys() <= set(read):
            # The language is not named: related languages share their function words.
            reason = f"the {what} seems not to be in a language that {generation.name} reads ({', '.join(read)})"
            return f"{reason}; `memctl model list` names others"
    return "neither its words nor its meaning are near" if candidate.lost else ""


def _explain_filters(sources: Sources, connection: Connection, call: WhyNot, row: Row) -> str:
    """Return why a memory or turn is excluded from every search, or by the filters of this one; empty if it is not."""
    if row.row > 0 and (reason := _explain_state(connection, row, sources.clock())):
        return reason
    turn = turns.read_keys(connection, [row.id]).get(row.id) if row.row < 0 else None

    def passes(single_filter: WhyNot) -> bool:
        selection = compile_filter(single_filter, sources.store.namespaces)
        if row.row < 0:  # a turn that has become a memory meanwhile was not excluded by a filter
            return turn is None or bool(select_turns(connection, selection, single_filter, [turn]))
        return not selection.condition or rows.is_true(connection, row.row, selection.condition, selection.values)

    given = {name: getattr(call, name) for name in _NO_FILTERS if getattr(call, name) not in (None, [], {})}
    reasons = [
        _describe_filter(row, name, value)
        for name, value in given.items()
        if not passes(msgspec.structs.replace(call, **_NO_FILTERS | {name: value}))
    ]
    return f"a filter of the query excludes it: {'; '.join(reasons)}" if reasons else ""


def _explain_state(connection: Connection, row: Row, now: float) -> str:
    """Return why no search returns a memory, whatever its filters; empty if one may."""
    if by := successors.read_in_force(connection, [row], now):
        return f"it is superseded by {by[row.row]}"
    if not rows.is_true(connection, row.row, ALIVE, alive_values(now)):
        return f"it is expired since {iso(row.expires_at)}" if row.expires_at else "it is expired"
    if not rows.is_true(connection, row.row, build_searched()):
        why = f"searches do not look into {row.tier}" if row.searchable else "it is found by its key and in lists only"
        return f"no search returns it: {why}"
    return ""


def _describe_filter(row: Row, name: str, value: Any) -> str:
    """Describe why a memory does not pass a filter."""
    match name:
        case "type" | "source" | "tier":
            return f"its {name} is {getattr(row, name)}, not {' or '.join(value)}"
        case "after" | "before":
            return f"it was created {iso(row.created_at)}, not {name} {iso(value)}"
        case "path_prefix":
            return f"it is from no file below {value}"
        case _:
            return f"its fields do not meet {msgspec.json.encode(value).decode()[:_SHOWN]} ({name})"


def _explain_no_candidate(sources: Sources, connection: Connection, retrieval: Retrieval, row: Row, why: Why) -> str:
    words = _explain_missed_words(sources, retrieval, row, why)
    if retrieval.call.mode == "lexical":
        return f"{words}, and the mode `lexical` does not compare meanings"
    generation = retrieval.generation
    if generation is None or retrieval.vector is None:
        return f"{words}, and its meaning could not be compared: no model was ready in time"
    why.similarity, rank = _place_by_meaning(connection, generation, retrieval, row, retrieval.vector)
    why.similarity_rank = _rank_among_all(retrieval, "similarity", why.similarity, rank)
    if why.similarity is None:
        return f"{words}, and its vector is still waiting in the queue"
    return f"{words}, and by meaning it is number {why.similarity_rank} (candidates: {retrieval.depth})"


def _explain_missed_words(sources: Sources, retrieval: Retrieval, row: Row, why: Why) -> str:
    if "fulltext" in retrieval.degraded:
        return "full text could not be searched in time"
    if retrieval.question is not None:
        if not retrieval.question.words and not retrieval.question.left_out:
            return 'the query has only words like "the", which are not looked for'
        alone = retrieval.allowed.restrict(np.array([row.row]))
        ranking = lexical.rank(sources.arrays.postings, retrieval.question, alone, limit=1)
        why.bm25 = ranking[0][1] if ranking else None
    return (
        "no word of the query is in it" if why.bm25 is None else f"by words it is not among the best {retrieval.depth}"
    )


def _place_by_meaning(
    connection: Connection, generation: Generation, retrieval: Retrieval, row: Row, vector: Vector
) -> tuple[float | None, int | None]:
    numbers, matrix = generation.read_exact(connection, [row.row])
    if not numbers:
        return None, None
    similarity = float(matrix[0] @ vector)
    similarity = find_nearer_alone(connection, generation, vector, {row.row: similarity}).get(row.row, similarity)
    everything = generation.index.find_nearest(vector, max(1, len(generation.index)), retrieval.allowed)
    places = np.flatnonzero(everything.rows == row.row)
    return similarity, int(places[0]) + 1 if len(places) else None
