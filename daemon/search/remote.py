"""Stage: the answers of other machines, which were asked when the search began (`ask`).

`merge` combines the two ranked lists by score. A machine that does not answer in time (the deadline, else one second)
or refuses is named in `degraded`.
"""

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as Late

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import Hit, Hits, Search
from memoryd.daemon.search.remotes import WAIT_S, Asked, Remotes
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store.tiers import L3

_MAX_HITS = 1000  # of one answer


def ask(sources: Sources, call: Search) -> list[Asked]:
    """Ask the roots that a search may reach for as many hits as it wants; return the pending answers."""
    remotes: Remotes = sources.state(Remotes)
    # Another place has neither vectors of this model nor the memories of this machine.
    is_for_here = call.like or call.options.vector or (call.tier and L3 not in call.tier)
    if not remotes.all or is_for_here or not call.query.strip():
        return []
    limit = min(_MAX_HITS, call.offset + call.limit)
    options = msgspec.structs.replace(call.options, include_vectors=False)
    search = msgspec.structs.replace(call, limit=limit, offset=0, session="", tier=[], options=options, explain=False)
    within_s = WAIT_S if call.deadline_ms is None else min(WAIT_S, call.deadline_ms / 1000)
    return [Asked(one, one.ask(search, sources.caller, within_s)) for one in remotes.find_covering(search)]


def remote(retrieval: Retrieval, sources: Sources) -> None:
    """Collect the answers that arrive in time."""
    del sources
    give_up_at = retrieval.began + WAIT_S
    if retrieval.deadline is not None:
        give_up_at = min(give_up_at, retrieval.deadline)
    for place, answer in retrieval.asked:
        try:
            hits: Hits = answer.result(max(0.0, give_up_at - time.monotonic()))
        except (MemorydError, Late) as error:
            retrieval.degrade(f"shared:{place.name}")
            retrieval.notes[place.name] = getattr(error, "message", "It did not answer in time.")
        else:
            retrieval.elsewhere += hits.hits
            retrieval.notes[place.name] = len(hits.hits)
            for part in hits.degraded:
                retrieval.degrade(part)


def merge(here: Sequence[Hit], elsewhere: Sequence[Hit], distinct: bool) -> list[Hit]:
    """Merge two ranked lists by score, keeping the order of `here`; with `distinct`, drop repeated texts."""
    known = {hit.content for hit in here} if distinct else set()
    merged: list[Hit] = []
    at = 0
    for hit in sorted(elsewhere, key=lambda one: -one.score):
        if hit.content in known:
            continue
        if distinct:
            known.add(hit.content)
        while at < len(here) and here[at].score >= hit.score:
            merged.append(here[at])
            at += 1
        merged.append(hit)
    return merged + list(here[at:])
