"""Rules about the structure of the source: what is where."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from imports import CHECKOUT, importers

STORE = "daemon/store/"
STATEMENT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE FROM|PRAGMA|WHERE|ORDER BY)\b|\b[a-z]\.\w+ (=|<>|<|>|<=|>=|IN|IS|LIKE) "
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of a module that is no docstring."""
    tree = ast.parse(path.read_bytes())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def test_only_the_store_imports_sqlite() -> None:
    assert [path for path in importers("apsw", "sqlite_vec") if not path.startswith(STORE)] == []


def test_only_the_store_has_sql() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for path in sorted((CHECKOUT / "daemon").rglob("*.py"))
        if not str(path.relative_to(CHECKOUT)).startswith(STORE)
        for line, text in texts(path)
        if STATEMENT.search(text)
    ]
    assert found == [], "move the statement into a function of a module in daemon/store"
