import pytest

from each import each
from memoryd.client.programs.memctl import text_table as module
from memoryd.client.programs.memctl.output import make_printable, say
from memoryd.client.programs.memctl.text_table import (
    format_table,
    shorten,
    to_one_line,
    width,
    wrap,
)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "columns", lambda: 40)


@each(
    ("text", "limit", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("ab cd", 4, "ab…"),
        ("ab", 0, ""),
    ],
)
def test_shortened_text_fits_and_shows_that_it_was_cut(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected
    assert width(shorten(text, limit)) <= limit


def test_only_the_flexible_column_is_shortened_to_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    text = format_table(["ID", "CONTENT"], [["12345678", "x" * 100], ["1", "short"]])
    lines = text.splitlines()
    assert [width(line) for line in lines[:2]] == [17, 40]
    assert lines[1] == "12345678  " + "x" * 29 + "…"
    assert lines[2] == "1         short"


def test_a_cell_is_one_line_and_cannot_steer_the_terminal() -> None:
    assert to_one_line(" a\n\tb  c ") == "a b c"
    assert "\x1b" not in to_one_line("\x1b[31mred\x1b]0;title\x07")
    assert make_printable("a\nb\tc") == "a\nb\tc"
    assert make_printable("a\x9b\u202eb") == "a\ufffd\ufffdb"


def test_nothing_that_is_shown_steers_the_terminal_but_colours(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[1;31mred\x1b[0m\tnamespace a\x9b31m/b\u202e\x7f\x1b]0;title\x07\x1b[2J\nend")
    shown = "\x1b[1;31mred\x1b[0m\tnamespace a\ufffd31m/b\ufffd\ufffd\ufffd]0;title\ufffd\ufffd[2J\nend\n"
    assert capsys.readouterr().out == shown


def test_wrapped_text_has_so_many_lines_at_most() -> None:
    assert wrap("one two three four", 9, 3) == ["one two", "three", "four"]
    assert wrap("one two three four", 9, 2) == ["one two", "three fo…"]
    assert wrap("x" * 20, 9, 2) == ["x" * 8 + "…"]
    assert wrap("", 9, 2) == [""]
