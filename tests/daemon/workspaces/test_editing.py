"""Notes are added in the style that a file has, and no other character of it changes."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from each import each
from memoryd.daemon.workspaces.editing import append, cut, find_item, split

STYLES = [
    ("", "- x\n"),
    ("\n\n", "- x\n\n\n"),
    ("# Log\n", "# Log\n\n- x\n"),
    ("Log\n===\n", "Log\n===\n\n- x\n"),
    ("- a\n- b\n", "- a\n- b\n- x\n"),
    ("- a\n\n- b\n", "- a\n\n- b\n\n- x\n"),
    ("* a\n  * inner\n", "* a\n  * inner\n* x\n"),
    ("+   wide\n", "+   wide\n+   x\n"),
    (" - a\n", " - a\n - x\n"),
    ("-\ta\n", "-\ta\n-\tx\n"),
    ("1. a\n2. b\n", "1. a\n2. b\n3. x\n"),
    ("9) a\n", "9) a\n10) x\n"),
    ("- [ ] a\n", "- [ ] a\n- x\n"),
    ("- a\nlazy\n", "- a\nlazy\n- x\n"),
    ("- a\n\n  more of a\n", "- a\n\n  more of a\n- x\n"),
    ("One.\n", "One.\n\nx\n"),
    ("One.\n\nTwo.\n", "One.\n\nTwo.\n\nx\n"),
    ("- a\n\nOne.\n", "- a\n\nOne.\n\nx\n"),
    ("One.\n\nTwo.\n\n## Later\n", "One.\n\nTwo.\n\n## Later\n\nx\n"),
    ("* a\n\n## Later\n", "* a\n\n## Later\n\n* x\n"),
    ("- a\n\n\n", "- a\n- x\n\n\n"),
    ("- a", "- a\n- x"),
    ("One.", "One.\n\nx"),
    ("- a\r\n- b\r\n", "- a\r\n- b\r\n- x\r\n"),
    ("One.\r\n\r\nTwo.", "One.\r\n\r\nTwo.\r\n\r\nx"),
    ("\ufeff- a\n", "\ufeff- a\n- x\n"),
    ("\ufeff", "\ufeff- x\n"),
    ("---\ntype: lesson\n---\n", "---\ntype: lesson\n---\n\n- x\n"),
    ("---\ntype: lesson\n---", "---\ntype: lesson\n---\n\n- x"),
    ("---\n- a\n", "---\n- a\n- x\n"),
    ("```\ncode\n```\n", "```\ncode\n```\n\n- x\n"),
    ("```\ncode\n", "- x\n\n```\ncode\n"),
    ("- a\n\n~~~~\n~~~\n", "- a\n- x\n\n~~~~\n~~~\n"),
    ("# A\n```\ncode\n", "# A\n\n- x\n\n```\ncode\n"),
    ("- a\n  ```\n  code\n", "- a\n  ```\n  code\n- x\n"),
    ("One.\n<!-- two\n", "One.\n\nx\n\n<!-- two\n"),
    ("<script>\nf()\n", "- x\n\n<script>\nf()\n"),
    ("<!-- done -->\n", "<!-- done -->\n\n- x\n"),
    ("| a |\n|---|\n| b |\n", "| a |\n|---|\n| b |\n\n- x\n"),
    ("> quoted\n", "> quoted\n\n- x\n"),
    ("* * *\n", "* * *\n\n- x\n"),
    ("    code\n", "    code\n\n- x\n"),
    ("`` ` ``\n", "`` ` ``\n\nx\n"),
]


@each(("text", "expected"), STYLES)
def test_a_note_is_added_in_the_style_of_the_file(text: str, expected: str) -> None:
    assert append(text, "x").text == expected


@each(
    ("text", "note", "expected"),
    [
        ("- a\n", "one\ntwo\n\nthree", "- a\n- one\n  two\n\n  three\n"),
        ("1. a\n", "one\n\n\ttwo", "1. a\n2. one\n\n   \ttwo\n"),
        ("One.\n", "one\n\ntwo\n", "One.\n\none\n\ntwo\n"),
        ("- a\r\n", "one\ntwo", "- a\r\n- one\r\n  two\r\n"),
        ("- a\n", "\n\none\r\ntwo  \n\n", "- a\n- one\n  two\n"),
        ("- a\n", "- one\n- two", "- a\n- one\n- two\n"),
        ("- a\n", "## Heading\n\ntext", "- a\n\n## Heading\n\ntext\n"),
        ("- a\n", "```\ncode\n```", "- a\n\n```\ncode\n```\n"),
        ("- a\n", "> quoted", "- a\n\n> quoted\n"),
        ("- a\n", "    code", "- a\n\n    code\n"),
    ],
)
def test_a_note_of_several_lines_stays_readable(text: str, note: str, expected: str) -> None:
    assert append(text, note).text == expected


LINES = """
- item|* star|  - inner|1. one|2) two|para|lazy text|# Head|Under|===|---|***|```|````|~~~|  ```|> quote|    code|<!--
-->|<div>|</div>|<pre>|</pre>|   |+ plus|- [ ] task|[ref]: /url|type: x|`|-
"""
PARTS = st.sampled_from(["", "", "| a |", "|---|", "\tcode", "\x0c", "\u2028", *re.split(r"[|\n]", LINES)])
documents = st.builds(
    lambda lines, ending, mark, last: mark + ending.join(lines) + (ending if last else ""),
    st.lists(PARTS, max_size=14),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["", "", "\ufeff"]),
    st.booleans(),
)
# A CR at the very end would be taken for half a line end.
arbitrary = st.text(st.sampled_from("ab-*#>`~|:=1.) \t\r\n<!\ufeff"), max_size=60).filter(
    lambda text: text[-1:] != "\r"
)


