"""What the demo reads from files."""

from pathlib import Path

from memoryd.client.memctl.demo.material import documented, files, paragraphs, passages


def test_paragraphs_leave_out_headings_tables_and_code() -> None:
    text = "# Title\n\nFirst\nparagraph.\n\n```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n\nSecond.\n"
    assert list(paragraphs(text)) == [(3, "First\nparagraph."), (14, "Second.")]
    assert list(paragraphs("```\nnever closed\n\nx")) == []
    assert list(paragraphs("")) == []


def test_functions_and_classes_with_a_docstring_are_found() -> None:
    source = '"""The module."""\n\n'
    source += 'class A:\n    """A class."""\n\n    def f(self):\n        """A method."""\n\ndef bare(): ...\n'
    assert list(documented(source)) == [(1, "The module."), (3, "A: A class."), (6, "f: A method.")]


def test_hidden_and_generated_folders_and_other_files_are_left_out(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", ".git/c.md", "node_modules/d.md", "in/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x" * 80)
    assert {str(path.relative_to(tmp_path)) for path in files(tmp_path)} == {"a.md", "in/e.py"}


def test_passages_are_spread_over_all_files_and_broken_ones_do_no_harm(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.md").write_text(f"{'word ' * 20}{number}")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "binary.md").write_bytes(b"\xff" * 100)
    found = passages(tmp_path, 5)
    assert [passage.file for passage in found] == ["0.md", "2.md", "4.md", "6.md", "8.md"]
    assert len(passages(tmp_path, 100)) == 10
    assert passages(tmp_path / "nothing") == []
