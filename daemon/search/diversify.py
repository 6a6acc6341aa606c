"""Stage: maximal marginal relevance (Carbonell, Goldstein 1998) with the overlap of words as similarity."""

import re

from memoryd.daemon.search.clean import read
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate

_POOL = 200  # candidates compared with each other
_WORD = re.compile(r"\w+")


def diversify(retrieval: Retrieval, sources: Sources) -> None:
    """Order the best candidates by lambda x score - (1 - lambda) x similarity to those before; 1 changes nothing."""
    weight = retrieval.call.options.mmr_lambda
    if weight >= 1.0:
        return
    pool, rest = retrieval.ranked[:_POOL], retrieval.ranked[_POOL:]
    read(retrieval, pool, sources)
    words = {one.row: frozenset(_WORD.findall(one.record.content.casefold()) if one.record else ()) for one in pool}
    best = max((candidate.score for candidate in pool), default=0.0) or 1.0
    likeness = dict.fromkeys(words, 0.0)
    picks: list[Candidate] = []
    while pool and len(picks) < retrieval.wanted:
        pick = max(pool, key=lambda candidate: weight * candidate.score / best - (1 - weight) * likeness[candidate.row])
        pool.remove(pick)
        picks.append(pick)
        for candidate in pool:
            likeness[candidate.row] = max(likeness[candidate.row], jaccard(words[candidate.row], words[pick.row]))
    retrieval.ranked = picks + pool + rest
    retrieval.notes["lambda"] = weight


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the size of the intersection over that of the union, 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0
