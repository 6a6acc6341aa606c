"""Stage: adjust the fused score by the profile's formula (age, accesses, importance) and by feedback.

The default profile changes the score only by feedback (a factor of 0.85 to 1.15, `store/feedback.py`), because a factor
for age ruins recall. With equal scores the newer row comes first.
"""

from memoryd.daemon.search.clean import read
from memoryd.daemon.search.fuse import order
from memoryd.daemon.search.profiles import Facet
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store.tiers import L1, L2


def rank(retrieval: Retrieval, sources: Sources) -> None:
    """Score the candidates by the profile and by feedback, and sort them."""
    if retrieval.profile.rows or retrieval.call.options.half_life_days:
        _rank_by_profile(retrieval, sources)
    usefulness = sources.arrays.columns.usefulness
    if not usefulness or not retrieval.profile.usefulness:
        return
    rated = [(candidate, factor) for candidate in retrieval.ranked if (factor := usefulness.get(candidate.row))]
    for candidate, factor in rated:
        candidate.usefulness = factor
        candidate.rescore(candidate.score * factor, "feedback")
    if rated:
        retrieval.notes["usefulness"] = len(rated)
        retrieval.ranked.sort(key=order)


def _rank_by_profile(retrieval: Retrieval, sources: Sources) -> None:
    read(retrieval, retrieval.ranked, sources)
    options = retrieval.call.options
    because = "age" if options.profile == "default" else options.profile
    for candidate in retrieval.ranked:
        if candidate.record is not None:
            facet = Facet(
                score=candidate.score,
                similarity=retrieval.rescale(candidate.similarity),
                row=candidate.record,
                now=retrieval.now,
                half_life_days=options.half_life_days,
                by_graph="graph" in candidate.origins,
            )
            candidate.rescore(retrieval.profile.rank(facet), because)
    retrieval.ranked.sort(key=order)
    enough = retrieval.profile.enough_in_l1
    found_in = [candidate.record.tier for candidate in retrieval.ranked if candidate.record]
    if enough is None or found_in.count(L1) < enough:
        return
    for candidate in retrieval.ranked:
        if candidate.record and candidate.record.tier == L2:
            candidate.lost = f"{L1} has {enough} hits and more"
    retrieval.ranked = [candidate for candidate in retrieval.ranked if not candidate.lost]
