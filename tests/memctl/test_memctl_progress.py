import io

import pytest

from memoryd.client.programs.memctl.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressBar("work", 2) as progress:
        progress.update(2)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_bar_is_drawn_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressBar("work", 2) as progress:
        progress.update(1)
        progress.update(2)
    assert "work " + "█" * 15 in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_total_of_zero_and_a_closed_stderr_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with ProgressBar("work") as progress:
        progress.update(0, 0)
    assert progress.format_line().endswith("0/0")
