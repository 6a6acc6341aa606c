"""`python -m memoryd.models`: what it prints and how it ends."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from memoryd.models import CATALOG, DEFAULT, import_directory, load
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


def test_embed_prints_the_vectors_of_the_texts_on_stdin(
    checkpoint: Path, models_dir: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import_directory(checkpoint, models_dir, None)
    texts = ["a cat", "two cats", "a cat"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(texts).encode())))
    assert main(["embed", "tiny", "--dir", str(models_dir)]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert np.allclose(printed, load("tiny", models_dir).embed_texts(texts), atol=1e-6)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[]")))
    assert main(["embed", "nothing", "--dir", str(models_dir)]) == 1
    assert "nothing" in capfd.readouterr().err


def test_a_failure_is_one_sentence_and_code_1(models_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["pull", "nothing", "--dir", str(models_dir)]) == 1
    printed = capfd.readouterr()
    assert (printed.out, printed.err.count("\n"), printed.err[:7] == "memctl:") == ("", 1, False)


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    report = Reporter()
    report("download", 1, 2)
    report("ready", 1, 1)
    drawn = capsys.readouterr().err
    assert "#" * 15 + " " * 15 in drawn
    assert drawn.endswith("]\n")
