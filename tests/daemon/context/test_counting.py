"""Counting tokens of long texts: slice by slice, with the same sum."""

import random
from pathlib import Path

from each import each
from memoryd import models
from memoryd.daemon.context.counting import SLICE_CHARS, Counter, slice_text
from memoryd.models.catalog import DEFAULT

TEXTS = {
    "words": " ".join(f"word{number} is here." for number in range(8_000)),
    "lines": "".join(f"line {number}\n" for number in range(12_000)),
    "lines without spaces": "line\n" * 20_000,
    "wide gaps": "word  \n   other\t" * 8_000,
    "characters without spaces": "日本語の文章です。" * 8_000,
    "accents": "e\u0301te\u0301 " * 15_000,
    "spaces": " " * 80_000,
    "nothing": "",
}


@each("text", TEXTS.values(), ids=TEXTS)
def test_slices_are_the_whole_text_and_none_is_long(text: str) -> None:
    found = list(slice_text(text))
    assert "".join(found) == text
    assert max(map(len, found)) <= SLICE_CHARS
    assert len(found) <= 1 + len(text) // (SLICE_CHARS // 2)


def test_slices_begin_at_a_space_before_a_word() -> None:
    draw = random.Random(5)
    for _ in range(20):
        text = "".join(draw.choices(["word", " ", "  ", "\n", " \n", ", ", "\t"], k=30_000))
        assert all(part[0] == " " and not part[1].isspace() for part in list(slice_text(text))[1:])


def test_the_tokens_of_the_slices_add_up(model_dir: Path) -> None:
    count = models.load(DEFAULT, model_dir).count_tokens
    for text in TEXTS.values():
        assert Counter("", count).count(text) == count(text)
