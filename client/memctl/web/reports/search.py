"""How a search came to its results, and what agents asked for lately."""

from collections.abc import Mapping

from memoryd.client.memctl.table import count_text, ms_text, text_of
from memoryd.client.memctl.web.reports.parts import (
    Part,
    badge,
    bar,
    count_memories,
    format_number,
    line,
    link,
    list_items,
    place,
    section,
    table,
    time,
)
from memoryd.client.protocol import CandidateTrace, GetTrace, StageTrace, Trace, Traces, TraceSummary
from memoryd.client.transport.aio import AsyncClient

_HEADS = ("Memory", ">Cosine", ">BM25", ">Score", "Outcome")
_LISTED = 100  # retrievals


async def read_trace(client: AsyncClient, query: Mapping[str, str]) -> Part:
    """Return the stages of a kept search with their share of its time, and every candidate."""
    trace = await client.call(GetTrace(id=query.get("id", ""), reach="all"))
    lost = sum(bool(one.lost) for one in trace.candidates)
    degraded = trace.degraded and badge(f"left out: {', '.join(trace.degraded)}", "warn")
    where = f"{place(trace.namespace)}, reach {trace.reach}"
    title = f"{count_text(len(trace.candidates), 'candidate')}, {lost:,} lost"
    rows = map(_show_candidate, trace.candidates)
    return [
        "div",
        line(f"{ms_text(trace.took_ms)} ms", trace.model or "no model: words only", where, degraded or None),
        section("Stages", *_show_stages(trace)),
        section(title, table("Candidates", _HEADS, rows) if trace.candidates else None),
    ]


def _show_stages(trace: Trace) -> list[Part]:
    total, start, shown = sum(stage.took_ms for stage in trace.stages) or 1.0, 0.0, list[Part]()
    for stage in trace.stages:
        shown.append(_show_stage(stage, stage.took_ms / total, start))
        start += stage.took_ms / total
    return shown


def _show_stage(stage: StageTrace, share: float, start: float) -> Part:
    notes = " · ".join(f"{name.replace('_', ' ')}: {text_of(value)}" for name, value in stage.notes.items())
    change = "span.right.change." + ("lost" if stage.entered > stage.left else "dim")
    parts = ["span", stage.name], bar(share, start), ["span.right.dim", f"{ms_text(stage.took_ms)} ms"]
    return ["div.stage", *parts, [change, f"{stage.entered:,} → {stage.left:,}"], notes and ["span.notes.dim", notes]]


def _show_candidate(one: CandidateTrace) -> list[Part]:
    by = f" by {', '.join(one.origins)}" if one.origins else ""
    outcome = ["span.lost" if one.lost else "span", one.lost or "found", ["span.dim", by]]
    return [
        link(one.id, one.preview),
        format_number(one.similarity),
        format_number(one.bm25, 2),
        format_number(one.score),
        outcome,
    ]


async def read_recent(client: AsyncClient, query: Mapping[str, str]) -> Part:
    """Return what agents and programs asked for lately; looks of a person are left out."""
    found = await client.call(Traces(limit=_LISTED, reach="all", kind=["search", "get_context"]))
    shown = [_show_search(one) for one in found if one.touch]
    return ["div.recent", list_items(shown, "Nobody has searched since the daemon started.")]


def _show_search(one: TraceSummary) -> Part:
    where = place(one.namespace), one.token, one.session and f"session {one.session[:24]}"
    given = ["span" if one.given else "span.lost", f"{count_memories(one.given)} given"]
    kind = badge(one.kind.replace("get_", ""))
    return ["div", ["go", f"/search?trace={one.id}", one.query[:200]], line(time(one.at), kind, *where, given)]
