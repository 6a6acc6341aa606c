"""What the source and the tests import, read and not run."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
OURS = ("client", "daemon", "models", "scheduler", "systemd")


def importers(*modules: str, folders: tuple[str, ...] = OURS) -> list[str]:
    """Return the files that import one of these modules or a part of one."""
    paths = sorted(path for folder in folders for path in (CHECKOUT / folder).rglob("*.py"))
    return [
        str(path.relative_to(CHECKOUT)) for path in paths if any(_is_in(name, modules) for name in list_imports(path))
    ]


@cache
def parse(path: Path) -> ast.Module:
    """Return the tree of a file."""
    return ast.parse(path.read_bytes())


@cache
def list_imports(path: Path) -> tuple[str, ...]:
    """Return what a file imports anywhere: for types alone and within functions too."""
    return tuple(_find_imports(parse(path)))


def _find_imports(tree: ast.Module) -> Iterator[str]:
    waiting: list[ast.AST] = [tree]
    while waiting:  # statements alone: most of a tree is expressions
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        waiting += [one for one in ast.iter_child_nodes(node) if isinstance(one, _STATEMENTS)]


def _is_in(name: str, modules: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for module in modules)
