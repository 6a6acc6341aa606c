"""Every regular expression of the project, by name, with the ways in which it is used.

`find_patterns` imports all modules and notes the patterns that they compile meanwhile; those that functions write out
are found in the source. It runs in a process of its own, before anything of memoryd was imported.
"""

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("client", "daemon", "models", "scheduler")
METHODS = ("match", "fullmatch", "search", "finditer")
ANY_USE = ("fullmatch", "finditer")  # which do all that the others do
Text = tuple[str, int]  # of a pattern, and its flags
_SCANNING = {"findall": "finditer", "sub": "finditer", "subn": "finditer", "split": "finditer"}


class Used(NamedTuple):
    """A pattern, what it is called in each place, and the methods by which it meets a text."""

    names: tuple[str, ...]
    pattern: re.Pattern[str]
    methods: tuple[str, ...]


def find_patterns() -> list[Used]:
    """Return the patterns of all modules: those compiled at import, then those that a function writes out."""
    compiled = [(_name_global(module, line), text) for module, line, text in _note_compiled()]
    used = [(name, text, _find_methods(name)) for name, text in compiled]
    found: dict[Text, Used] = {}
    for name, text, methods in (*used, *_written_in_functions()):
        names, made, known = found.get(text, Used((), re.compile(*text), ()))
        found[text] = Used((*names, name), made, tuple(sorted({*known, *methods})))
    return list(found.values())


def _note_compiled() -> list[tuple[str, int, Text]]:
    """Import every module; return the patterns that ours compile meanwhile, with module and line of the global."""
    noted: list[tuple[str, int, Text]] = []
    compile = re._compile  # type: ignore[attr-defined]
    from memoryd.client import patterns

    def note(pattern: Any, flags: int) -> Any:
        made = compile(pattern, flags)
        frame: Any = sys._getframe(1)
        while frame.f_globals["__name__"] in ("re", __name__, "memoryd.client.patterns") and frame.f_back:
            frame = frame.f_back
        if frame.f_globals["__name__"].startswith("memoryd.") and isinstance(made.pattern, str):
            while frame.f_code.co_name != "<module>":
                frame = frame.f_back
            noted.append((frame.f_globals["__name__"], frame.f_lineno, (made.pattern, made.flags)))
        return made

    class NotedLate(patterns.LatePattern):
        def __init__(self, pattern: str, flags: int) -> None:
            note(pattern, int(flags))
            super().__init__(pattern, flags)

    re._compile, patterns.LatePattern = note, NotedLate  # type: ignore[attr-defined, misc]
    for package in PACKAGES:
        top = importlib.import_module(f"memoryd.{package}")
        for info in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if info.name != "memoryd.client.programs.memctl.__main__":  # it would run memctl
                _import(info.name)
    re._compile = compile  # type: ignore[attr-defined]
    return noted


def _import(module: str) -> None:
    """Import a module, unless it is an adapter whose framework is not installed."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        is_adapter = module.endswith((".langgraph", ".openai_agents", ".anthropic", ".hermes"))
        if not is_adapter or str(error.name).startswith("memoryd"):
            raise


def _name_global(module: str, line: int) -> str:
    """Return the name of the global that the statement at a line of a module assigns."""
    module = module.removeprefix("memoryd.")
    [statement] = [one for one in _parse(module).body if one.lineno <= line <= (one.end_lineno or line)]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return f"{module}.{target.id if isinstance(target, ast.Name) else line}"


# How they are used ---------------------------------------------------------------------------------------------------


@cache
def _sources() -> dict[str, Path]:
    """Return the file of every module by its name."""
    root = Path(__file__).parents[3]
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def _parse(module: str) -> ast.Module:
    return ast.parse(_sources()[module].read_text())


@cache
def _find_uses(module: str) -> dict[str, set[str]]:
    """Return how the names of a module are used in it: by which methods of patterns, and as `?` in any other way."""
    called: dict[int, str] = {}
    uses: dict[str, set[str]] = {}
    for node in ast.walk(_parse(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called[id(node.func.value)] = _find_method(node)
    for node in ast.walk(_parse(module)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            uses.setdefault(node.id, set()).add(called.get(id(node), "?"))
    return uses


def _find_methods(name: str) -> tuple[str, ...]:
    """Return the methods that a global pattern is used by; `ANY_USE` where it may be handed on."""
    module, _, word = name.rpartition(".")
    used = _find_uses(module).get(word, {"?"})
    return ANY_USE if "?" in used or not word.startswith("_") else tuple(sorted(used))


def _find_method(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    name = _SCANNING.get(call.func.attr, call.func.attr)
    if name == "match" and len(call.args) > 1:  # from a place within the text: whoever does that does it at many
        return "finditer"
    return name if name in METHODS else "?"


def _calls_of_re() -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls within functions that take a pattern, with their places."""
    for module in _sources():
        for function in ast.walk(_parse(module)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and _takes_pattern(ast.unparse(node.func)):
                        yield f"{module}.{function.name}", node


def _takes_pattern(function: str) -> bool:
    return function == "compile_late" or (re.fullmatch(r"re\.\w+", function) is not None and function != "re.escape")


def _written_in_functions() -> Iterator[tuple[str, Text, tuple[str, ...]]]:
    for name, call in _calls_of_re():
        text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        if isinstance(text, str):
            flags = next((_flags(word.value) for word in call.keywords if word.arg == "flags"), 0)
            at = {"sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)  # type: ignore[attr-defined]
            flags |= _flags(call.args[at]) if len(call.args) > at else 0
            yield name, (text, re.compile(text, flags).flags), (_find_method(call),)


def _flags(node: ast.expr) -> int:
    return int(eval(ast.unparse(node), {"re": re}))


def built_in_functions() -> set[str]:
    """Return the functions that make patterns as they run, of what they are given."""
    return {name for name, call in _calls_of_re() if not isinstance(call.args[0], ast.Constant)}
