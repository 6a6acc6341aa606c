"""What is known about a memory beside its text: facts, links, its history."""

import asyncio
import difflib
import re
from collections.abc import Mapping
from typing import Any

from memoryd.client.errors import NotFound
from memoryd.client.memctl.table import count_text, text_of
from memoryd.client.protocol import Change, Get, History, Memory, Usefulness
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.web.reports import parts

_MOST_WORDS = 1000  # of a text whose difference is looked for


async def read_memory(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return facts, links and history of a memory; of one that was deleted its history."""
    past, memory = await asyncio.gather(
        client.call(History(id=query.get("id", ""), reach="all")), _find(client, query.get("id", ""))
    )
    history = parts.section("History", *map(_show_change, reversed(past.changes)))
    if memory is None:
        return history
    ends = [*(f"to {text}" for text in memory.links), *(f"from {text}" for text in memory.linked_from)]
    links = parts.section("Links", parts.list_items(ends)) if ends else None
    return ["div", parts.section("About it", parts.facts(_list_facts(memory))), links, history]


async def _find(client: AsyncClient, id: str) -> Memory | None:
    try:
        return await client.call(Get(id=id, touch=False, reach="all"))
    except NotFound:
        return None


def _list_facts(memory: Memory) -> list[tuple[str, parts.Part]]:
    read: parts.Part = "never"
    if memory.access_count:
        read = ["span", f"{count_text(memory.access_count, 'time')}, last ", parts.time(memory.last_accessed_at)]
    metadata = [(name, text_of(value)) for name, value in memory.metadata.items() if name != "tags"]
    return [
        ("remembered", ["span", parts.time(memory.created_at), f", by {memory.source}"]),
        ("changed", parts.time(memory.updated_at)),
        ("read", read),
        ("importance", f"{memory.importance:.2f}"),
        ("leaves search", memory.expires_at and parts.time(memory.expires_at)),
        ("summary", memory.summary),
        ("file", memory.path),
        ("replaced by", memory.superseded_by and parts.link(memory.superseded_by)),
        ("feedback", _show_feedback(memory.usefulness) if memory.usefulness else None),
        *metadata,
    ]


def _show_feedback(feedback: Usefulness) -> parts.Part:
    notes = [part for text in feedback.notes for part in (["br"], f"“{text}”")]
    return ["span", f"{feedback.useful} useful, {feedback.useless} not, cited {feedback.cited} times", *notes]


def _show_change(change: Change) -> parts.Part:
    who = change.token, change.session and f"session {change.session[:24]}", change.process
    title = parts.line(parts.time(change.at), parts.badge(change.kind), f"operation {change.operation[:8]}", *who)
    if change.action == "updated":
        fields = [_show_field(name, *values) for name, values in change.changed.items()]
        return ["div.panel", title, *fields]
    text = str(change.changed.get("content", ("",))[0]) if change.action == "deleted" else ""
    return ["div.panel", title, ["p.text", f"{change.action}: {text}" if text else change.action]]


def _show_field(name: str, was: Any, now: Any) -> parts.Part:
    if name == "content":
        return ["p.text", *compare_words(str(was or ""), str(now or ""))]
    return ["p.one", ["span.dim", f"{name}: "], f"{text_of(was)} → {text_of(now)}"]


def compare_words(before: str, after: str) -> list[parts.Part]:
    """Return the words of both texts, with those that differ as `del` and `ins`."""
    old, new = (re.split(r"(\s+)", text) for text in (before, after))
    if max(len(old), len(new)) > 2 * _MOST_WORDS:
        return [["del", before], ["ins", after]]
    shown: list[parts.Part] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = kind == "equal"
        shown += ["".join(old[a:b])] if same else [["del", "".join(old[a:b])], ["ins", "".join(new[c:d])]]
    return shown
