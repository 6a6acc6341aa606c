"""Why a memory is not among the hits of a query: ask each filter, each arm and each stage about this one memory."""

from typing import Any

import numpy as np

from memoryd.client.protocol import Why, WhyNot
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.language.tongues import find_language
from memoryd.daemon.registry import handles
from memoryd.daemon.search.candidates import find_nearer_alone
from memoryd.daemon.search.pipeline import retrieve
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import fulltext, namespaces, rows, successors, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import ALIVE, alive_values, compile_filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import build_searched
from memoryd.daemon.store.vectors import Vector
from memoryd.models.catalog import CATALOG


@handles(WhyNot)
def why_not(sources: Sources, call: WhyNot) -> Why:
    """Return the stage that lost the memory and the reason, or its rank if it is a hit."""
    reached = namespaces.condition(sources.store.namespaces.reach(namespaces.check(call.namespace), call.reach))
    with sources.store.reading() as connection:
        row = turns.resolve_row(connection, call.id, reached)
    retrieval, _ = retrieve(sources, call)
    ranks = {candidate.row: rank for rank, candidate in enumerate(retrieval.ranked, start=1)}
    candidate = retrieval.candidates.get(row.row)
    why = Why(id=row.id, found=row.row in ranks, rank=ranks.get(row.row))
    why.last_hit_score = retrieval.ranked[-1].score if retrieval.ranked else None
    if candidate is not None:
        why.similarity, why.similarity_rank = candidate.similarity, candidate.similarity_rank
        why.bm25, why.bm25_rank, why.score = candidate.bm25, candidate.bm25_rank, candidate.score
        why.confidence = candidate.confidence if why.found or candidate.lost_in == "confidence" else None
        why.parts = candidate.parts
        why.stage, why.reason = candidate.lost_in, _explain(retrieval, row, candidate)
        return why
    if row.row < 0:
        why.stage, why.reason = (
            "active",
            "a filter excludes the turn, or no word of the query is in it and others are nearer",
        )
        return why
    with sources.store.reading() as connection:
        why.stage, why.reason = "filter", _find_filter(sources, connection, call, row)
        if not why.reason:
            why.stage, why.reason = "candidates", _explain_no_candidate(sources, connection, retrieval, row, why)
    return why


def _explain(retrieval: Retrieval, row: Row, candidate: Candidate) -> str:
    """Return why a candidate was lost: first what it comes from, a foreign language or nothing in common."""
    generation = retrieval.generation
    similarity = -1.0 if candidate.similarity is None else candidate.similarity
    if generation is None or candidate.bm25 is not None or similarity >= generation.embedder.floors.far:
        return candidate.lost
    read = CATALOG[generation.name].languages if generation.name in CATALOG else ()
    for what, text in (("question", retrieval.call.query), ("text", row.content)):
        language = find_language(text) if read else ""
        if language and language not in read:
            reason = f"the {what} is in {language}, and {generation.name} reads {', '.join(read)}"
            return f"{reason} (`memctl doctor languages`)" + (candidate.lost and f"; {candidate.lost}")
    return candidate.lost and f"neither its words nor its meaning are near; {candidate.lost}"


def _find_filter(sources: Sources, connection: Connection, call: WhyNot, row: Row) -> str:
    """Return which filter leaves the memory out, empty if none does."""
    now = sources.clock()
    if by := successors.read_in_force(connection, [row], now):
        return f"it is superseded by {by[row.row]}"

    def is_met(condition: str, values: tuple[Any, ...] = ()) -> bool:
        return rows.is_true(connection, row.row, condition, values)

    if not is_met(ALIVE, alive_values(now)):
        return "it is expired"
    if not is_met(build_searched()):
        why = f"searches do not look into {row.tier}" if row.searchable else "it is found by its key and in lists only"
        return f"no search returns it: {why}"
    selection = compile_filter(call, sources.store.namespaces)
    if selection.condition and not is_met(selection.condition, selection.values):
        names = ("type", "source", "tier", "metadata", "where", "after", "before", "path_prefix", "ids")
        conditions = [f"{name} = {value}" for name in names if (value := getattr(call, name)) not in (None, [], {})]
        return f"a filter of the query excludes it: {', '.join(conditions)}"
    return ""


def _explain_no_candidate(sources: Sources, connection: Connection, retrieval: Retrieval, row: Row, why: Why) -> str:
    words = _explain_missed_words(sources, retrieval, row, why)
    generation = retrieval.generation
    if generation is None or retrieval.vector is None:
        return f"{words}, and its meaning could not be compared: no model was ready in time"
    why.similarity, why.similarity_rank = _place_by_meaning(connection, generation, retrieval, row, retrieval.vector)
    if why.similarity is None:
        return f"{words}, and its vector is still waiting in the queue"
    return f"{words}, and by meaning it is number {why.similarity_rank} (candidates: {retrieval.depth})"


def _explain_missed_words(sources: Sources, retrieval: Retrieval, row: Row, why: Why) -> str:
    if "fulltext" in retrieval.degraded:
        return "full text could not be searched in time"
    if retrieval.question is not None:
        alone = retrieval.allowed.restrict(np.array([row.row]))
        ranking = fulltext.rank(sources.store.postings, retrieval.question, alone, limit=1)
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
