"""Fitting what is told into a budget, whatever counts the tokens."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.programs.mcp.answers import ToolResult, fit_answer, memory_line, shorten_texts
from memoryd.client.programs.mcp.schemas import FoundMemory
from memoryd.client.prompt_text import make_inert, make_lines_inert

COUNTERS: list[Callable[[str], int]] = [
    lambda text: len(text.split()),
    lambda text: -(-len(text.encode()) // 2),
    lambda text: 3 * len(text),
]


class Counting:
    """The part of a session that fitting needs."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    async def count(self, texts: list[str]) -> list[int]:
        return [self._count(text) for text in texts]


def session(count: Callable[[str], int]) -> Any:
    return Counting(count)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3000).map(make_inert)


@pytest.mark.parametrize("count", COUNTERS)
@given(texts=st.lists(TEXTS, max_size=4), limit=st.integers(24, 400))
@pytest.mark.slow
def test_a_shortened_text_fits_and_one_that_fits_stays(
    count: Callable[[str], int], texts: list[str], limit: int
) -> None:
    made = asyncio.run(shorten_texts(session(count), texts, limit))
    for text, kept in zip(texts, made, strict=True):
        assert count(kept) <= limit
        assert kept == text or (kept.endswith("…") and text.startswith(kept.rstrip("… ")))
        if count(text) <= limit and len(text) <= 4 * limit:
            assert kept == text


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTERS)
@given(texts=st.lists(TEXTS, max_size=12), budget=st.integers(0, 2000))
def test_as_many_as_fit_are_told_the_first_ones_first(
    count: Callable[[str], int], texts: list[str], budget: int
) -> None:
    def told(part: Any) -> ToolResult:
        return ToolResult("\n".join(part))

    said = asyncio.run(fit_answer(session(count), texts, budget, told)).text
    sizes = [count("\n".join(texts[:size])) for size in range(len(texts) + 1)]
    assert said == "\n".join(texts[: max(size for size, tokens in enumerate(sizes) if tokens <= budget or size == 0)])


@given(st.text(max_size=300))
def test_inert_lines_keep_their_number_and_close_nothing(text: str) -> None:
    made = make_lines_inert(text)
    assert made.count("\n") == max(0, len(text.expandtabs(4).splitlines()) - 1)
    assert "<" not in made
    assert all(make_inert(row) == row.lstrip(" ") for row in made.split("\n"))


FROM_A_FILE = {"namespace": "/", "source": "notes/MEMORY.md:3-7", "disagrees_with": ["aaaaaaaa", "bbbbbbbb"]}


@each(
    ("fields", "expected"),
    [
        ({"source": "mcp"}, "fact, mcp] x"),
        (FROM_A_FILE, "fact, shared by all, notes/MEMORY.md:3-7] x (disagrees with aaaaaaaa; disagrees with bbbbbbbb)"),
    ],
)
def test_a_line_has_date_id_kind_place_and_source(fields: dict[str, Any], expected: str) -> None:
    memory = FoundMemory(id="3f9a12cd", date="2026-11-21", kind="fact", text="x", **fields)
    assert memory_line(memory) == f"- 2026-11-21 [3f9a12cd, {expected}"
