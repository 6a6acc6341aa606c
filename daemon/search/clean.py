"""Stage 7: read the rows; the same content once; of two that contradict each other the newer first; then the limit."""

import math

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import rows
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.present import contradictions
from memoryd.daemon.store.tiers import DOCUMENTS

_LEAST_LIMIT = 5  # hits, below which the graph has no right to one of them
_SAME_SCORE = 1e-5  # of the score: equal vectors may differ by the rounding of float32, and decay makes scores small


def clean(retrieval: Retrieval, sources: Sources) -> None:
    """Leave the hits, best first, each with its row."""
    kept: list[Candidate] = []
    seen: set[bytes] = set()
    waiting = list(retrieval.ranked)
    while waiting and len(kept) < retrieval.call.limit:
        part = waiting[: _whole(waiting, retrieval.call.limit + 8)]
        del waiting[: len(part)]
        read(retrieval, part, sources)
        kept += [candidate for candidate in _by_place(part) if _is_new(candidate, seen)]
    retrieval.contradictions = _contradictions(kept, sources, retrieval.chosen.reached)
    _newer_first(kept, retrieval.contradictions)
    _place_sure(retrieval, sources, kept, waiting, seen)
    for candidate in [*kept[retrieval.call.limit :], *waiting]:
        candidate.lost = f"ranked below the limit of {retrieval.call.limit}"
    retrieval.ranked = kept[: retrieval.call.limit]


def _whole(ranked: list[Candidate], count: int) -> int:
    """Return how many candidates to look at so that those of one score are looked at together."""
    while 0 < count < len(ranked) and _tied(ranked[count - 1], ranked[count]):
        count += 1
    return count


def _tied(one: Candidate, other: Candidate) -> bool:
    return math.isclose(one.score, other.score, rel_tol=_SAME_SCORE)


def _by_place(part: list[Candidate]) -> list[Candidate]:
    """Put files of one score in the order of their paths, after memories: not in that of their indexing."""
    runs: list[list[Candidate]] = []
    for candidate in part:
        if runs and _tied(runs[-1][0], candidate):
            runs[-1].append(candidate)
        else:
            runs.append([candidate])
    return [candidate for run in runs for candidate in (sorted(run, key=_place) if len(run) > 1 else run)]


def _place(candidate: Candidate) -> tuple[str, int]:
    row = candidate.record
    return (row.path or "", row.start_line or 0) if row is not None and row.tier == DOCUMENTS else ("", 0)


def read(retrieval: Retrieval, part: list[Candidate], sources: Sources) -> None:
    """Give candidates their rows, unless they have them; those deleted meanwhile get none."""
    missing = [candidate for candidate in part if candidate.record is None]
    stored = [candidate.row for candidate in missing if candidate.row not in retrieval.recent]
    if stored:
        with sources.store.reading() as connection:
            found = rows.by_rows(connection, stored)
    for candidate in missing:
        candidate.record = retrieval.recent.get(candidate.row) or found.get(candidate.row)


def _is_new(candidate: Candidate, seen: set[bytes]) -> bool:
    if candidate.record is None:
        candidate.lost = "deleted meanwhile"
        return False
    if candidate.record.content_hash in seen:
        candidate.lost = "the same content is ranked higher"
        return False
    seen.add(candidate.record.content_hash)
    return True


def _contradictions(kept: list[Candidate], sources: Sources, reached: frozenset[int] | None) -> dict[str, list[str]]:
    with sources.store.reading() as connection:
        ids = [candidate.record.id for candidate in kept if candidate.record]
        return contradictions(connection, ids, condition(reached))


def _place_sure(
    retrieval: Retrieval, sources: Sources, kept: list[Candidate], waiting: list[Candidate], seen: set[bytes]
) -> None:
    """Give what the graph is sure of the last place, if it has none; of a short list it gets none."""
    limit = retrieval.call.limit
    sure = next((candidate for candidate in retrieval.ranked if candidate.sure and not candidate.lost), None)
    if sure is None or sure in kept[:limit] or limit < _LEAST_LIMIT:
        return
    if sure in kept:
        kept.remove(sure)
    else:
        read(retrieval, [sure], sources)
        waiting.remove(sure)
        if not _is_new(sure, seen):
            return
    kept.insert(limit - 1, sure)


def _newer_first(kept: list[Candidate], links: dict[str, list[str]]) -> None:
    """Move each memory that contradicts an older one ranked above it to just before that one."""
    ids = {candidate.record.id: candidate for candidate in kept if candidate.record}
    for here, others in links.items():
        for there in others:
            if there in ids:
                _put_before(kept, newer=ids[here], older=ids[there])


def _put_before(kept: list[Candidate], newer: Candidate, older: Candidate) -> None:
    if _created(newer) > _created(older) and kept.index(newer) > kept.index(older):
        kept.remove(newer)
        kept.insert(kept.index(older), newer)


def _created(candidate: Candidate) -> tuple[float, int]:
    return candidate.record.created_at if candidate.record else 0.0, candidate.row
