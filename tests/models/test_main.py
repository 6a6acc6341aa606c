"""`python -m memoryd.models`: what it prints and how it ends."""

import json
from pathlib import Path

import pytest

from memoryd.models import CATALOG, DEFAULT, import_directory
from memoryd.models.__main__ import Reporter, main


def test_list_has_the_catalog_and_the_imported(
    checkpoint: Path, models_dir: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    import_directory(checkpoint, models_dir, None)
    assert main(["list", "--json", "--dir", str(models_dir)]) == 0
    rows = {row["name"]: row for row in json.loads(capfdbinary.readouterr().out)}
    assert list(rows) == [*CATALOG, "tiny"]
    assert (rows["tiny"]["installed"], rows[DEFAULT]["installed"], rows[DEFAULT]["default"]) == (True, False, True)
    languages = [rows[name]["languages"] for name in (DEFAULT, "multilingual-e5-small", "tiny")]
    assert languages == [["English"], [], None]
    assert (rows["multilingual-e5-small"]["max_tokens"], rows["tiny"]["max_tokens"]) == (512, 256)


def test_import_prints_the_folder(checkpoint: Path, models_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(checkpoint), "--name", "mine", "--dir", str(models_dir)]) == 0
    printed = capfd.readouterr()
    assert printed.out == f"{models_dir / 'mine'}\n"
    assert [json.loads(line)["stage"] for line in printed.err.splitlines()] == [
        "convert",
        "check",
        "calibrate",
        "ready",
    ]


def test_a_failure_is_one_sentence_and_code_1(models_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["pull", "nothing", "--dir", str(models_dir)]) == 1
    printed = capfd.readouterr()
    assert (printed.out, printed.err.count("\n"), printed.err[:7] == "memctl:") == ("", 1, False)


def test_on_a_terminal_a_failure_looks_as_all_of_memctl(
    models_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["import", "/nothere", "--dir", str(models_dir)]) == 1
    assert capsys.readouterr().err == "memctl: /nothere is not a folder.\n"


def test_reports_of_one_stage_are_thinned_out(capsys: pytest.CaptureFixture[str]) -> None:
    report = Reporter()
    for done in range(1001):
        report("download", done, 1000)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[0] == {"stage": "download", "done": 0, "total": 1000}
    assert lines[-1] == {"stage": "download", "done": 1000, "total": 1000}
    assert len(lines) < 100


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    report = Reporter()
    report("download", 1, 2)
    report("ready", 1, 1)
    drawn = capsys.readouterr().err
    assert "#" * 15 + " " * 15 in drawn
    assert drawn.endswith("]\n")
