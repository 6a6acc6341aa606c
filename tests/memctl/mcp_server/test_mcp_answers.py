"""Fitting what is told into a budget."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.programs.mcp.answers import estimate_tokens, memory_line, shorten_text
from memoryd.client.programs.mcp.schemas import FoundMemory
from memoryd.client.prompt_text import make_inert
from memoryd.models.catalog import DEFAULT
from memoryd.models.tokens import Tokens

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3000).map(make_inert)


def test_english_is_estimated_on_the_safe_side_of_a_tokenizer(model_dir: Path) -> None:
    count = Tokens(model_dir / DEFAULT / "tokenizer.json", 0, special=False).count
    for page in sorted(Path(__file__).parents[3].glob("docs/*.md")):
        text = page.read_text()
        assert count(text) <= estimate_tokens(text), page.name


@given(text=TEXTS, limit=st.integers(24, 400))
def test_a_shortened_text_fits_and_one_that_fits_stays(text: str, limit: int) -> None:
    kept = shorten_text(text, limit)
    assert estimate_tokens(kept) <= limit
    assert kept == text or (kept.endswith("…") and text.startswith(kept.rstrip("… ")))
    assert kept == text or estimate_tokens(text) > limit


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
