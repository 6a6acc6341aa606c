"""Rules about the structure of the source: imports, and where SQL may be."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from imports import CHECKOUT, OURS, importers, list_imports, parse
from memoryd.daemon.store.tiers import HOT, TIERS, WAITING

STATEMENT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE FROM|PRAGMA|WHERE|ORDER BY)\b|\b[a-z]\.\w+ (=|<>|<|>|<=|>=|IN|IS|LIKE) "
)


@cache
def modules() -> dict[str, ast.Module]:
    """Return the tree of each module by its path."""
    paths = sorted(path for folder in OURS for path in (CHECKOUT / folder).rglob("*.py"))
    return {str(path.relative_to(CHECKOUT)): parse(path) for path in paths}


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that is no docstring."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def speaks_sql(path: str) -> bool:
    """Whether a module may have SQL: those of the store, arrays in RAM that are read from it, tables of a room.

    And `upkeep`, which works on whole files of databases.
    """
    return path.startswith(("daemon/store/", "daemon/arrays/", "daemon/upkeep/")) or "/tables/" in path


def test_only_the_store_the_tables_of_rooms_and_readers_of_other_programs_import_sqlite() -> None:
    found = importers("apsw", "sqlite_vec", "sqlite3")
    assert {path for path in found if not speaks_sql(path)} <= {
        "client/programs/importing/foreign_database.py",
        "client/programs/sessions/opencode.py",
    }


@pytest.mark.slow
def test_what_parses_files_in_a_child_process_imports_nothing_of_the_daemon() -> None:
    found = [
        f"{path}: {name}"
        for path in modules()
        if path.startswith("daemon/workspaces/documents/")
        for name in list_imports(CHECKOUT / path)
        if name.startswith("memoryd.daemon.") and not name.startswith("memoryd.daemon.workspaces.documents")
    ]
    assert found == []


def test_only_the_store_and_the_tables_of_rooms_have_sql() -> None:
    found = [
        f"{path}:{line}"
        for path, tree in modules().items()
        if path.startswith("daemon/") and not speaks_sql(path)
        for line, text in strings(tree)
        if STATEMENT.search(text)
    ]
    assert found == [], "move the statement into a function of a module in daemon/store, or of the tables of its room"


def test_no_modules_import_each_other() -> None:
    names = {f"memoryd.{path[:-3].replace('/', '.').removesuffix('.__init__')}": path for path in modules()}
    graph = {
        module: {name if name in names else name.rpartition(".")[0] for name in list_imports(CHECKOUT / path)}
        & (names.keys() - {module})
        for module, path in names.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"move what both need into a module of its own: {' <- '.join(error.args[1])}")


def test_each_package_of_the_daemon_is_a_layer() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in settings if one.get("containers") == ["memoryd.daemon"])
    listed = {name for layer in layers for name in layer.replace("|", " ").split()}
    there = {path.name.removesuffix(".py") for path in (CHECKOUT / "daemon").iterdir() if path.suffix in ("", ".py")}
    assert there - listed == {"__init__", "__pycache__"} & there


def test_names_of_tiers_are_written_in_the_table_alone() -> None:
    # A schema that was shipped does not change; names of origins in a trace are no tiers.
    exempt = {f"daemon/{name}" for name in ("store/tiers.py", "store/migrations.py", "search/traces.py")}
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        if path.startswith("daemon/") and path not in exempt
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in TIERS.keys() - {HOT, WAITING}
    ]
    assert found == [], "import the tier's name from daemon/store/tiers.py; a job is not called like a tier"
