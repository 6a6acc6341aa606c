"""Tokens: what published tokenizer files get wrong is reset, and no text is too odd."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tiny_bert import tiny_tokenizer

from memoryd.models import ModelBroken
from memoryd.models.tokens import Tokens


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    tiny_tokenizer().save(str(path))
    return path


def test_texts_are_neither_padded_nor_cut_at_the_files_own_length(file: Path) -> None:
    tokens = Tokens(file, 16, special=True)
    assert tokens.ids("the quick brown fox") == [2, 4, 5, 6, 7, 3]
    assert tokens.ids("") == [2, 3]


def test_a_long_text_keeps_its_frame(file: Path) -> None:
    tokens = Tokens(file, 16, special=True)
    assert tokens.ids("fox " * 100_000) == [2, *[7] * 14, 3]
    assert Tokens(file, 16, special=False).ids("fox " * 100) == [7] * 16


def test_counting_is_uncut_and_without_the_frame(file: Path) -> None:
    assert [Tokens(file, 16, special=True).count(text) for text in ("", "fox", "fox " * 100)] == [0, 1, 100]


def test_other_threads_work_while_a_long_text_is_counted(file: Path) -> None:
    tokens, text = Tokens(file, 16, special=True), "fox " * 500_000
    ended, ticks = threading.Event(), 0

    def tick() -> None:
        nonlocal ticks
        while not ended.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    assert tokens.count(text) == 500_000
    ended.set()
    thread.join()
    assert ticks >= 10


@given(text=some.text())
def test_any_text_is_read(file: Path, text: str) -> None:
    tokens = Tokens(file, 16, special=True)
    assert 2 <= len(tokens.ids(text)) <= 16


def test_a_lone_surrogate_is_read(file: Path) -> None:
    assert Tokens(file, 16, special=True).ids("fox \ud800")[:2] == [2, 7]


def test_what_is_no_tokenizer_is_broken(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelBroken, match="tokenizer"):
        Tokens(tmp_path / "tokenizer.json", 16, special=True)
