import pytest
from fake_daemon import Terminal

from each import each
from memoryd.client.programs.memctl import text_table as module
from memoryd.client.programs.memctl.output import make_printable, say
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import (
    count_text,
    draw_bar,
    format_fields,
    format_table,
    ms_text,
    pad,
    shorten,
    size_text,
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


def test_small_things() -> None:
    assert [pad("a", 3), pad("a", 3, right=True)] == ["a  ", "  a"]
    assert [draw_bar(0.0, 4), draw_bar(0.5, 4), draw_bar(1.0, 4), draw_bar(7.0, 4), draw_bar(0.125 / 4, 4)] == [
        "",
        "██",
        "████",
        "████",
        "▏",
    ]
    assert [ms_text(0.123), ms_text(12.34), ms_text(1234.5)] == ["0.12", "12.3", "1234"]
    assert [size_text(12), size_text(1500), size_text(2_500_000_000)] == ["12 B", "1.5 kB", "2.5 GB"]
    assert [count_text(1, "memory"), count_text(2, "memory"), count_text(0, "file")] == [
        "1 memory",
        "2 memories",
        "0 files",
    ]
    assert format_fields([("a", "1"), ("long", "2")]) == "  a     1\n  long  2"


def test_on_a_terminal_the_bar_is_drawn_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressBar("work", 2) as progress:
        progress.update(1)
        progress.update(2)
    assert "work " + "█" * 15 in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
