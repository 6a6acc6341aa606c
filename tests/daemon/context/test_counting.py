"""Counting tokens of long texts: slice by slice, with the same sum."""

import random
from pathlib import Path

import pytest

from memoryd import models
from memoryd.client.errors import Forbidden, Invalid
from memoryd.client.protocol import CountTokens, TokenCounts
from memoryd.daemon.context.counting import SLICE_CHARS, Counter, count_tokens, slice_text
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.caller import USER, Caller
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


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
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


def test_texts_are_counted_in_parts_of_one_slice_each() -> None:
    seen: list[int] = []

    def words(text: str) -> int:
        seen.append(len(text))
        return len(text.split())

    texts = ["word " * 10, "word " * 20_000, "", "word " * 6_000, "word"]
    work, counts, parts = Counter("", words).count_in_parts(texts), None, 0
    while counts is None:
        before = sum(seen)
        try:
            next(work)
        except StopIteration as end:
            counts = end.value
        assert sum(seen) - before <= SLICE_CHARS
        parts += 1
    assert counts == [10, 20_000, 0, 6_000, 1]
    assert parts >= sum(map(len, texts)) // SLICE_CHARS


def test_a_call_names_what_counts(core: Core, model_dir: Path, tmp_path: Path) -> None:
    [file] = sorted(model_dir.rglob("tokenizer.json"))[:1]
    text = "Sessions are cached in Valkey since the redesign."

    def count(tokenizer: str, caller: Caller = USER) -> TokenCounts:
        work = count_tokens(core, CountTokens(texts=[text], tokenizer=tokenizer), caller)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value

    assert (count("bytes").counts, count("bytes").tokenizer) == ([(len(text) + 1) // 2], "bytes")
    by_file = count(str(file))
    assert by_file.tokenizer == str(file)
    assert 8 <= by_file.counts[0] <= 20
    for wrong in ("cl100k_base", str(tmp_path / "none.json"), str(Path(__file__))):
        with pytest.raises(Invalid, match=r"no tokenizer|cannot be read as a tokenizer"):
            count(wrong)
    with pytest.raises(Forbidden):
        count(str(file), Caller("agent", "acme"))
