"""Stage: read the rows, drop repeated content, merge linked rows into one hit, and apply the limit.

Hits stay in the order of their scores, except where `precedence` moves them.
"""

import math
from itertools import takewhile

from memoryd.daemon.search.precedence import Precedence, place_versions
from memoryd.daemon.search.related import Shown, complete, links_of
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import later, rows
from memoryd.daemon.store.conversion import read_contradictions
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.tiers import DOCUMENTS, L3

_SAME_SCORE = 1e-5  # relative, since decay makes scores small; equal vectors may differ by rounding


def clean(retrieval: Retrieval, sources: Sources) -> None:
    """Reduce `ranked` to the hits, best first, each with its row."""
    hits: list[Candidate] = []
    limit, seen = retrieval.wanted, Seen(retrieval.call.options.distinct)
    shown, precedence = Shown(), Precedence(retrieval, sources)
    waiting = list(retrieval.ranked)
    while waiting and len(hits) < limit:
        part = waiting[: _count_whole(waiting, limit + 8)]
        read(retrieval, part, sources)
        precedence.settle(part, waiting)
        settled = list(takewhile(precedence.is_settled, waiting))
        del waiting[: len(settled)]
        hits += [candidate for candidate in _by_place(settled) if _is_new(candidate, seen, shown)]
    hits = place_versions(retrieval, sources, [seen.find_newest(candidate) for candidate in hits])
    for candidate in hits[: retrieval.call.offset]:
        candidate.lost = f"ranked above the offset of {retrieval.call.offset}"
    placed = {candidate.row for candidate in hits[:limit]}
    below = [*hits[limit:], *(one for one in waiting if one.row not in placed)]
    for rank, candidate in enumerate(below, start=limit + 1):
        candidate.lost = f"at rank {rank}, below the limit of {limit}"
    retrieval.ranked = hits[retrieval.call.offset : limit]
    complete(retrieval, sources)
    with sources.store.reading() as connection:
        ids = [candidate.record.id for candidate in retrieval.ranked if candidate.record]
        reached = condition(retrieval.chosen.reached)
        retrieval.contradictions = read_contradictions(connection, ids, reached, retrieval.passed)
        retrieval.later = later.read(connection, ids, reached, retrieval.passed)


def _count_whole(ranked: list[Candidate], count: int) -> int:
    """Return `count` or more, so that candidates with the same score are not separated."""
    while 0 < count < len(ranked) and _is_tied(ranked[count - 1], ranked[count]):
        count += 1
    return count


def _is_tied(one: Candidate, other: Candidate) -> bool:
    return math.isclose(one.score, other.score, rel_tol=_SAME_SCORE)


def _by_place(part: list[Candidate]) -> list[Candidate]:
    """Sort candidates with the same score: memories first, then files by path rather than by time of indexing."""
    runs: list[list[Candidate]] = []
    for candidate in part:
        if runs and _is_tied(runs[-1][0], candidate):
            runs[-1].append(candidate)
        else:
            runs.append([candidate])
    for run in runs:
        for candidate in run:
            candidate.score = run[0].score
        run.sort(key=_path_key)
    return [candidate for run in runs for candidate in run]


def _path_key(candidate: Candidate) -> tuple[str, int]:
    row = candidate.record
    return (row.path or "", row.start_line or 0) if row is not None and row.tier == DOCUMENTS else ("", 0)


def read(retrieval: Retrieval, part: list[Candidate], sources: Sources) -> None:
    """Read the missing rows of candidates; deleted candidates remain without a row."""
    missing = [candidate for candidate in part if candidate.record is None]
    numbers = [candidate.row for candidate in missing if candidate.row not in retrieval.recent]
    if numbers:
        with sources.store.reading() as connection:
            by_row = rows.read_rows(connection, numbers)
    for candidate in missing:
        candidate.record = retrieval.recent.get(candidate.row) or by_row.get(candidate.row)


class Seen:
    """The texts of the hits so far. Among candidates with equal text the newest is the hit, with the rank of the best.

    Without `distinct` each candidate is a hit.
    """

    def __init__(self, distinct: bool) -> None:
        self._distinct = distinct
        self._first: dict[tuple[bytes, str | None], Candidate] = {}
        self._newest: dict[int, Candidate] = {}  # by the row of the first

    def is_new(self, candidate: Candidate, row: rows.Row, question: str | None) -> bool:
        """Return whether a candidate is the first with its text; equal answers to different questions are distinct."""
        first = self._first.setdefault((row.content_hash, question), candidate) if self._distinct else candidate
        if first is candidate:
            return True
        former = self.find_newest(first)
        assert first.record is not None
        assert former.record is not None
        # Files keep the order of their paths; nothing of a shared root takes a place from what is here.
        is_newer = row.tier not in (DOCUMENTS, L3) and row.created_at > former.record.created_at
        if is_newer and not first.related:
            former.lost = f"the same content is newer in {row.id[:8]}"
            candidate.rescore(first.score, f"the place of {first.record.id[:8]}")
            self._newest[first.row] = candidate
        else:
            candidate.lost = f"the same content is ranked higher in {former.record.id[:8]}"
        return False

    def find_newest(self, first: Candidate) -> Candidate:
        """Return the newest candidate with the text of `first`."""
        return self._newest.get(first.row, first)


def _is_new(candidate: Candidate, seen: Seen, shown: Shown) -> bool:
    row = candidate.record
    if row is None:
        candidate.lost = "deleted meanwhile"
        return False
    links = links_of(row)
    if shown.join(candidate, row, links):
        return False
    if not seen.is_new(candidate, row, links.question):
        return False
    shown.add(candidate, row, links)
    return True
