"""Values of frameworks as the daemon takes them: every one of JSON comes back equal, or is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.integrations.values import build_content, decode, encode, escape, escape_name, restore
from workbench import Daemon

texts = st.text(st.one_of(st.characters(exclude_categories=[]), st.sampled_from("\0\n\ud83d\ude00\ufdd00d%")))
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner)),
)


@pytest.mark.slow
@given(values)
def test_a_value_comes_back_equal(value: Any) -> None:
    assert decode(encode(value)) == value


@given(texts, texts)
def test_texts_stay_different_and_names_have_no_control_characters(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (escape_name(one) == escape_name(other)) == (one == other)
    assert restore(escape(one)) == restore(escape_name(one)) == one
    assert "\0" not in escape(one)
    assert not any(ord(character) < 32 for character in escape_name(one))
    escape_name(one).encode()


@given(texts)
def test_content_is_text_of_the_same_words(text: str) -> None:
    content = build_content(text)
    content.encode()
    assert "\0" not in content
    assert build_content(content) == content


def test_what_json_does_not_have_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in ({1: 2}, {"a": {1}}, [b"bytes"], 2**63, object(), circle):
        with pytest.raises(ValueError, match=r"JSON|text|bits|deep"):
            encode(value)


def test_the_daemon_gives_it_back(daemon: "Daemon") -> None:
    value = {"a\0": ["\ud83d", "\ude00", "\ufdd0", "\0"]}
    with daemon.client() as client:
        client.put(escape_name("k\n\0"), build_content("\ud83d\0x"), metadata=encode(value))
        found = client.get(key=escape_name("k\n\0"))
    assert (decode(found.metadata), found.content) == (value, "\ufffd x")
