"""Rules about the structure of the source: sizes, imports, and that SQL is in the store alone."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from imports import CHECKOUT, OURS, importers

STORE, SHARED = "daemon/store/", "daemon/shared/"  # SQLite, PostgreSQL
STATEMENT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE FROM|PRAGMA|WHERE|ORDER BY)\b|\b[a-z]\.\w+ (=|<>|<|>|<=|>=|IN|IS|LIKE) "
)
GENERATED = frozenset({"client/methods.py"})
MAX_MODULE, MAX_FUNCTION = 400, 50  # lines
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def modules() -> dict[str, tuple[int, ast.Module]]:
    """Return the lines and the tree of each module by its path."""
    paths = sorted(path for folder in OURS for path in (CHECKOUT / folder).rglob("*.py"))
    texts = {str(path.relative_to(CHECKOUT)): path.read_text() for path in paths}
    return {path: (text.count("\n"), ast.parse(text)) for path, text in texts.items()}


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that is no docstring."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def test_only_the_store_and_the_importers_import_sqlite() -> None:
    found = importers("apsw", "sqlite_vec", "sqlite3")
    assert [path for path in found if not path.startswith(STORE)] == ["client/memctl/importing/database.py"]


def test_only_the_store_has_sql() -> None:
    found = [
        f"{path}:{line}"
        for path, (_, tree) in modules().items()
        if path.startswith("daemon/") and not path.startswith((STORE, SHARED))
        for line, text in strings(tree)
        if STATEMENT.search(text)
    ]
    assert found == [], "move the statement into a function of a module in daemon/store"


def test_no_module_is_too_long() -> None:
    found = {path: lines for path, (lines, _) in modules().items() if lines > MAX_MODULE and path not in GENERATED}
    assert found == {}, f"split what has more than {MAX_MODULE} lines"


def test_no_function_is_too_long() -> None:
    found = {
        f"{path}:{node.lineno} {node.name}": lines
        for path, (_, tree) in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTION) and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION
    }
    assert found == {}, f"split what has more than {MAX_FUNCTION} lines"


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports anywhere: for types alone and within functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_modules_import_each_other() -> None:
    names = {f"memoryd.{path[:-3].replace('/', '.').removesuffix('.__init__')}": path for path in modules()}
    graph = {
        module: {name if name in names else name.rpartition(".")[0] for name in imported(modules()[path][1])}
        & (names.keys() - {module})
        for module, path in names.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"move what both need into a module of its own: {' <- '.join(error.args[1])}")
