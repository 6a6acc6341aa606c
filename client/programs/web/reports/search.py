"""How a search came to its results, why a memory is missing among them, and what agents asked for lately."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memoryd.client import protocol
from memoryd.client.confidence import FLOOR, describe_confidence
from memoryd.client.errors import NotFound
from memoryd.client.programs.memctl.explain import (
    ASKED,
    MEANT_CHARS,
    NONE_KEPT,
    confidence_text,
    has_words,
    list_meant,
    meant_calls,
    sum_text,
)
from memoryd.client.programs.memctl.snippet import list_words
from memoryd.client.programs.memctl.table import count_text, ms_text, text_of, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.transport.aio import AsyncClient

_HEADS = ("Memory", ">Similarity", ">BM25", ">Score", "Outcome")
_LISTED = 100  # retrievals
_TOLD = 10  # results whose reasons are told
_WORDS = 8  # of a result that are named
_NEARNESS = ((0.7, "very near"), (0.3, "near"), (-1.0, "a little near"))  # from a cosine on
_WHO = {"user": "the user", "assistant": "the agent", "tool": "a tool"}
_ORIGINS = {
    "hot": "found for a search lately",
    "L0": "said just now",
    "graph": "often found together with the others",
}
_CUES = {
    "speaker": "said by whom you name",
    "subject": "about whom you name",
    "role": "said by the one that the question means",
    "date": "from the time that you name",
    "when": "names a date, and the question asks when",
    "identifier": "has the name or number that you ask for",
    "asks": "a question that nobody answered, which counts less",
    "unknown": "says that it does not know, which counts less",
    "tool": "printed by a tool, or a pasted log, which counts less",
}
_ID = re.compile("[0-9a-f]{4,32}")
_NONE = "No memory is like that. It was not remembered, or it was deleted: see Today, and Tiers for what was skipped."


async def read_trace(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return how a kept search came to its results: in words first, then, folded, its stages and all candidates."""
    trace = await client.call(protocol.GetTrace(id=query.get("id", ""), reach="all"))
    hits = [one for one in trace.candidates if not one.lost][:_TOLD]
    memories = await asyncio.gather(*(_find(client, hit.id) for hit in hits))
    degraded = trace.degraded and parts.badge(f"left out: {', '.join(trace.degraded)}", "warn")
    where = f"{parts.place(trace.namespace)}, reach {trace.reach}"
    title = f"All candidates: {len(trace.candidates):,}"
    table = parts.table("Candidates", _HEADS, map(_show_candidate, trace.candidates))
    model = parts.line(f"{ms_text(trace.took_ms)} ms", trace.model or "no model", where, degraded or None)
    return [
        "div",
        ["p", describe_search(trace)],
        *(_show_reason(trace, *pair) for pair in zip(hits, memories, strict=True)),
        parts.fold("Stages", model, *_show_stages(trace)),
        parts.fold(title, table) if trace.candidates else None,
    ]


