"""No regular expression of the project takes much longer than the text is long, whatever the text.

`re` holds the interpreter while it matches: a pattern that backtracks stops every client, and no signal ends it.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pattern_timing import Bound, find_slow_text

from each import each
from memoryd.client.credentials import redact
from memoryd.client.programs.importing import basic_memory, markdown
from memoryd.client.programs.sessions import building
from memoryd.client.text_match import Wording
from memoryd.daemon.conversations import gate
from memoryd.daemon.language import digesting, questions, rating
from memoryd.daemon.workspaces import editing

pytestmark = pytest.mark.slow

# Patterns that need a look at how they are used: by which methods, and for texts of which length at most. Names are
# beginnings; the first row that fits counts.
REVIEWED = {
    "client.credentials.named._CONNECTIONS": Bound(("match",)),  # once for each name
    "client.credentials.redacting._ENTRY": Bound(("match",)),  # once for each line of a manifest
    "client.programs.sessions.building._LAST_FIELDS": Bound(("search",), building.END_BYTES),
    "client.programs.sessions.claude_code_prompts.FIRST": Bound(("match",)),
    "daemon.conversations.gate.NOISE": Bound(("fullmatch",)),
    "daemon.language.questions._CLAUSE": Bound(("finditer",), questions.MOST_UNKNOWN_CHARS),
    "daemon.language.questions._UNKNOWN": Bound(("fullmatch",), questions.MOST_UNKNOWN_CHARS),
    "daemon.language.rating.FEATURES": Bound(("search",), rating.READ_CHARS),
    "daemon.context.counting._LAST_": Bound(("match",)),  # once for each slice
}
# Functions that make patterns as they run, and patterns as they make them; empty where a table or the user has them.
BUILT: dict[str, list[str]] = {
    "client.patterns.__getattr__": [],  # what globals have
    "client.credentials.rules._make": [],  # RULES
    "client.credentials.named._connect": [],  # _CONNECTIONS
    "daemon.conversations.gate._lines": [],  # NOISE
    "daemon.agreement.words._compile_phrases": [],  # CHANGE, PENDING, …
    "client.credentials.redacting.allow_list": [],  # settings: the user's own
    "daemon.config._check": [],  # settings
    "client.credentials.private._skip_code": [r"(?m:^[ \t]*+`{3,}+[ \t]*+$)", r"(?<!`)``(?!`)"],
    "client.programs.memctl.sections._cut": [
        r'(?m)^[ \t]*\[[ \t]*shared[ \t]*\.[ \t]*"?acme"?[ \t]*\].*\n?'
        r"(?:(?:(?!\[).*\n)*(?![ \t\r]*(?:#|$)|\[).+\n?)?"
    ],
    "client.programs.memctl.snippet._find_marks": [re.escape("a.b*")],
    "client.programs.systemd.units._replace": ["(?m)^ExecStart=.*$"],
    "client.text_match.__init__": [Wording(" a a-a  b ", is_json=quoted)._pattern.pattern for quoted in (False, True)],
}
# What reads texts of any length.
READERS: dict[str, Callable[[str], Any]] = {
    "gate": gate.check,
    "importance": rating.importance,
    "credentials": redact,
    "summary": lambda text: digesting.summary([("user", text)], "", 200),
    "import": basic_memory._split_parts,
    "entries": lambda text: list(markdown.split_entries(text)),
    "notes": lambda text: editing.append(text, text),
}
CATASTROPHES = {
    "exponential": (r"(?:a+)+b", "match"),
    "alternatives that overlap": (r"(?:x[\w-]|[\w-])*!", "fullmatch"),
    "dots that can be cut in two ways": (r"(?i:retrying|retry)(?: attempt)?(?:…|\.{2,3})+[^a-z]*", "fullmatch"),
    "cubic": (r"^\s*[-*]\s+([^\[]*?)\s*\[\[", "match"),
    "quadratic": (r"-(.*?)[ #]*$", "match"),
    "quadratic from each place on": (r"\s+$", "finditer"),
    "quadratic from each of many anchors": (r"\beyJ[\w-]{10,}\.eyJ[\w-]{8,}", "finditer"),
    "quadratic up to a reference": (r"<(a|b)>.*?</\1>", "finditer"),
    "quadratic in a lookahead": (r"(?=\w*\d)[a-z]", "finditer"),
}
LINEAR = {
    "possessive": (r"(?:a++)+b", "match"),
    "atomic": (r"(?>\s+)x", "match"),
    "parts that cannot overlap": (r"(?:\w+\.)+Error\b", "fullmatch"),
    "bounded": (r"\w{1,20}!", "finditer"),
    "a run with one beginning": (r"(?<!\s)\s+$", "finditer"),
}
PUMPS = (
    "Retrying" + 90 * "." + " failed",
    "ECONNREFUSED" + 300 * ":",
    "ECONNREFUSED [2001:db8:85a3::8a2e:370:7334]:5432 x",
)


@each("name", CATASTROPHES)
def test_a_pattern_that_backtracks_far_is_found(name: str) -> None:
    pattern, method = CATASTROPHES[name]
    assert find_slow_text(re.compile(pattern), [method])


@each("name", LINEAR)
def test_a_pattern_in_linear_time_is_left_alone(name: str) -> None:
    pattern, method = LINEAR[name]
    assert find_slow_text(re.compile(pattern), [method]) is None


@pytest.mark.timeout(1800)  # the process has a limit of its own, of processor time
def test_no_pattern_takes_much_longer_than_its_text_is_long() -> None:
    """Every pattern that a module has, in tables too."""
    command = [sys.executable, str(Path(__file__).with_name("pattern_timing.py")), json.dumps(REVIEWED)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)  # its last line names a pattern that hung
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[0]["patterns"] > 200
    assert told[-1] == {"unused": []}, f"told last: {told[-1]}"
    assert set(told[0]["built"]) == set(BUILT), "functions that make patterns: give some of theirs in BUILT"
    slow = [f"{row['name']}: {row['slow']}" for row in told if "slow" in row]
    assert not slow, "\n".join(slow)


@each("name", BUILT)
def test_a_pattern_that_a_function_makes_is_linear(name: str) -> None:
    assert [found for pattern in BUILT[name] if (found := find_slow_text(re.compile(pattern), ["match"]))] == []


HOSTILE = [
    pump * (65_536 // len(pump)) for pump in (" ", "\n ", "“a ", "is: kept xing ", "a.", "_", "-", "`a", "1.", "my x ")
]


@each("name", READERS)
def test_what_reads_texts_of_any_length_is_done_with_long_ones_soon(name: str) -> None:
    for text in (*HOSTILE, *PUMPS, "- " * 32_768 + "x", *(f"{pump}\n" * 300 for pump in PUMPS)):
        begin = time.thread_time()
        READERS[name](text)
        assert time.thread_time() - begin < 2, text[:80]
