"""What does not fit a type is said in a person's words: no type of msgspec, no notation of its own."""

from typing import Any

import msgspec
import pytest

from each import each
from memoryd.client import protocol
from memoryd.client.validation import explain_misfit


@each(
    ("shape", "value", "sentence"),
    [
        (protocol.Search, {"limit": 0}, "`limit` must be 1 or more"),
        (protocol.Search, {"limit": 5000}, "`limit` must be 1000 or less"),
        (protocol.Search, {"limit": 1.5}, "`limit` must be a whole number"),
        (protocol.Search, {"limit": "ten"}, "`limit` must be a whole number, not text"),
        (protocol.Search, {"options": {"half_life_days": 0}}, "`options.half_life_days` must be more than 0"),
        (protocol.Search, {"floor": "low"}, "`floor` must be a number, not text"),
        (protocol.Search, {"touch": 1}, "`touch` must be true or false, not a whole number"),
        (protocol.Search, {"mode": "any"}, "`mode` must be one of hybrid, lexical, dense, not 'any'"),
        (protocol.Search, {"tier": ["L9"]}, "`tier[0]` must be one of L0, L1, L2, documents, waiting, L3, not 'L9'"),
        (protocol.Search, {"type": ["a"] * 1001}, "`type` must have at most 1000 items"),
        (protocol.List, {"ids": "3f9a"}, "`ids` must be a list, not text"),
        (protocol.Search, {"where": {1: 2}}, "a name in `where` must be text, not a whole number"),
        (protocol.Search, {"limits": 1}, "there is no field `limits`"),
        (protocol.AddMany, {}, "`memories` is missing"),
        (protocol.AddMany, {"memories": [{}]}, "`memories[0].content` is missing"),
        (protocol.AddMany, {"memories": [{"content": "x", "kind": 1}]}, "`memories[0]` has no field `kind`"),
        (protocol.AddMany, {"memories": [None]}, "`memories[0]` must be an object with names and values, not empty"),
    ],
)
def test_a_misfit_is_explained_in_a_persons_words(shape: Any, value: dict[str, Any], sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"method": protocol.method_name(shape), **value}, shape)
    assert explain_misfit(refused.value, shape) == sentence


def test_a_long_value_is_quoted_in_part() -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"method": "search", "mode": "x" * 100_000}, protocol.Search)
    sentence = explain_misfit(refused.value, protocol.Search)
    assert sentence.startswith("`mode` must be one of hybrid, lexical, dense, not 'xxx")
    assert len(sentence) < 1200
