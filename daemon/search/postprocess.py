"""Stage: build the hits, and pass them through the processors that other distributions install.

A processor is a function `(query, hits) -> hits` registered as an entry point of the group `memoryd.postprocessors`. It
may reorder, drop and change hits. One that fails is skipped, logged and named in `degraded`. Processors run in the
daemon in the order of their names; a slow one makes every search slow.
"""

import logging
from collections.abc import Callable
from functools import cache

from memoryd.client.confidence import word_of
from memoryd.client.protocol import Hit, Memory
from memoryd.daemon.search.related import find_shown
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store.conversion import convert_to, fields_of, give_vectors
from memoryd.daemon.store.rows import Row, fit_reply

GROUP = "memoryd.postprocessors"

Processor = Callable[[str, list[Hit]], list[Hit]]

log = logging.getLogger(__name__)


def postprocess(retrieval: Retrieval, sources: Sources) -> None:
    """Build the hits and pass them through the processors."""
    hits = _build_hits(retrieval, sources)
    for name, process in load_processors():
        try:
            processed = process(retrieval.call.query, list(hits))
            if not isinstance(processed, list) or not all(isinstance(hit, Hit) for hit in processed):
                raise TypeError("it did not return a list of hits")
            hits = processed[: retrieval.call.limit]
        except Exception:
            log.warning("the postprocessor %s failed", name, exc_info=True)
            retrieval.degrade(f"postprocessor {name}")
        retrieval.notes.setdefault("processors", []).append(name)
    if retrieval.call.options.include_vectors and retrieval.generation is not None:
        with sources.store.reading() as connection:
            give_vectors(connection, retrieval.generation.model, hits, [one.record for one in retrieval.ranked])
    retrieval.hits = hits


def _build_hits(retrieval: Retrieval, sources: Sources) -> list[Hit]:
    links = retrieval.contradictions
    pairs = [(candidate, record) for candidate in retrieval.ranked if (record := candidate.record)]
    fitting = len(fit_reply([record for _, record in pairs]))
    hits: list[Hit] = []
    for candidate, record in pairs[:fitting]:
        memory = retrieval.elsewhere.get(record.row)
        if memory is None:
            statement = retrieval.later.get(record.id)
            memory = Memory(**fields_of(record, sources.store.namespaces, links.get(record.id, {}), statement))
        memory.superseded_by = None  # a hit is alive, so its successor has expired or was deleted
        hit = convert_to(
            Hit,
            memory,
            score=candidate.score,
            similarity=candidate.similarity,
            bm25=candidate.bm25,
            confidence=round(candidate.confidence, 4),
            confidence_word=word_of(candidate.confidence),
            newer_than=_find_former(candidate, record),
            related=find_shown(candidate),
        )
        hits.append(hit)
    return hits


def _find_former(candidate: Candidate, record: Row) -> str:
    """Return the id of an older memory that the hit was moved before, or that it replaces; empty if there is none."""
    former = (one.record for one in candidate.formers if one.record is not None)
    return next((row.id for row in former if row.superseded_by or row.created_at < record.created_at), "")


@cache
def load_processors() -> tuple[tuple[str, Processor], ...]:
    """Return the installed processors by name; one that cannot be loaded is logged and left out."""
    from importlib.metadata import entry_points  # takes 10 ms, so not at the daemon's start

    loaded: list[tuple[str, Processor]] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded.append((entry.name, entry.load()))
        except Exception:
            log.warning("the postprocessor %s cannot be loaded", entry.name, exc_info=True)
    return tuple(loaded)
