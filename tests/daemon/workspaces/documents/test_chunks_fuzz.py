"""What holds for the chunks of any text. `HYPOTHESIS_EXAMPLES=5000` runs it long."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_texts import ANY_TEXT, MARKDOWN

from memoryd.daemon.workspaces.documents.chunks import chunk
from memoryd.daemon.workspaces.documents.document import Chunk

LIMITS = st.integers(100, 1200)
OVERLAPS = st.integers(0, 400)
fuzz = settings(
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.replace("\0", "\N{REPLACEMENT CHARACTER}").split("\n")]


def covering(chunks: list[Chunk], number: int) -> list[Chunk]:
    return [one for one in chunks if one.start_line <= number <= one.end_line]


@fuzz
@given(ANY_TEXT, LIMITS, OVERLAPS)
def test_every_line_that_is_not_blank_is_in_a_chunk(text: str, limit: int, overlap: int) -> None:
    chunks = chunk(text, limit, overlap)
    for number, line in enumerate(lines_of(text), 1):
        if line.strip():
            holding = covering(chunks, number)
            assert holding, (number, line)
            if len(line) > limit:  # its pieces together are at least as long as it is, but for white space at cuts
                parts = ["".join(one.content.split("\n")[-1].split()) for one in holding]
                assert sum(map(len, parts)) >= len("".join(line.split()))
            else:
                assert any(line in one.content.split("\n") for one in holding)


@fuzz
@given(ANY_TEXT, LIMITS, OVERLAPS)
def test_a_chunk_is_the_lines_it_names_or_a_piece_of_a_long_one(text: str, limit: int, overlap: int) -> None:
    lines = lines_of(text)
    for one in chunk(text, limit, overlap):
        named = lines[one.start_line - 1 : one.end_line]
        assert len(named) == one.end_line - one.start_line + 1
        if any(len(line) > limit for line in named):
            assert one.content in "\n".join(named)
            assert all(len(line) <= limit for line in named[:-1])
        else:
            assert one.content == "\n".join(named)


@fuzz
@given(ANY_TEXT, LIMITS, OVERLAPS)
def test_no_chunk_is_blank_or_over_the_limit_and_they_are_in_order(text: str, limit: int, overlap: int) -> None:
    chunks = chunk(text, limit, overlap)
    assert all(one.content.strip() and len(one.content) <= limit for one in chunks)
    assert [one.start_line for one in chunks] == sorted(one.start_line for one in chunks)
    assert [one.end_line for one in chunks] == sorted(one.end_line for one in chunks)


@fuzz
@given(ANY_TEXT, LIMITS, OVERLAPS)
def test_the_same_text_gives_the_same_chunks(text: str, limit: int, overlap: int) -> None:
    assert chunk(text, limit, overlap) == chunk(text, limit, overlap)


@pytest.mark.slow
@fuzz
@given(MARKDOWN, LIMITS)
def test_line_ends_of_other_systems_change_nothing(text: str, limit: int) -> None:
    assert chunk(text.replace("\n", "\r\n"), limit) == chunk(text, limit)


@pytest.mark.slow
@fuzz
@given(MARKDOWN, LIMITS, OVERLAPS, st.integers(0, 10))
def test_lines_of_front_matter_are_left_out(text: str, limit: int, overlap: int, skip: int) -> None:
    whole = "key: value\n" * skip + text
    moved = [(one.content, one.start_line + skip, one.end_line + skip) for one in chunk(text, limit, overlap)]
    assert [(one.content, one.start_line, one.end_line) for one in chunk(whole, limit, overlap, skip)] == moved