def _filled(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line for line in split(text.lstrip("\ufeff")) if line.strip(" \t\r\n")]


@given(documents | arbitrary)
@example("---\n---\n")
@settings(max_examples=300)
@pytest.mark.slow
def test_nothing_else_changes_and_taking_it_out_gives_the_file_back(text: str) -> None:
    edit = append(text, "zzz note")
    lines = split(edit.text)
    assert edit.start_line == edit.end_line
    assert lines[edit.start_line - 1].rstrip("\r\n").lstrip("\ufeff").endswith("zzz note")
    there, gone = cut(edit.text, edit.start_line, edit.end_line)
    assert "zzz note" in gone
    # One blank line more or less may stand where blank lines met.
    assert _filled(there.text) == _filled(text)
    inserted = len(edit.text) - len(text)
    assert inserted <= len("zzz note") + 24
    if text.strip("\ufeff"):
        assert edit.text.endswith(("\n", "\r\n")) == text.endswith("\n")
    assert edit.text.startswith("\ufeff") == text.startswith("\ufeff")
    assert ("\r\n" in text) or ("\r\n" not in edit.text)


@given(documents)
@example("- item\n  - inner\n</pre>\n<pre>")
@example("- item\n  1. - inner\n</pre>\n<pre>\n")
@example("---\n</pre>\n```\n\n```")
@settings(max_examples=300)
@pytest.mark.slow
def test_a_note_is_never_inside_code_or_html(text: str) -> None:
    edit = append(text, "zzz note")
    front = re.match(r"---[ \t]*\r?\n(.*?\r?\n)??(---|\.\.\.)[ \t]*(\r?\n|$)", text.lstrip("\ufeff"), re.S)
    tokens = MarkdownIt().parse(edit.text.lstrip("\ufeff")[front.end() if front else 0 :])
    swallowed = [
        token.type
        for token in tokens
        if token.type in ("fence", "code_block", "html_block") and "zzz note" in token.content
    ]
    assert swallowed == []


@given(
    documents, st.text(st.sampled_from("ab \n-#`>\r\t1."), min_size=1, max_size=30).filter(lambda note: note.strip())
)
@settings(max_examples=60)
def test_the_lines_that_are_told_are_those_of_the_note(text: str, note: str) -> None:
    edit = append(text, note)
    told = [line.strip() for line in split(edit.text)[edit.start_line - 1 : edit.end_line]]
    given_lines = [
        line.strip() for line in note.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip().split("\n")
    ]
    assert len(told) == len(given_lines)
    assert told[-1].endswith(given_lines[-1])
    assert told[0].lstrip("\ufeff").endswith(given_lines[0])


@each(
    ("text", "lines", "left", "gone"),
    [
        ("- a\n- b\n- c\n", (2, 2), "- a\n- c\n", "- b\n"),
        ("a\n\nb\n\nc\n", (3, 3), "a\n\nc\n", "b\n\n"),
        ("a\n\nb\n", (3, 3), "a\n", "\nb\n"),
        ("a\n\nb", (3, 3), "a", "\nb"),
        ("a\n\nb\n", (1, 1), "b\n", "a\n\n"),
        ("a\n", (1, 1), "", "a\n"),
        ("a", (1, 1), "", "a"),
        ("a\r\n\r\nb\r\n", (3, 3), "a\r\n", "\r\nb\r\n"),
        ("a\nb\nc\nd\n", (2, 3), "a\nd\n", "b\nc\n"),
    ],
)
def test_lines_are_taken_out_whole(text: str, lines: tuple[int, int], left: str, gone: str) -> None:
    edit, removed = cut(text, *lines)
    assert (edit.text, removed) == (left, gone)
    assert "".join(split(text)[edit.start_line - 1 : edit.end_line]) == gone


@each(
    ("text", "line", "expected"),
    [
        ("- a\n- b\n", 1, (1, 1)),
        ("- a\n  more\n\n  and more\n- b\n", 1, (1, 4)),
        ("- a\n  - x\n  - y\n- b\n", 1, (1, 3)),
        ("- a\n  - x\n    more\n  - y\n", 2, (2, 3)),
        ("1. a\n   more\n2. b\n", 1, (1, 2)),
        ("text\nmore\n", 1, (1, 1)),
        ("- a\n\ntext\n", 1, (1, 1)),
    ],
)
def test_an_item_is_its_line_and_what_belongs_to_it(text: str, line: int, expected: tuple[int, int]) -> None:
    assert find_item(text, line) == expected
