"""The names of functions: a verb says what a function does, a predicate what it answers, a noun what it returns."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("models", "scheduler")

PREDICATES = {"is", "has", "can"}
# First words, in the imperative. Each was read once: a participle, an adverb or a preposition is none of them.
VERBS = set(
    """
    add apply ask assemble bench build check convert count describe download draw embed encode fetch find fire follow
    get hash ignore import index list load lock make measure multiply normalise note observe open parse pool pull
    quantise read record remove round run silence serialise split start stop strip sweep switch sync to try unpack
    verify view write
    """.split()
)
# Whole names of functions that only return what the noun names, without a change of anything.
NOUNS = set(
    """
    best_format channel_scales default_models_dir fingerprint first_line ids max_tokens median_ms model_folder
    partial_folder rss_bytes unit
    """.split()
)
# Names that others import, and that an interface gives.
GIVEN = set("installed main update".split())


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            yield node


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(decorator) for decorator in function.decorator_list}
    return any(name.endswith(("property", ".setter")) for name in names)


def _is_plain(name: str) -> bool:
    name = name.strip("_")
    return name.partition("_")[0] in VERBS | PREDICATES or name in NOUNS | GIVEN


def _modules() -> list[str]:
    found = [path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py")]
    return sorted(path.relative_to(CHECKOUT).as_posix() for path in found)


@pytest.mark.parametrize("module", _modules())
def test_functions_are_verbs_or_predicates(module: str) -> None:
    others = [
        f"{module}:{function.lineno}: {function.name}"
        for function in _functions(CHECKOUT / module)
        if not _is_property(function) and not _is_plain(function.name)
    ]
    assert others == [], (
        "begin these names with a verb in the imperative (`format_rows`, not `_formatted`) or with is_, has_, can_; "
        "a verb that is new here is added to VERBS, a function that only returns what its noun names to NOUNS"
    )
