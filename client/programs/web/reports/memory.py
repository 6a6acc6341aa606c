"""What is known about a memory beside its text: its answer, its conversation, files, facts, links, its history."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from memoryd.client.errors import Invalid, NotFound
from memoryd.client.programs.memctl.table import count_text, origin_text, text_of, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.protocol import Change, Get, GetAround, GetLog, History, Memory, Usefulness
from memoryd.client.transport.aio import AsyncClient

_AROUND = 4  # turns before a memory, and after it
_TURN_CHARS = 300  # that are shown of each
_FILES = 20  # shown
_SPAN_S = 43_200.0  # of a conversation, before and after a memory
_MOST_WORDS = 1000  # of a text whose difference is looked for


async def read_memory(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what belongs to a memory, facts, links and its history; of one that was deleted its history."""
    id = query.get("id", "")
    memory = await _find(client, id)
    if memory and memory.tier == "L0":  # a turn that is no memory yet has no history
        return [
            "div",
            *await _show_surroundings(client, memory),
            parts.section("About it", parts.facts(_list_facts(memory))),
        ]
    past = await client.call(History(id=id, reach="all"))
    history = parts.section("History", *map(_show_change, reversed(past.changes)))
    if memory is None:
        return history
    ends = [*(f"to {text}" for text in memory.links), *(f"from {text}" for text in memory.linked_from)]
    links = parts.section("Links", parts.list_items(ends)) if ends else None
    about = parts.section("About it", parts.facts(_list_facts(memory)))
    return ["div", *await _show_surroundings(client, memory), about, links, history]


async def _read_conversation(client: AsyncClient, id: str) -> list[Memory]:
    """Return what was said before and after a memory; nothing where it is of no conversation."""
    try:
        return (await client.call(GetAround(id=id, around=_AROUND, reach="all"))).turns
    except (NotFound, Invalid):
        return []


async def _show_surroundings(client: AsyncClient, memory: Memory) -> list[parts.Part]:
    """Return what was said around a memory, and the files of that time."""
    said = await _read_conversation(client, memory.id)
    shown = list[parts.Part]()
    if len(said) > 1:
        shown.append(parts.section("Said around it", *(_show_turn(turn, turn.id == memory.id) for turn in said)))
    if files := await _list_files(client, memory, said):
        more = parts.remark(f"and {len(files) - _FILES:,} more") if len(files) > _FILES else None
        shown.append(
            parts.section("Files of that time", parts.list_items(["code", name] for name in files[:_FILES]), more)
        )
    return shown


def _show_turn(turn: Memory, here: bool = False) -> parts.Part:
    who = turn.metadata.get("speaker") or turn.metadata.get("role") or turn.source
    text = ["b", to_one_line(turn.content[:_TURN_CHARS])] if here else parts.link(turn.id, turn.content[:_TURN_CHARS])
    return ["div.hit", parts.line(str(who), parts.time(turn.created_at)), text]


async def _list_files(client: AsyncClient, memory: Memory, said: list[Memory]) -> list[str]:
    """Return the files that a conversation names, those of the turns around a memory first."""
    names = [str(name) for turn in said for name in turn.metadata.get("files") or []]
    session = memory.metadata.get("session")
    if session and isinstance(session, str):
        call = GetLog(
            session=session,
            namespace=memory.namespace,
            reach="exact",
            since=max(0.0, memory.created_at - _SPAN_S),
            until=memory.created_at + _SPAN_S,
        )
        log = await client.call(call)
        names += [name for one in log for name in one.files]
    return list(dict.fromkeys(names))


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
        ("from", origin_text(memory)),
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
