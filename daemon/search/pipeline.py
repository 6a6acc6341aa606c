"""The pipeline: `list_stages` lists the stages in order; `run` times each and keeps the trace.

A stage is a function of the retrieval and the sources. To add one: a module with the function, and a line here or in
its room.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.daemon.registry import handles
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.search.active import active
from memoryd.daemon.search.candidates import candidates
from memoryd.daemon.search.clean import clean
from memoryd.daemon.search.confidence import confidence
from memoryd.daemon.search.cues import cues
from memoryd.daemon.search.cut import cut
from memoryd.daemon.search.diversify import diversify
from memoryd.daemon.search.effects import Mark
from memoryd.daemon.search.embed import embed
from memoryd.daemon.search.fuse import fuse
from memoryd.daemon.search.hot import hot
from memoryd.daemon.search.outcomes import build_whole
from memoryd.daemon.search.postprocess import postprocess
from memoryd.daemon.search.profiles import PROFILES
from memoryd.daemon.search.rank import rank
from memoryd.daemon.search.remote import ask, build_answer, remote
from memoryd.daemon.search.replaced import replaced
from memoryd.daemon.search.retrieval import DEPTH_PER_HIT, LEAST_DEPTH, Retrieval, Sources, elapsed_ms
from memoryd.daemon.search.traces import StoredTrace
from memoryd.daemon.store.conversion import convert_to
from memoryd.daemon.store.filters import Filter, compile_filter
from memoryd.daemon.store.namespaces import check

Stage = Callable[[Retrieval, Sources], None]

MAX_QUERY_CHARS = 100_000
_QUERY_SHOWN = 1000  # characters in a list of traces

_KERNEL: tuple[Stage, ...] = (
    embed,
    candidates,
    remote,
    replaced,
    hot,
    active,
    fuse,
    cues,
    cut,
    rank,
    diversify,
    clean,
    confidence,
    postprocess,
)


@cache
def list_stages() -> tuple[Stage, ...]:
    """Return all stages in order: each stage of the kernel, followed by the stages that rooms insert after it."""
    stages = list(_KERNEL)
    for room in list_rooms():
        for name, stage in room.stages.items():
            names = [one.__name__ for one in stages]
            if name not in names:
                raise RuntimeError(f"the stage {stage.__name__} follows {name!r}, and there is no such stage")
            stages.insert(1 + names.index(name), stage)
    return tuple(stages)


@handles(protocol.Search)
def search(sources: Sources, call: protocol.Search) -> protocol.Hits:
    """Return the hits of a search."""
    retrieval, stored = run(sources, call)
    sources.effects.note(_mark(retrieval))
    hits = protocol.Hits(
        hits=retrieval.hits,
        degraded=stored.trace.degraded,
        trace=stored.trace.id,
        took_ms=stored.trace.took_ms,
    )
    if call.explain:
        with sources.store.reading() as connection:
            hits.explanation = build_whole(connection, stored, _list_seen(sources, call))
    return hits


@handles(protocol.FindCandidates)
def find_candidates(sources: Sources, call: protocol.FindCandidates) -> protocol.Candidates:
    """Return what another machine needs to rank the memories here."""
    retrieval = begin(sources, call)
    retrieval.within = retrieval.allowed  # so that nothing is said of the words of other memories
    for stage in (embed, candidates, replaced, fuse):
        stage(retrieval, sources)
    answer = build_answer(retrieval, sources)
    retrieval.ranked = retrieval.ranked[: call.limit]
    sources.effects.note(_mark(retrieval))
    return answer


@handles(protocol.GetTrace)
def trace(sources: Sources, call: protocol.GetTrace) -> protocol.Trace:
    """Return the trace of an earlier search."""
    stored = sources.traces.find(call.id, check(call.namespace), sources.caller.key)
    with sources.store.reading() as connection:
        return build_whole(connection, stored, _list_seen(sources, call))


@handles(protocol.Traces)
def list_traces(sources: Sources, call: protocol.Traces) -> protocol.TraceList:
    """Return the latest searches and contexts."""
    traces = sources.traces.list_latest(check(call.namespace), sources.caller.key, call.kind, call.limit)
    return protocol.TraceList(
        traces=[
            convert_to(protocol.TraceSummary, trace, query=trace.query[:_QUERY_SHOWN], given=len(trace.given))
            for trace in traces
        ]
    )


def _list_seen(sources: Sources, call: protocol.Scoped[Any]) -> frozenset[int] | None:
    """Return the namespaces whose memories may be shown in a trace, which may be older than a change of reach."""
    return sources.store.namespaces.reach(call.namespace, call.reach) if sources.caller.bound else None


def run(sources: Sources, call: protocol.Query[Any]) -> tuple[Retrieval, StoredTrace]:
    """Run a search whose trace is kept; return its final state and the trace."""
    began = time.perf_counter()
    retrieval, stages = retrieve(sources, call)
    return retrieval, keep_trace(sources, retrieval, stages, elapsed_ms(began))


def keep_trace(
    sources: Sources, retrieval: Retrieval, stages: list[protocol.StageTrace], took_ms: float
) -> StoredTrace:
    """Store the trace of a search, without the texts of its candidates, and return it."""
    call, generation = retrieval.call, retrieval.generation
    stored = StoredTrace(
        protocol.Trace(
            id=retrieval.id,
            query=call.query,
            at=retrieval.now,
            namespace=call.namespace,
            reach=call.reach or ("visible" if call.namespace else "all"),
            model=generation.name if generation else None,
            stages=stages,
            candidates=[],
            degraded=retrieval.degraded,
            took_ms=took_ms,
            kind=protocol.method_name(type(call)),
            session=call.session,
            token=sources.caller.name,
            touch=call.touch,
            given=[hit.id for hit in retrieval.hits],
        ),
        [one for one in retrieval.candidates.values() if one.row not in retrieval.elsewhere],
        {number: row for number, row in retrieval.recent.items() if number not in retrieval.elsewhere},
        sources.caller.key,
    )
    sources.traces.keep(stored)
    return stored


def retrieve(
    sources: Sources, call: protocol.Query[Any], is_prompt: bool = False
) -> tuple[Retrieval, list[protocol.StageTrace]]:
    """Run the stages; return the final state and each stage's account. For a prompt no shared root is asked."""
    retrieval = begin(sources, call, is_prompt)
    stages: list[protocol.StageTrace] = []
    for stage in list_stages():
        stages.append(_run_timed(stage, retrieval, sources, entered=stages[-1].left if stages else 0))
    return retrieval, stages


