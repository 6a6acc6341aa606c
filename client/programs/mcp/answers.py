"""Answers to an agent: memories as dated, sourced lines of inert text, within a budget of tokens.

An answer has two forms, text and structured content, of which a host shows its agent one; each is within the budget.
Tokens are estimated from characters, since the tokenizer of the agent's model is not known here: of English on the safe
side; Chinese and Japanese may have half as many more.
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
ROOT = "/"  # the namespace that encloses all
_SHARE = 3  # one memory takes at most a third of the budget
_SHORTEST = 24  # tokens that a memory may have in any case
_LETTERS = re.compile(r"[A-Za-z ]+")
_LETTERS_PER_TOKEN = 3.5  # of English words and the spaces between them
_OTHERS_PER_TOKEN = 1.5  # of digits, marks, and writing without spaces
_ELLIPSIS_TOKENS = 1
_BEFORE = {"question": "Asked", "prompt": "Prompt"}
T = TypeVar("T")


class ToolResult(NamedTuple):
    """What a tool returns: text, and the same as a value where the tool has a schema for it."""

    text: str
    structured: Struct | None = None


def fit_answer(items: Sequence[T], budget: int, build: Callable[[Sequence[T]], ToolResult]) -> ToolResult:
    """Return the answer with as many items as fit, the first ones first."""
    sizes = range(1, len(items) + 1)
    return build(items[: bisect_right(sizes, budget, key=lambda size: _count_tokens(build(items[:size])))])


def _count_tokens(answer: ToolResult) -> int:
    structured = "" if answer.structured is None else msgspec.json.encode(answer.structured).decode()
    return max(estimate_tokens(answer.text), estimate_tokens(structured))


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    others = len(_LETTERS.sub("", text))
    return ceil((len(text) - others) / _LETTERS_PER_TOKEN + others / _OTHERS_PER_TOKEN)


def shorten_text(text: str, limit: int) -> str:
    """Return a text of at most `limit` tokens; of a longer one the beginning, up to a word's end."""
    if estimate_tokens(text) <= limit:
        return text
    longest = text[: ceil(limit * _LETTERS_PER_TOKEN)]
    sizes = range(1, len(longest) + 1)
    size = bisect_right(sizes, limit - _ELLIPSIS_TOKENS, key=lambda size: estimate_tokens(longest[:size]))
    beginning = longest[:size].rstrip("… ")
    return (beginning.rsplit(" ", 1)[0] if " " in beginning else beginning) + " …"


# Memories as lines ---------------------------------------------------------------------------------------------------


def show_memories(memories: Sequence[Memory], budget: int, own: str) -> list[FoundMemory]:
    """Return memories as they are shown to one who asked at `own`, each with at most its share of the budget."""
    limit = max(_SHORTEST, budget // _SHARE)
    return [_show_memory(memory, shorten_text(make_inert(_text(memory)), limit), own) for memory in memories]


def _text(memory: Memory) -> str:
    """Return the text of a memory, of a hit with what it replies to before it and its answers after it."""
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
