"""Stage: read the rows; the same content once; what belongs together as one hit; then the limit.

The hits stay in the order of their scores. Memories that disagree are marked, not moved: the newer one may be about
something else.
"""

import math

from memoryd.daemon.search.related import Shown, complete, links_of
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import rows
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.present import contradictions
from memoryd.daemon.store.tiers import DOCUMENTS

_SAME_SCORE = 1e-5  # of the score: equal vectors may differ by the rounding of float32, and decay makes scores small


def clean(retrieval: Retrieval, sources: Sources) -> None:
    """Leave the hits, best first, each with its row."""
    kept: list[Candidate] = []
    seen: set[tuple[bytes, str | None]] = set()
    shown = Shown()
    waiting = list(retrieval.ranked)
    while waiting and len(kept) < retrieval.call.limit:
        part = waiting[: _count_whole(waiting, retrieval.call.limit + 8)]
        del waiting[: len(part)]
        read(retrieval, part, sources)
        kept += [candidate for candidate in _by_place(part) if _is_new(candidate, seen, shown)]
    for candidate in [*kept[retrieval.call.limit :], *waiting]:
        candidate.lost = f"ranked below the limit of {retrieval.call.limit}"
    retrieval.ranked = kept[: retrieval.call.limit]
    complete(retrieval, sources)
    retrieval.contradictions = _read_contradictions(retrieval.ranked, sources, retrieval.chosen.reached)


def _count_whole(ranked: list[Candidate], count: int) -> int:
    """Return how many candidates to look at so that those of one score are looked at together."""
    while 0 < count < len(ranked) and _is_tied(ranked[count - 1], ranked[count]):
        count += 1
    return count


def _is_tied(one: Candidate, other: Candidate) -> bool:
    return math.isclose(one.score, other.score, rel_tol=_SAME_SCORE)


def _by_place(part: list[Candidate]) -> list[Candidate]:
    """Put files of one score in the order of their paths, after memories: not in that of their indexing."""
    runs: list[list[Candidate]] = []
    for candidate in part:
        if runs and _is_tied(runs[-1][0], candidate):
            runs[-1].append(candidate)
        else:
            runs.append([candidate])
    for run in runs:
        for candidate in run:
            candidate.score = run[0].score
        run.sort(key=_place)
    return [candidate for run in runs for candidate in run]


def _place(candidate: Candidate) -> tuple[str, int]:
    row = candidate.record
    return (row.path or "", row.start_line or 0) if row is not None and row.tier == DOCUMENTS else ("", 0)


def read(retrieval: Retrieval, part: list[Candidate], sources: Sources) -> None:
    """Give candidates their rows, unless they have them; those deleted meanwhile get none."""
    missing = [candidate for candidate in part if candidate.record is None]
    stored = [candidate.row for candidate in missing if candidate.row not in retrieval.recent]
    if stored:
        with sources.store.reading() as connection:
            found = rows.read_rows(connection, stored)
    for candidate in missing:
        candidate.record = retrieval.recent.get(candidate.row) or found.get(candidate.row)


def _is_new(candidate: Candidate, seen: set[tuple[bytes, str | None]], shown: Shown) -> bool:
    row = candidate.record
    if row is None:
        candidate.lost = "deleted meanwhile"
        return False
    links = links_of(row)
    if shown.join(candidate, row, links):
        return False
    key = row.content_hash, links.question  # "No." to one question is not that to another
    if key in seen:
        candidate.lost = "the same content is ranked higher"
        return False
    seen.add(key)
    shown.add(candidate, row, links)
    return True


def _read_contradictions(
    kept: list[Candidate], sources: Sources, reached: frozenset[int] | None
) -> dict[str, list[str]]:
    with sources.store.reading() as connection:
        ids = [candidate.record.id for candidate in kept if candidate.record]
        return contradictions(connection, ids, condition(reached))
