"""Which texts are turns of talk: by their type, what is known of them, and a speaker before the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.language.talk import find_speaker, is_talk


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Nadia: sounds good", "Nadia"),
        ("Nadia Ben Salah: sounds good", "Nadia Ben Salah"),
        ("user: what is the port?", "user"),
        ("**Assistant:** 8443", ""),
        ("**Assistant**: 8443", "Assistant"),
        ("[10:42] Nadia: sounds good", "Nadia"),
        ("Jean-Luc O'Brien: sounds good", "Jean-Luc O'Brien"),
        ("<Nadia>: sounds good", "Nadia"),
        ("李雷: 好的", "李雷"),
    ],
)
def test_a_speaker_stands_before_a_turn(text: str, speaker: str) -> None:
    assert find_speaker(text) == speaker


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nadia leads the mobile team",
        "Decision: tabs, not spaces",
        "Correction: release 2.0 is due on May 19",
        "HX711: wait 400 ms after power-up",
        "SQL: lower-case keywords",
        "LoRaWAN: EU868, OTAA",
        "WIN-2101: labels come out blank",
        "the rule: no deploys on Fridays",
        "The API listens here: https://api.example.com",
        "https://api.example.com",
        "We agreed on four things in the end: less is more",
        "Nadia:\nsounds good",
    ],
)
def test_a_statement_has_no_speaker(text: str) -> None:
    assert find_speaker(text) == ""


@pytest.mark.parametrize(
    ("kind", "metadata", "expected"),
    [
        ("fact", {}, False),
        ("fact", {"role": "lead of the team"}, False),
        ("fact", {"role": "user"}, True),
        ("fact", {"speaker": "Nadia"}, True),
        ("turn", {}, True),
        ("conversation", {}, True),
    ],
)
def test_type_and_metadata_tell_turns(kind: str, metadata: dict[str, str], expected: bool) -> None:
    assert is_talk(kind, metadata, "The limit is five") is expected


@given(st.text())
def test_any_text_can_be_asked_about(text: str) -> None:
    assert find_speaker(text) in text
