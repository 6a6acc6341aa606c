"""Sentences of a text, and the one that stands for it."""

from each import each
from memoryd.daemon.language.condensing import (
    MAX_CHARS,
    find_central,
    list_telling,
)
from memoryd.daemon.llm.provider import RulesProvider

TEXT = (
    "Thanks for waiting. The cache of the gateway is Valkey 8. The gateway asks the cache before the ledger. "
    "Lunch was good."
)


@each(
    ("text", "expected"),
    [
        ("One of them. Two of them.", ["One of them.", "Two of them."]),
        ("- the first point\n- the second point", ["the first point", "the second point"]),
        ("User: what is it\nAssistant: it is this", ["what is it", "it is this"]),
        ("Ask Dr. Who about it. He knows it.", ["Ask Dr. Who about it.", "He knows it."]),
        ("Version 3.11 is in use. It works well.", ["Version 3.11 is in use.", "It works well."]),
        ("是的。我们使用本地缓存 因为 它很快。", ["我们使用本地缓存 因为 它很快。"]),
        ("Yes. No. Maybe so it is.", ["Maybe so it is."]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert list_telling(text) == expected


def test_the_central_sentence_is_the_one_nearest_to_all_weighed_by_importance() -> None:
    assert RulesProvider().condense(TEXT) == "The cache of the gateway is Valkey 8."
    assert find_central(["Can you help me?", "What is it?"]) == "Can you help me?"


def test_a_very_long_sentence_is_shortened_at_a_word() -> None:
    long = "The cache " + "of the gateway " * 50
    chosen = find_central([long, long])
    assert len(chosen) <= MAX_CHARS
    assert chosen.endswith(("the…", "gateway…", "of…"))
