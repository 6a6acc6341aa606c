"""What the demo reads from files."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memoryd.client.demo.material import choose_passages, list_documented, list_files, split_paragraphs


def test_paragraphs_leave_out_headings_tables_and_code() -> None:
    text = "# Title\n\nFirst\nparagraph.\n\n```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n\nSecond.\n"
    assert list(split_paragraphs(text)) == [(3, "First\nparagraph."), (14, "Second.")]
    assert list(split_paragraphs("```\nnever closed\n\nx")) == []
    assert list(split_paragraphs("")) == []


def test_functions_and_classes_with_a_docstring_are_found() -> None:
    source = '"""The module."""\n\n'
    source += 'class A:\n    """A class."""\n\n    def f(self):\n        """A method."""\n\ndef bare(): ...\n'
    assert list(list_documented(source)) == [(1, "The module."), (3, "A: A class."), (6, "f: A method.")]


def test_hidden_and_generated_folders_and_other_files_are_left_out(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", ".git/c.md", "node_modules/d.md", "in/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x" * 80)
    assert {str(path.relative_to(tmp_path)) for path in list_files(tmp_path)} == {"a.md", "in/e.py"}


def test_passages_are_spread_over_all_files_and_broken_ones_do_no_harm(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.md").write_text(f"{'word ' * 20}{number}")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "binary.md").write_bytes(b"\xff" * 100)
    found = choose_passages(tmp_path, 5)
    assert [passage.file for passage in found] == ["0.md", "2.md", "4.md", "6.md", "8.md"]
    assert len(choose_passages(tmp_path, 100)) == 10
    assert choose_passages(tmp_path / "nothing") == []


def demo(folder: Path, *options: str, models: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the demo, without a model unless `models` has one, its temporary folders below `folder`."""
    environment = {
        **os.environ,
        "MEMORYD_OFFLINE": "1",
        "MEMORYD_MODEL_DIR": str(models or folder / "none"),
        "TMPDIR": str(folder),
        **variables,
    }
    command = [sys.executable, "-m", "memoryd.client.memctl", "demo", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.slow
def test_the_decay_demo_shows_both_rankings_and_leaves_nothing_behind(folder: Path) -> None:
    done = demo(folder, "--decay")
    assert done.returncode == 0, done.stderr
    assert "words only" in done.stderr
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert "today's note is number 1" in done.stdout
    assert "the reading list, which has no date, number 2" in done.stdout
    assert list(folder.iterdir()) == []


def test_the_decay_demo_prints_one_document(folder: Path) -> None:
    figures = msgspec.json.decode(demo(folder, "--decay", "--json").stdout)
    assert [ranking["profile"] for ranking in figures["rankings"]] == ["default", "memweave"]
    assert figures["removed"] is True
    assert figures["model"] == "words only"


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["[model]\nfetch = false\n", "[network]\noffline = true\n"])
def test_the_demo_fetches_no_model_where_the_settings_forbid_it(setting: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(setting)
    nowhere = dict.fromkeys(("HF_ENDPOINT", "PIP_INDEX_URL"), "http://127.0.0.1:9")
    done = demo(folder, "--decay", MEMORYD_OFFLINE="", MEMORYD_CONFIG=str(tmp_path / "config.toml"), **nowhere)
    assert done.returncode == 0
    said = setting.splitlines()[1].removesuffix(" = true")
    assert f"no embedding model (none is installed, and `{said}` is set): the demo searches by words" in done.stderr
    assert list(folder.iterdir()) == []
