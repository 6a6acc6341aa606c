"""Stage: rank by the profile: age, access and importance on top of the fused score.

The default leaves the fused score alone, because a factor of age ruins recall; among near-equals the newer goes first.
"""

from itertools import groupby

from memoryd.daemon.search.clean import read
from memoryd.daemon.search.fuse import order
from memoryd.daemon.search.profiles import Facet
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate

NEAR = 0.001


def rank(retrieval: Retrieval, sources: Sources) -> None:
    """Score the candidates as the profile says."""
    if not (retrieval.profile.rows or retrieval.call.half_life_days):
        retrieval.ranked = _newer_first(retrieval, sources)
        return
    read(retrieval, retrieval.ranked, sources)
    for candidate in retrieval.ranked:
        if candidate.record is not None:
            candidate.score = retrieval.profile.rank(_facet(retrieval, candidate))
    retrieval.ranked.sort(key=order)
    _enough_in_l1(retrieval)


def _facet(retrieval: Retrieval, candidate: Candidate) -> Facet:
    assert candidate.record is not None
    return Facet(
        score=candidate.score,
        similarity=max(0.0, candidate.similarity or 0.0),
        row=candidate.record,
        now=retrieval.now,
        half_life_days=retrieval.call.half_life_days,
        by_graph="graph" in candidate.origins,
    )


def _newer_first(retrieval: Retrieval, sources: Sources) -> list[Candidate]:
    """Order each run of near-equal scores by time of creation."""
    created = sources.store.facts.created([candidate.row for candidate in retrieval.ranked])
    when = {candidate.row: at for candidate, at in zip(retrieval.ranked, created, strict=True)}
    when.update({row: turn.created_at for row, turn in retrieval.recent.items()})
    best = 2.0

    def group(candidate: Candidate) -> float:
        nonlocal best
        if candidate.score < best - NEAR:
            best = candidate.score
        return best

    ranked: list[Candidate] = []
    for _, near in groupby(retrieval.ranked, key=group):
        run = list(near)
        ranked += run if len(run) == 1 else sorted(run, key=lambda candidate: -when[candidate.row])
    return ranked


def _enough_in_l1(retrieval: Retrieval) -> None:
    enough = retrieval.profile.enough_in_l1
    tiers = [candidate.record.tier for candidate in retrieval.ranked if candidate.record]
    if enough is None or tiers.count("L1") < enough:
        return
    for candidate in retrieval.ranked:
        if candidate.record and candidate.record.tier == "L2":
            candidate.lost = f"L1 has {enough} hits and more"
    retrieval.ranked = [candidate for candidate in retrieval.ranked if not candidate.lost]
