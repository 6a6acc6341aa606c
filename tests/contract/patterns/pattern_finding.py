"""Every regular expression of the project, by name, with the ways in which it is used.

Patterns that are compiled at import are found by walking the globals of all modules; those that functions compile, in
the source. Run in a process of its own, before anything of memoryd was imported, `compiled_at_import` shows whether the
walk missed any.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import memoryd
from memoryd.client.patterns import LatePattern

PACKAGES = ("client", "daemon", "models", "scheduler")
METHODS = ("match", "fullmatch", "search", "finditer")
ANY_USE = ("fullmatch", "finditer")  # which do all that the others do
Text = tuple[str, int]  # of a pattern, and its flags
_IMPORTS = re.compile("^import re$|import compile_late$", re.MULTILINE)
_SCANNING = {"findall": "finditer", "sub": "finditer", "subn": "finditer", "split": "finditer"}


class Used(NamedTuple):
    """A pattern, what it is called in each place, and the methods by which it meets a text."""

    names: tuple[str, ...]
    pattern: re.Pattern[str]
    methods: tuple[str, ...]


@contextmanager
def _unless_foreign(name: str) -> Iterator[None]:
    """Pass over an adapter whose framework is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not name.endswith((".langgraph", ".openai_agents", ".anthropic", ".hermes")) or str(error.name).startswith(
            "memoryd"
        ):
            raise


def modules() -> list[ModuleType]:
    """Import every module and return them; `__main__` of memctl would run it."""
    found = []
    for package in PACKAGES:
        top = importlib.import_module(f"memoryd.{package}")
        found.append(top)
        for info in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if info.name != "memoryd.client.programs.memctl.__main__":
                with _unless_foreign(info.name):
                    found.append(importlib.import_module(info.name))
    return found


def patterns() -> list[Used]:
    """Return the patterns of all modules: those in globals, then those that a function writes out."""
    found: dict[Text, Used] = {}
    for module in modules():
        if _short(module) not in _with_patterns():
            continue
        bound = _bound_names(_short(module))
        own = {name: value for name, value in vars(module).items() if name in bound}
        for name, pattern in _walk(own, "", set()):
            _note(found, f"{_short(module)}{name}", pattern, _methods(_short(module), name))
    for name, pattern, method in _written_in_functions():
        _note(found, name, pattern, (method,))
    return list(found.values())


def _note(found: dict[Text, Used], name: str, pattern: Text, methods: tuple[str, ...]) -> None:
    names, made, known = found.get(pattern, Used((), re.compile(*pattern), ()))
    found[pattern] = Used((*names, name), made, tuple(sorted({*known, *methods})))


def _short(module: ModuleType) -> str:
    return module.__name__.removeprefix("memoryd.")


def _walk(value: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Text]]:
    """Yield the patterns within a value of ours, each with the way that leads to it."""
    if isinstance(value, (re.Pattern, LatePattern)):
        if isinstance(value.pattern, str):
            yield name, (value.pattern, value.flags)
        return
    if id(value) in seen or isinstance(value, (str, bytes, ModuleType)):
        return
    seen.add(id(value))
    for part, inner in _parts(value):
        yield from _walk(inner, f"{name}{part}", seen)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            if not (isinstance(key, str) and key.startswith("__")):
                yield (f".{key}" if isinstance(key, str) else f"[{key}]"), inner
                yield f"[{key} as key]", key
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{field}", getattr(value, field)) for field in value._fields)
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{at}]", inner) for at, inner in enumerate(value))
    elif isinstance(value, FunctionType):
        yield from ((".defaults", value.__defaults__), (".closure", [_held(cell) for cell in value.__closure__ or ()]))
    elif hasattr(value, "__wrapped__"):
        yield "", value.__wrapped__
    elif getattr(type(value), "__module__", "").startswith("memoryd") or _is_our_class(value):
        names = [*getattr(value, "__struct_fields__", ()), *getattr(value, "__dict__", {})]
        yield from ((f".{field}", getattr(value, field, None)) for field in names if not field.startswith("__"))


def _is_our_class(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith("memoryd")


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


# How they are used ---------------------------------------------------------------------------------------------------


@cache
def sources() -> dict[str, Path]:
    """Return the file of every module by its name."""
    root = Path(memoryd.__path__[0])
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return {_dotted(path.relative_to(root)): path for path in paths}


@cache
def _with_patterns() -> list[str]:
    """Return the modules that have the module `re`, or patterns that are compiled late."""
    return [module for module, path in sources().items() if _IMPORTS.search(path.read_text())]


@cache
def _nodes(module: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(sources()[module].read_text())))


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _bound_names(module: str) -> set[str]:
    """Return the names that a module gives values itself, not by importing them."""
    nodes = _nodes(module)
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return defined | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


@cache
def _uses(module: str) -> dict[str, set[str]]:
    """Return how the names of a module are used in it: by which methods of patterns, and as `?` in any other way."""
    called: dict[int, str] = {}
    uses: dict[str, set[str]] = {}
    for node in _nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called[id(node.func.value)] = _method(node)
    for node in _nodes(module):
        if isinstance(node, ast.Name):
            used = uses.setdefault(node.id, set())
            if isinstance(node.ctx, ast.Load):
                used.add(called.get(id(node), "?"))
    return uses


def _method(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    name = _SCANNING.get(call.func.attr, call.func.attr)
    if name == "match" and len(call.args) > 1:  # from a place within the text: whoever does that does it at many
        return "finditer"
    return name if name in METHODS else "?"


def _methods(module: str, name: str) -> tuple[str, ...]:
    """Return the methods that a global pattern is used by; `ANY_USE` where it may be handed on."""
    used = _uses(module).get(name.removeprefix("."), {"?"})
    return tuple(sorted(used)) if used and "?" not in used and name.startswith("._") else ANY_USE


def _calls_of_re() -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls within functions that take a pattern, with their places."""
    for module in _with_patterns():
        for function in _nodes(module):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and _takes_pattern(node.func):
                    yield f"{module}.{function.name}", node


def _takes_pattern(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id == "compile_late"
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "re"
        and called.attr not in ("escape", "purge")
    )


def _written_in_functions() -> Iterator[tuple[str, Text, str]]:
    for name, call in _calls_of_re():
        text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        if isinstance(text, str):
            flags = next((_flags(word.value) for word in call.keywords if word.arg == "flags"), 0)
            at = {"sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)  # type: ignore[attr-defined]
            flags |= _flags(call.args[at]) if len(call.args) > at else 0
            yield name, (text, re.compile(text, flags).flags), _method(call)


def _flags(node: ast.expr) -> int:
    return int(eval(ast.unparse(node), {"re": re}))


def built_in_functions() -> set[str]:
    """Return the functions that make patterns as they run, of what they are given."""
    return {name for name, call in _calls_of_re() if not isinstance(call.args[0], ast.Constant)}
