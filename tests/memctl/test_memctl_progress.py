import io

import pytest

from memoryd.client.programs.memctl.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_is_drawn_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressBar("work", 2) as progress:
        progress.update(1)
        progress.update(2)
    assert "work " + "█" * 15 in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