def begin(sources: Sources, call: protocol.Query[Any], is_prompt: bool = False) -> Retrieval:
    """Return the state before the first stage; raise `Invalid` if the query is empty or too long."""
    if not (call.query.strip() or call.options.vector or call.like):
        raise Invalid("The query is empty.")
    if len(call.query) > MAX_QUERY_CHARS:
        raise Invalid(f"The query has {len(call.query)} characters; the limit is {MAX_QUERY_CHARS}.")
    profile = PROFILES[call.options.profile]
    limit = call.offset + call.limit
    asked = ask(sources, call) if isinstance(call, protocol.Search) and not is_prompt else []
    selection, passed = compile_filter(call, sources.store.namespaces), sources.clock()
    turns = sources.active.list_turns(selection.reached)  # before the mask, so that a turn leaving L0 is in one of them
    allowed = sources.arrays.build_mask(sources.store, selection, passed)
    # Word frequencies are computed from the memories within reach; None: from all.
    within = None if selection.reached is None and not sources.caller.bound else allowed
    if within is not None and selection.condition:
        within = sources.arrays.build_mask(sources.store, Filter(selection.reached), passed)
    return Retrieval(
        call=call,
        chosen=selection,
        now=sources.clock(),
        passed=passed,
        allowed=allowed,
        depth=max(LEAST_DEPTH, DEPTH_PER_HIT * limit) if profile.candidates is None else profile.candidates * limit,
        wanted=limit,
        asked=asked,
        is_prompt=is_prompt,
        profile=profile,
        turns=turns,
        within=within,
        deadline=None if call.deadline_ms is None else time.monotonic() + call.deadline_ms / 1000,
    )


def _run_timed(stage: Stage, retrieval: Retrieval, sources: Sources, entered: int) -> protocol.StageTrace:
    """Run one stage; return its time and counts, and mark the candidates that it dropped."""
    name = stage.__name__
    began = time.perf_counter()
    stage(retrieval, sources)
    took_ms = elapsed_ms(began)
    dropped = [candidate for candidate in retrieval.candidates.values() if candidate.lost]
    for candidate in dropped:
        candidate.lost_in = candidate.lost_in or name
    notes, retrieval.notes = retrieval.notes, {}
    alive = len(retrieval.candidates) - len(dropped)
    return protocol.StageTrace(name=name, took_ms=took_ms, entered=entered, left=alive, notes=notes)


def _mark(retrieval: Retrieval) -> Mark:
    """Return the side effects of a search: none without `touch`."""
    call, generation = retrieval.call, retrieval.generation
    floor = generation.embedder.floors.relevant if generation else 1.0
    hits = [candidate for candidate in retrieval.ranked if candidate.row > 0] if call.touch else []
    return Mark(
        namespace=call.namespace,
        session=call.session,
        at=retrieval.now,
        rows=tuple(candidate.row for candidate in hits),
        met=tuple(candidate.row for candidate in hits if (candidate.similarity or 0.0) >= floor),
        accessed=tuple(one.row for one in hits if retrieval.is_relevant(one.similarity, one.bm25)),
    )
