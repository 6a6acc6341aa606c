"""Real text for the demo: paragraphs of Markdown files and documented functions and classes of Python files."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAX_PASSAGES = 300
MIN_CHARACTERS, MAX_CHARACTERS = 60, 1200
MAX_FILE_BYTES = 500_000
SKIPPED = frozenset({"node_modules", "build", "dist", "__pycache__", "site-packages"})
_FENCE = re.compile(r"```.*?(```|\Z)|~~~.*?(~~~|\Z)", re.DOTALL)


class Passage(NamedTuple):
    """A piece of a file."""

    file: str
    line: int
    text: str


def choose_passages(root: Path, limit: int = MAX_PASSAGES) -> list[Passage]:
    """Return up to `limit` passages of the files below `root`, spread evenly over all that were found."""
    found = [passage for path in sorted(list_files(root)) for passage in _read_file(path, str(path.relative_to(root)))]
    step = max(len(found) / limit, 1.0)
    return [found[int(at * step)] for at in range(min(limit, len(found)))]


def list_files(root: Path) -> Iterator[Path]:
    """Yield the `.md` and `.py` files below `root`, hidden and generated folders left out."""
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in SKIPPED]
        for name in names:
            path = Path(folder, name)
            if path.suffix in (".md", ".py") and path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                yield path


def _read_file(path: Path, name: str) -> list[Passage]:
    try:
        text = path.read_text("utf-8")
        found = list(split_paragraphs(text) if path.suffix == ".md" else list_documented(text))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return []
    return [Passage(name, line, passage[:MAX_CHARACTERS]) for line, passage in found if len(passage) >= MIN_CHARACTERS]


def split_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each paragraph of Markdown; headings, tables and code are left out."""
    plain = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    line = 1
    for part in re.split(r"(\n\s*\n)", plain):
        if part.strip() and part.lstrip()[0] not in "#|<":
            yield line + part[: len(part) - len(part.lstrip())].count("\n"), part.strip()
        line += part.count("\n")


def list_documented(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each documented function, class and module of Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and isinstance(node, ast.Module):
                yield 1, text
            elif text and not isinstance(node, ast.Module):
                yield node.lineno, f"{node.name}: {text}"
