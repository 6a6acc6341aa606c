"""How a search came to its results, why a memory is missing among them, and what agents asked for lately."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memoryd.client import protocol
from memoryd.client.errors import NotFound
from memoryd.client.memctl.table import count_text, ms_text, text_of, to_one_line
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.web.reports import parts

_HEADS = ("Memory", ">Cosine", ">BM25", ">Score", "Outcome")
_LISTED = 100  # retrievals
_ID = re.compile("[0-9a-f]{4,32}")
_NEAREST = 4  # memories that may be meant by words
_NONE = "No memory is like that. It was not remembered, or it was deleted: see Today, and Tiers for what was skipped."
_L0 = "It is a turn in L0, which is found by itself."


async def read_trace(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return the stages of a kept search with their share of its time, and every candidate."""
    trace = await client.call(protocol.GetTrace(id=query.get("id", ""), reach="all"))
    lost = sum(bool(one.lost) for one in trace.candidates)
    degraded = trace.degraded and parts.badge(f"left out: {', '.join(trace.degraded)}", "warn")
    where = f"{parts.place(trace.namespace)}, reach {trace.reach}"
    title = f"{count_text(len(trace.candidates), 'candidate')}, {lost:,} lost"
    rows = map(_show_candidate, trace.candidates)
    return [
        "div",
        parts.line(f"{ms_text(trace.took_ms)} ms", trace.model or "no model: words only", where, degraded or None),
        parts.section("Stages", *_show_stages(trace)),
        parts.section(title, parts.table("Candidates", _HEADS, rows) if trace.candidates else None),
    ]


def _show_stages(trace: protocol.Trace) -> list[parts.Part]:
    total, start, shown = sum(stage.took_ms for stage in trace.stages) or 1.0, 0.0, list[parts.Part]()
    for stage in trace.stages:
        shown.append(_show_stage(stage, stage.took_ms / total, start))
        start += stage.took_ms / total
    return shown


def _show_stage(stage: protocol.StageTrace, share: float, start: float) -> parts.Part:
    notes = " · ".join(f"{name.replace('_', ' ')}: {text_of(value)}" for name, value in stage.notes.items())
    change = "span.right.change." + ("lost" if stage.entered > stage.left else "dim")
    shown = ["span", stage.name], parts.bar(share, start), ["span.right.dim", f"{ms_text(stage.took_ms)} ms"]
    return ["div.stage", *shown, [change, f"{stage.entered:,} → {stage.left:,}"], notes and ["span.notes.dim", notes]]


def _show_candidate(one: protocol.CandidateTrace) -> list[parts.Part]:
    by = f" by {', '.join(one.origins)}" if one.origins else ""
    return [
        parts.link(one.id, one.preview),
        parts.format_number(one.similarity),
        parts.format_number(one.bm25, 2),
        parts.format_number(one.score),
        ["span.lost" if one.lost else "span", one.lost or "found", ["span.dim", by]],
    ]


async def read_recent(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what agents and programs asked for lately; looks of a person are left out."""
    found = await client.call(
        protocol.Traces(limit=_LISTED, reach="all", kind=["search", "get_context", "get_unasked"])
    )
    shown = [_show_search(one) for one in found if one.touch]
    return ["div.recent", parts.list_items(shown, "Nobody has searched since the daemon started.")]


def _show_search(one: protocol.TraceSummary) -> parts.Part:
    where = parts.place(one.namespace), one.token, one.session and f"session {one.session[:24]}"
    given = ["span" if one.given else "span.lost", f"{count_text(one.given, 'memory')} given"]
    kind = parts.badge(one.kind.replace("get_", ""))
    return [
        "div",
        ["go", f"/search?trace={one.id}", one.query[:200]],
        parts.line(parts.time(one.at), kind, *where, given),
    ]


# Why a memory is missing ---------------------------------------------------------------------------------------------


class MissingSearch(NamedTuple):
    """The search that a memory is missing in."""

    query: str
    limit: int
    namespace: str
    reach: Any


async def read_why(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return the stage that lost the memory `of`, and the others that its words may mean."""
    trace: protocol.Trace | None = None
    if kept := query.get("trace"):
        trace = await client.call(protocol.GetTrace(id=kept, reach="all"))
    hits = await _find_meant(client, query.get("of", "").strip())
    if not hits:
        return ["div.problem", _NONE]
    why = await _explain(client, _read_search(query, trace), hits[0][0])
    memory = await client.call(protocol.Get(id=why.id, touch=False, reach="all"))
    was = next((one.lost for one in trace.candidates if one.id == why.id), "") if trace else ""
    others = [parts.emit(to_one_line(text)[:160], "why", id, "link") for id, text in hits[1:]]
    return [
        "div",
        parts.link(memory.id, memory.content[:400]),
        _show_verdict(why, was),
        _show_numbers(why),
        parts.section("Or do you mean", parts.list_items(others)) if others else None,
    ]


async def _find_meant(client: AsyncClient, wanted: str) -> list[tuple[str, str]]:
    """Return id and text of what an id or words mean, the nearest first."""
    if _ID.fullmatch(wanted):
        return [(wanted, "")]
    found = await client.call(protocol.Explain(query=wanted, limit=_NEAREST, touch=False, reach="all"))
    return [(hit.id, hit.content) for hit in found.hits]


def _read_search(query: Mapping[str, str], trace: protocol.Trace | None) -> MissingSearch:
    """Return the search as it was kept, or as it is asked now."""
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else 10
    if trace:
        return MissingSearch(trace.query, limit, trace.namespace, trace.reach)
    return MissingSearch(query.get("query", ""), limit, query.get("namespace", ""), query.get("reach"))


async def _explain(client: AsyncClient, search: MissingSearch, id: str) -> protocol.Why:
    """Return why, be it that the search does not reach the memory at all."""
    try:
        return await client.call(protocol.WhyNot(id=id, touch=False, **search._asdict()))
    except NotFound:
        memory = await client.call(protocol.Get(id=id, touch=False, reach="all"))
    if memory.tier == "L0":
        return protocol.Why(id=memory.id, found=False, stage="tier", reason=_L0)
    where, seen_from = parts.place(memory.namespace), parts.place(search.namespace)
    reason = f"It is in {where}, and a search from {seen_from} does not see that."
    more = " Shared with a namespace that encloses both, it is found."
    return protocol.Why(id=memory.id, found=False, stage="reach", reason=reason + more)


def _show_verdict(why: protocol.Why, was: str) -> parts.Part:
    then = [["br"], f"In the search as it was: {was}"] if was else []
    if why.found:
        return ["div.verdict", ["b", f"Found, at rank {why.rank}."], *then]
    return ["div.verdict.lost", ["b", f"Lost at: {why.stage}"], ["br"], why.reason, *then]


def _show_numbers(why: protocol.Why) -> parts.Part:
    return parts.facts(
        [
            ("cosine", parts.format_number(why.similarity) + _rank(why.similarity_rank)),
            ("BM25", parts.format_number(why.bm25, 2) + _rank(why.bm25_rank)),
            ("score", parts.format_number(why.score)),
            ("the last result has", parts.format_number(why.last_hit_score)),
        ]
    )


def _rank(rank: int | None) -> str:
    return f", rank {rank:,}" if rank else ""
