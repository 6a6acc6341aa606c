"""Format answers for an agent: memories as lines of inert text with date and source, within a budget of tokens.

An answer has two forms, text and structured content. A host shows its agent one of them; each is within the budget.
Tokens are estimated from characters, since the tokenizer of the agent's model is not known. The estimate is high for
English; texts in Chinese and Japanese may have half as many tokens again as estimated.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from memoryd.client.confidence import word_of
from memoryd.client.programs.mcp.schemas import FoundMemory
from memoryd.client.prompt_text import FRAME, describe_origin, make_inert, say_later
from memoryd.client.protocol import Added, Hit, Memory
from memoryd.client.times import iso

ID_DIGITS = 8
ROOT = "/"  # the namespace that contains all others
_SHARE = 3  # one memory takes at most 1/_SHARE of the budget
_SHORTEST = 24  # tokens that a memory may have even if the budget is small
_LETTERS = re.compile(r"[A-Za-z ]+")
_LETTERS_PER_TOKEN = 3.5  # for English words and the spaces between them
_OTHERS_PER_TOKEN = 1.5  # for digits, punctuation, and scripts without spaces
_ELLIPSIS_TOKENS = 1
_BEFORE = {"question": "Asked", "prompt": "Prompt"}
T = TypeVar("T")


class ToolResult(NamedTuple):
    """Result of a tool: text, and the same as structured content if the tool has a schema for it."""

    text: str
    structured: Struct | None = None


def fit_answer(items: Sequence[T], budget: int, build: Callable[[Sequence[T]], ToolResult]) -> ToolResult:
    """Return the answer with as many of the first items as fit."""
    sizes = range(1, len(items) + 1)
    return build(items[: bisect_right(sizes, budget, key=lambda size: _count_tokens(build(items[:size])))])


def _count_tokens(answer: ToolResult) -> int:
    structured = "" if answer.structured is None else msgspec.json.encode(answer.structured).decode()
    return max(estimate_tokens(answer.text), estimate_tokens(structured))


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens in a text."""
    others = len(_LETTERS.sub("", text))
    return ceil((len(text) - others) / _LETTERS_PER_TOKEN + others / _OTHERS_PER_TOKEN)


def shorten_text(text: str, limit: int) -> str:
    """Cut a text to at most `limit` tokens, at the end of a word."""
    if estimate_tokens(text) <= limit:
        return text
    longest = text[: ceil(limit * _LETTERS_PER_TOKEN)]
    sizes = range(1, len(longest) + 1)
    size = bisect_right(sizes, limit - _ELLIPSIS_TOKENS, key=lambda size: estimate_tokens(longest[:size]))
    beginning = longest[:size].rstrip("… ")
    return (beginning.rsplit(" ", 1)[0] if " " in beginning else beginning) + " …"


# Memories as lines ---------------------------------------------------------------------------------------------------


def show_memories(memories: Sequence[Memory], budget: int, own: str) -> list[FoundMemory]:
    """Prepare memories for a caller in the namespace `own`, each cut to its share of the budget."""
    limit = max(_SHORTEST, budget // _SHARE)
    return [_show_memory(memory, shorten_text(make_inert(_text(memory)), limit), own) for memory in memories]


def _text(memory: Memory) -> str:
    """Return the text of a memory; the text of a hit is preceded by what it replies to, and followed by its answers."""
    if not isinstance(memory, Hit):
        return memory.content
    before = [f"{_BEFORE[one.kind]}: {one.content}" for one in memory.related if one.kind in _BEFORE and one.content]
    after = [f"Answer: {one.content}" for one in memory.related if one.kind == "answer"]
    return " | ".join([*before, f"Reply: {memory.content}" if before else memory.content, *after])


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
    """Return the memories that contradict this one: the short id and the text of each."""
    pairs = zip(memory.contradicts, memory.contradicts_texts, strict=False)
    return [f"{id[:ID_DIGITS]}: {make_inert(text)}" for id, text in pairs]


def tell_later(memory: Memory) -> str:
    """Return a note about later statements that seem to change a memory, empty if there are none."""
    return say_later(memory.later) if memory.later else ""


def day(when: float) -> str:
    """Return the date of a time."""
    return (iso(when) or "")[:10]


def memory_line(memory: FoundMemory) -> str:
    """Format a memory as a line: date, short id, kind, namespace (if not the caller's), source, confidence, text."""
    place = "shared by all" if memory.namespace == ROOT else memory.namespace
    about = ", ".join(filter(None, [memory.id, memory.kind, place, memory.source, memory.confidence]))
    note = "; ".join(filter(None, [memory.later, *(f"disagrees with {other}" for other in memory.disagrees_with)]))
    return f"- {memory.date} [{about}] {memory.text}" + (f" ({note})" if note else "")


def frame_lines(lines: Sequence[str]) -> str:
    """Enclose lines in the marks that identify them as memories."""
    opening, closing = FRAME
    return f"{opening}{chr(10).join(lines)}\n{closing}"
