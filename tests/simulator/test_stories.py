"""A year of four agents, played to a real daemon: what its stories come to."""

from pathlib import Path

import pytest
from scripted import play_year
from scripted.telling import heading, month_line


def test_a_month_of_the_year_is_one_line_of_a_terminal() -> None:
    counts = {"observed": 9999, "skipped": 999, "dropped": 999, "L0": 99, "nodes": 999, "expired": 999}
    lines = [month_line({"month": "Nov 2026", "L1": n, "L2": n, **counts}) for n in (0, 1, 999)]
    assert [len(line) for line in (heading(), *lines)] == [len(heading())] * 4
    assert len(heading()) <= 100


@pytest.fixture
def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that temporary files are in."""
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("MEMORYD_OFFLINE", "1")
    return folder


@pytest.mark.slow
def test_without_a_model_what_ought_to_be_gone_is_gone(
    temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(temporary / "none"))
    play_year(quiet=False)
    shown = capsys.readouterr().out
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert "STILL" not in shown
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_decision_is_found_first_and_what_expired_is_not(
    temporary: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir))
    figures, _ = play_year(quiet=True)
    stories = figures["stories"]
    assert (stories["decision"]["tier"], stories["decision"]["rank"]) == ("L2", 1)
    assert (stories["expired"]["rank"], stories["expired"]["readable"]) == (None, True)
    assert stories["expired"]["history"] == ["add", "job:expire"]
    assert len(figures["months"]) >= 12
    assert figures["months"][-1]["nodes"] > 10
