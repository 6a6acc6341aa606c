"""How a search came to its results, why a memory is missing among them, and what agents asked for lately."""

from collections.abc import Mapping
from typing import Any

from memoryd.client import protocol
from memoryd.client.confidence import FLOOR
from memoryd.client.errors import NotFound
from memoryd.client.programs.memctl.explain import (
    ASKED,
    NONE_KEPT,
)
from memoryd.client.programs.memctl.table import count_text, ms_text, text_of, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.transport.aio import AsyncClient

_HEADS = ("Memory", ">Similarity", ">BM25", ">Score", "Outcome")
_LISTED = 100  # retrievals
_TOLD = 10  # results whose reasons are told


async def read_trace(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return how a kept search came to its results: in words first, then, folded, its stages and all candidates."""
    trace = await client.call(protocol.GetTrace(id=query.get("id", ""), reach="all"))
    hits = [one for one in trace.candidates if not one.lost][:_TOLD]
    degraded = trace.degraded and parts.badge(f"left out: {', '.join(trace.degraded)}", "warn")
    where = f"{parts.place(trace.namespace)}, reach {trace.reach}"
    title = f"All candidates: {len(trace.candidates):,}"
    table = parts.table("Candidates", _HEADS, map(_show_candidate, trace.candidates))
    model = parts.line(f"{ms_text(trace.took_ms)} ms", trace.model or "no model", where, degraded or None)
    return [
        "div",
        ["p", describe_search(trace)],
        *(["div.hit.said", parts.link(hit.id, hit.preview), ["p.dim", _describe(hit)]] for hit in hits),
        parts.fold("Stages", model, *_show_stages(trace)),
        parts.fold(title, table) if trace.candidates else None,
    ]


async def read_found(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return in a sentence why a kept search found a memory, or where it lost it."""
    trace = await client.call(protocol.GetTrace(id=query.get("trace", ""), reach="all"))
    candidate = next((one for one in trace.candidates if one.id == query.get("id", "")), None)
    if candidate is None:
        return parts.remark("This search did not come upon it.")
    return ["div.verdict", _describe(candidate)]


def _describe(candidate: protocol.CandidateTrace) -> str:
    sentence = "; ".join([candidate.outcome, *candidate.reasons])
    return f"{sentence[:1].upper()}{sentence[1:]}."


def describe_search(trace: protocol.Trace) -> str:
    """Return in a sentence what was looked for, how, and what came of it."""
    notes = {name: value for stage in trace.stages for name, value in stage.notes.items()}
    words = to_one_line(text_of(notes.get("words", "")))
    ways = [f"by its words ({words})" if words else "", "by its meaning" if notes.get("vectors") else ""]
    how = " and ".join(filter(None, ways)) or "and nothing was there to compare it with"
    hits = [one for one in trace.candidates if not one.lost]
    shown = sum(one.confidence >= FLOOR for one in hits)
    came = f"{count_text(len(trace.candidates), 'memory')} came into question"
    return f"This was looked for {how}. {came}, {len(hits):,} were found, {shown:,} of them shown."


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
        ["span.lost" if one.lost else "span", one.outcome, ["span.dim", by]],
    ]


async def read_recent(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what agents and programs asked for lately; looks of a person are left out."""
    found = await client.call(protocol.Traces(limit=_LISTED, reach="all", kind=ASKED))
    shown = [_show_search(one) for one in found if one.touch]
    return ["div.recent", parts.list_items(shown, NONE_KEPT)]


def _show_search(one: protocol.TraceSummary) -> parts.Part:
    where = parts.place(one.namespace), one.token, one.session and f"session {one.session[:24]}"
    came = "found" if one.kind == "search" else "given"  # how many of those found were likely is not known here
    given = ["span" if one.given else "span.lost", f"{count_text(one.given, 'memory')} {came}"]
    kind = parts.badge(one.kind.replace("get_", ""))
    return [
        "div",
        ["go", f"/search?trace={one.id}", one.query[:200]],
        parts.line(parts.time(one.at), kind, *where, given),
    ]


# Why a memory is missing ---------------------------------------------------------------------------------------------


async def read_why(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return why the memory `of`, an id or words, is missing in a kept search or in one as it is asked now."""
    asked: dict[str, Any] = {name: query[name] for name in ("query", "namespace", "reach") if name in query}
    if kept := query.get("trace"):
        trace = await client.call(protocol.GetTrace(id=kept, reach="all"))
        asked = {"query": trace.query, "namespace": trace.namespace, "reach": trace.reach}
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else 10
    try:
        why = await client.call(protocol.WhyNot(id=query.get("of", ""), limit=limit, touch=False, **asked))
    except NotFound as error:
        return ["div.problem", error.message]
    memory = await client.call(protocol.Get(id=why.id, touch=False, reach="all"))
    others = [parts.emit(one.text, "why", one.id, "link") for one in why.others]
    return [
        "div",
        parts.link(memory.id, memory.content[:400]),
        ["div.verdict" if why.found or why.shown_with else "div.verdict.lost", *(["p", line] for line in why.said)],
        parts.facts(why.figures.items()),
        parts.section("Or do you mean", parts.list_items(others)) if others else None,
    ]
