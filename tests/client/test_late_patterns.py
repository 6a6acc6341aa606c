"""A pattern that is compiled late is compiled once, at its first use, and answers as the compiled one."""

import re

import pytest

from memoryd.client.patterns import compile_late


def test_a_late_pattern_is_compiled_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: (compiled.append(text), original(text, flags))[1])
    pattern = compile_late(r"(?P<day>\w+)day", re.IGNORECASE)
    assert compiled == []
    assert [match["day"] for match in pattern.finditer("MONDAY, Friday")] == ["MON", "Fri"]
    assert [match["day"] for match in pattern.finditer("sunday")] == ["sun"]
    assert compiled == [r"(?P<day>\w+)day"]


def test_a_pattern_that_is_wrong_is_an_error_at_its_first_use() -> None:
    with pytest.raises(re.error):
        compile_late("(").search("")
