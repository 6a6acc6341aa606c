"""Which texts are turns of talk: by their type, what is known of them, and a speaker before the text."""

from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.daemon.language.talk import find_speaker, is_log, is_talk


@each(
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


@each(
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


@each(
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


@each(
    "line",
    [
        "2026-05-29T20:27:{n:02}Z gateway: listens",
        "[2026-05-29] listens {n}",
        "May 29 20:27:{n:02} host sshd[12]: accepted",
        "WARN  the gateway listens on {n}",
        "[info] the gateway listens on {n}",
        "src/gateway/listen{n}.py: ok",
        '  File "app/main.py:{n}", in listen',
    ],
)
def test_many_lines_with_times_levels_or_paths_are_a_log(line: str) -> None:
    log = "\n".join(line.format(n=number) for number in range(12))
    assert is_log(log)
    assert is_log(f"it fails since yesterday, any idea:\n\n```\n{log}\n```")
    assert not is_log(log[: log.index("\n") * 5])  # some lines may be quoted for what they say


@each(
    "line",
    [
        "We meet at 12:30, and the {n}th of us brings cake.",
        "- `client/listen{n}.py` listens to the gateway",
        "Read and/or write the {n}th page; an error is shown to nobody.",
        "{n}. The gateway listens on port 9090.",
        "",
    ],
)
def test_many_lines_of_prose_or_of_a_list_are_no_log(line: str) -> None:
    assert not is_log("\n".join(line.format(n=number) for number in range(40)))