async def read_found(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return in a sentence why a kept search found a memory, or where it lost it."""
    trace = await client.call(protocol.GetTrace(id=query.get("trace", ""), reach="all"))
    id = query.get("id", "")
    candidate = next((one for one in trace.candidates if one.id == id), None)
    memory = await _find(client, id)
    if candidate is None or memory is None:
        return parts.remark("This search did not come upon it.")
    return [
        "div.verdict",
        ["b", "Not given: " if candidate.lost or id in trace.left_out else "Found: "],
        *describe_reason(trace, candidate, memory),
    ]


async def _find(client: AsyncClient, id: str) -> protocol.Memory | None:
    try:
        return await client.call(protocol.Get(id=id, touch=False, reach="all"))
    except NotFound:
        return None


def _show_reason(
    trace: protocol.Trace, candidate: protocol.CandidateTrace, memory: protocol.Memory | None
) -> parts.Part:
    reason = describe_reason(trace, candidate, memory) if memory else ["It is gone by now."]
    return ["div.hit.said", parts.link(candidate.id, candidate.preview), ["p.dim", *reason]]


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


def describe_reason(
    trace: protocol.Trace, candidate: protocol.CandidateTrace, memory: protocol.Memory
) -> list[parts.Part]:
    """Return why a memory was found, or how it was lost, in the words of a person."""
    reasons: list[list[parts.Part]] = []
    words = list_words(memory.content, trace.query) if candidate.bm25 is not None else []
    if words:
        quoted = ", ".join(f"“{word}”" for word in words[:_WORDS])
        reasons.append([f"the word {quoted}" if len(words) == 1 else f"these words: {quoted}"])
    if candidate.similarity is not None and "meaning" in candidate.origins:
        near = next(words for least, words in _NEARNESS if candidate.similarity >= least)
        reasons.append([f"{near} in meaning ({candidate.similarity:.2f})"])
    reasons += [[_ORIGINS[name]] for name in candidate.origins if name in _ORIGINS]
    reasons += [[_CUES[name]] for name in candidate.cues if name in _CUES]
    if candidate.usefulness != 1:
        reasons.append([f"rated {'useful' if candidate.usefulness > 1 else 'not useful'} before"])
    reasons.append([_tell_source(memory, candidate), parts.time(memory.created_at)])
    if candidate.lost:
        stage, _, reason = candidate.lost.partition(": ")
        reasons.insert(0, [f"{reason or stage} ({stage})"])
    elif candidate.id in trace.left_out:
        reasons.insert(0, [trace.left_out[candidate.id]])
    else:
        reasons.insert(0, [describe_confidence(candidate.confidence)])
    return [part for number, reason in enumerate(reasons) for part in ("; " if number else "", *reason)] + ["."]


def _tell_source(memory: protocol.Memory, candidate: protocol.CandidateTrace) -> str:
    """Return who brought a memory, up to the time that follows: `said by Ada on `."""
    speaker = memory.metadata.get("speaker") or memory.metadata.get("role")
    if memory.path:
        return f"written in {memory.path}, "
    return f"said by {_WHO.get(str(speaker), speaker)}, " if speaker else "saved, "


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
    others = [parts.emit(to_one_line(text)[:MEANT_CHARS], "why", id, "link") for id, text in hits[1:]]
    return [
        "div",
        parts.link(memory.id, memory.content[:400]),
        _show_verdict(why, was),
        _show_numbers(why),
        parts.section("Or do you mean", parts.list_items(others)) if others else None,
    ]


async def _find_meant(client: AsyncClient, wanted: str) -> list[tuple[str, str]]:
    """Return id and text of what an id or words mean, the likeliest first."""
    found, listed = meant_calls(wanted)
    if not _ID.fullmatch(wanted):
        return list_meant(*await asyncio.gather(client.call(found), client.call(listed)))
    try:
        await client.call(protocol.Get(id=wanted, touch=False, reach="all"))
    except NotFound:
        near = list_meant(*await asyncio.gather(client.call(found), client.call(listed)))
        meant = [one for one in near if has_words(wanted, one[1])]
        if not meant:
            raise
        return meant
    return [(wanted, "")]


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
    where, seen_from = parts.place(memory.namespace), parts.place(search.namespace)
    reason = f"It is in {where}, and a search from {seen_from} does not see that."
    more = " Shared with a namespace that encloses both, it is found."
    return protocol.Why(id=memory.id, found=False, stage="reach", reason=reason + more)


def _show_verdict(why: protocol.Why, was: str) -> parts.Part:
    then = [["br"], f"In the search as it was: {was}"] if was else []
    sure = "" if why.confidence is None else f", {describe_confidence(why.confidence)}"
    if why.found and why.confidence is not None and why.confidence < FLOOR:
        hidden = f"Found, but not shown{sure}; {FLOOR:.0%} are needed."
        return ["div.verdict.lost", ["b", hidden], ["br"], why.reason and f"Perhaps since {why.reason}.", *then]
    if why.found:
        return ["div.verdict", ["b", f"Found, at rank {why.rank}{sure}."], *then]
    if why.shown_with:
        return ["div.verdict", ["b", "A part of another result."], ["br"], why.reason, *then]
    return ["div.verdict.lost", ["b", f"Lost at: {why.stage}"], ["br"], why.reason, *then]


def _show_numbers(why: protocol.Why) -> parts.Part:
    return parts.facts(
        [
            ("similarity", parts.format_number(why.similarity) + _rank(why.similarity_rank)),
            ("BM25", parts.format_number(why.bm25, 2) + _rank(why.bm25_rank)),
            ("score", parts.format_number(why.score) + sum_text(why.parts, why.score)),
            ("confidence", confidence_text(why)),
            ("the last result has", parts.format_number(why.last_hit_score)),
        ]
    )


def _rank(rank: int | None) -> str:
    return f", rank {rank:,}" if rank else ""
