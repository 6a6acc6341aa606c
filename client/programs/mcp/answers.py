"""Answers to an agent: memories as dated, sourced lines of inert text, strictly within a budget of tokens.

An answer has two forms, text and structured content, of which a host shows its agent one; each is within the budget,
counted by the daemon as it counts contexts.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from memoryd.client.confidence import word_of
from memoryd.client.programs.mcp.schemas import FoundMemory
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.prompt_text import FRAME, describe_origin, make_inert, say_later
from memoryd.client.protocol import Added, Hit, Memory
from memoryd.client.times import iso

ID_DIGITS = 8
ROOT = "/"  # the namespace that encloses all
_SHARE = 3  # one memory takes at most a third of the budget
_SHORTEST = 24  # tokens that a memory may have in any case
_CHARS_PER_TOKEN = 4  # of a first cut; what is too long still is cut again
_LEAST_SCALE = 0.1
_ROUNDS = 6
_BEFORE = {"question": "Asked", "prompt": "Prompt"}
T = TypeVar("T")


class ToolResult(NamedTuple):
    """What a tool returns: text, and the same as a value where the tool has a schema for it."""

    text: str
    structured: Struct | None = None


async def fit_answer(
    session: ProjectSession, items: Sequence[T], budget: int, build: Callable[[Sequence[T]], ToolResult]
) -> ToolResult:
    """Return the answer with as many items as fit, the first ones first."""
    least, most, size = 1, len(items), len(items)
    best = build(())
    while least <= most:
        answer = build(items[:size])
        if await _count_tokens(session, answer) <= budget:
            best, least = answer, size + 1
        else:
            most = size - 1
        size = (least + most) // 2
    return best


async def _count_tokens(session: ProjectSession, answer: ToolResult) -> int:
    forms = [answer.text]
    if answer.structured is not None:
        forms.append(msgspec.json.encode(answer.structured).decode())
    return max(await session.count(forms))


async def shorten_texts(session: ProjectSession, texts: Sequence[str], limit: int) -> list[str]:
    """Return texts of at most `limit` tokens each; of a longer one the beginning, up to a word's end."""
    kept = [_cut(text, limit * _CHARS_PER_TOKEN) for text in texts]
    for _ in range(_ROUNDS):
        counts = await session.count(kept)
        if max(counts, default=0) <= limit:
            break
        scales = [max(_LEAST_SCALE, 0.9 * limit / count) if count > limit else None for count in counts]
        kept = [
            text if scale is None else _cut(text, int(len(text) * scale))
            for text, scale in zip(kept, scales, strict=True)
        ]
    return kept


def _cut(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    beginning = text[: max(chars - 2, 0)].rstrip("… ")
    return (beginning.rsplit(" ", 1)[0] if " " in beginning else beginning) + " …"


# Memories as lines ---------------------------------------------------------------------------------------------------


async def show_memories(
    session: ProjectSession, memories: Sequence[Memory], budget: int, own: str
) -> list[FoundMemory]:
    """Return memories as they are shown to one who asked at `own`, each with at most its share of the budget."""
    texts = await shorten_texts(session, [make_inert(_text(memory)) for memory in memories], token_share(budget))
    return [_show_memory(memory, text, own) for memory, text in zip(memories, texts, strict=True)]


def _text(memory: Memory) -> str:
    """Return the text of a memory, of a hit with what it replies to before it and its answers after it."""
    if not isinstance(memory, Hit):
        return memory.content
    before = [f"{_BEFORE[one.kind]}: {one.content}" for one in memory.related if one.kind in _BEFORE and one.content]
    after = [f"Answer: {one.content}" for one in memory.related if one.kind == "answer"]
    return " | ".join([*before, f"Reply: {memory.content}" if before else memory.content, *after])


def token_share(budget: int) -> int:
    """Return how many tokens one of several memories may take."""
    return max(_SHORTEST, budget // _SHARE)


def _show_memory(memory: Memory, text: str, own: str) -> FoundMemory:
    return FoundMemory(
        id=memory.id[:ID_DIGITS],
        date=day(memory.created_at),
        kind=make_inert(memory.type),
        namespace="" if memory.namespace == own else make_inert(memory.namespace) or ROOT,
        source=describe_origin(memory),
        text=text,
        confidence=word_of(memory.confidence) if isinstance(memory, Hit) else "",
        disagrees_with=tell_opposites(memory),
        later=tell_later(memory),
    )


def tell_opposites(memory: Memory | Added) -> list[str]:
    """Return what a memory disagrees with: short ids, each with what that one says."""
    told = zip(memory.contradicts, memory.contradicts_texts, strict=False)
    return [f"{id[:ID_DIGITS]}: {make_inert(text)}" for id, text in told]


def tell_later(memory: Memory) -> str:
    """Return what was said or saved later that seems to change a memory; empty: nothing."""
    return say_later(memory.later) if memory.later else ""


def day(when: float) -> str:
    """Return the date of a time."""
    return (iso(when) or "")[:10]


def memory_line(memory: FoundMemory) -> str:
    """Return a memory as a line: date, short id, kind, namespace where it is another one, source, confidence, text."""
    place = "shared by all" if memory.namespace == ROOT else memory.namespace
    about = ", ".join(filter(None, [memory.id, memory.kind, place, memory.source, memory.confidence]))
    note = "; ".join(filter(None, [memory.later, *(f"disagrees with {other}" for other in memory.disagrees_with)]))
    return f"- {memory.date} [{about}] {memory.text}" + (f" ({note})" if note else "")


def frame_lines(lines: Sequence[str]) -> str:
    """Return lines between the marks that say what they are."""
    opening, closing = FRAME
    return f"{opening}{chr(10).join(lines)}\n{closing}"
