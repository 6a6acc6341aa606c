"""Why a memory is missing among the hits of a search: by its id, or by words of it."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memoryd.client.errors import NotFound
from memoryd.client.memctl.table import to_one_line
from memoryd.client.memctl.web.reports.parts import Part, emit, facts, format_number, link, list_items, place, section
from memoryd.client.protocol import Explain, Get, GetTrace, Trace, Why, WhyNot
from memoryd.client.transport.aio import AsyncClient

_ID = re.compile("[0-9a-f]{4,32}")
_NEAREST = 4  # memories that may be meant by words
_NONE = "No memory is like that. It was not remembered, or it was deleted: see Today, and Tiers for what was skipped."
_L0 = "It is a turn in L0, which is found by itself."


class Search(NamedTuple):
    """The search that a memory is missing in."""

    query: str
    limit: int
    namespace: str
    reach: Any


async def read_why(client: AsyncClient, query: Mapping[str, str]) -> Part:
    """Return the stage that lost the memory `of`, and the others that its words may mean."""
    trace: Trace | None = None
    if kept := query.get("trace"):
        trace = await client.call(GetTrace(id=kept, reach="all"))
    hits = await _find_meant(client, query.get("of", "").strip())
    if not hits:
        return ["div.problem", _NONE]
    why = await _explain(client, _read_search(query, trace), hits[0][0])
    memory = await client.call(Get(id=why.id, touch=False, reach="all"))
    was = next((one.lost for one in trace.candidates if one.id == why.id), "") if trace else ""
    others = [emit(to_one_line(text)[:160], "why", id, "link") for id, text in hits[1:]]
    return [
        "div",
        link(memory.id, memory.content[:400]),
        _show_verdict(why, was),
        _show_numbers(why),
        section("Or do you mean", list_items(others)) if others else None,
    ]


async def _find_meant(client: AsyncClient, wanted: str) -> list[tuple[str, str]]:
    """Return id and text of what an id or words mean, the nearest first."""
    if _ID.fullmatch(wanted):
        return [(wanted, "")]
    found = await client.call(Explain(query=wanted, limit=_NEAREST, touch=False, reach="all"))
    return [(hit.id, hit.content) for hit in found.hits]


def _read_search(query: Mapping[str, str], trace: Trace | None) -> Search:
    """Return the search as it was kept, or as it is asked now."""
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else 10
    if trace:
        return Search(trace.query, limit, trace.namespace, trace.reach)
    return Search(query.get("query", ""), limit, query.get("namespace", ""), query.get("reach"))


async def _explain(client: AsyncClient, search: Search, id: str) -> Why:
    """Return why, be it that the search does not reach the memory at all."""
    try:
        return await client.call(WhyNot(id=id, touch=False, **search._asdict()))
    except NotFound:
        memory = await client.call(Get(id=id, touch=False, reach="all"))
    if memory.tier == "L0":
        return Why(id=memory.id, found=False, stage="tier", reason=_L0)
    where, seen_from = place(memory.namespace), place(search.namespace)
    reason = f"It is in {where}, and a search from {seen_from} does not see that."
    more = " Shared with a namespace that encloses both, it is found."
    return Why(id=memory.id, found=False, stage="reach", reason=reason + more)


def _show_verdict(why: Why, was: str) -> Part:
    then = [["br"], f"In the search as it was: {was}"] if was else []
    if why.found:
        return ["div.verdict", ["b", f"Found, at rank {why.rank}."], *then]
    return ["div.verdict.lost", ["b", f"Lost at: {why.stage}"], ["br"], why.reason, *then]


def _show_numbers(why: Why) -> Part:
    return facts(
        [
            ("cosine", format_number(why.similarity) + _rank(why.similarity_rank)),
            ("BM25", format_number(why.bm25, 2) + _rank(why.bm25_rank)),
            ("score", format_number(why.score)),
            ("the last result has", format_number(why.last_hit_score)),
        ]
    )


def _rank(rank: int | None) -> str:
    return f", rank {rank:,}" if rank else ""
