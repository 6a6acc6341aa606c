"""The words of code and documents: plain technical English, one term for a thing. CONTRIBUTING.md has the table."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ["models", "scheduler"]
DOCUMENTS = ["PERFORMANCE.md", "systemd/memoryd.service", "systemd/memoryd.socket"]

INSTEAD = {
    r"told|tells?": "report, return, show, say",
    r"anew": "again, rebuild",
    r"mend(s|ed|ing)?": "fix, repair",
    r"becomes? of": "outcome",
    r"thinkers?|heard": "extraction worker, queued turns",
    r"goes|gone": "is deleted, moved, evicted, runs",
    r"gives? way|gave way": "hands over, yields",
    r"portions?": "batch",
    r"pictures?": "screen, frame",
    r"stands|lies": "is",
    r"carr(y|ies|ied) (it |them |this )?out": "apply, run",
    r"dreamt": "processed by dream",
}
_WORDS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead for words, instead in INSTEAD.items()}
# What people say, or what is compared with it, is not ours to word.
_SPEECH = ("daemon/language/", "daemon/llm/llm.py", "client/credentials/", "client/memctl/demo/")
_SENTENCE = re.compile(r"\w+ \w+")


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings, comments and sentences of a module with their lines."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    speech = path.relative_to(CHECKOUT).as_posix().startswith(_SPEECH)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in docstrings or (not speech and _SENTENCE.search(node.value)):
            yield node.lineno, node.value


def _modules() -> list[str]:
    found = [path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py")]
    return sorted(path.relative_to(CHECKOUT).as_posix() for path in found)


def _found(text: str) -> Iterator[str]:
    text = re.sub(r"`[^`]*`", "", text)  # names
    for pattern, instead in _WORDS.items():
        if match := pattern.search(text):
            yield f"{match.group()!r} (say: {instead})"


@pytest.mark.parametrize("module", _modules())
def test_a_module_uses_plain_words(module: str) -> None:
    found = [f"{module}:{line}: {word}" for line, text in _texts(CHECKOUT / module) for word in _found(text)]
    assert found == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_uses_plain_words(document: str) -> None:
    lines = (CHECKOUT / document).read_text(encoding="utf-8").splitlines()
    found = [f"{document}:{number}: {word}" for number, line in enumerate(lines, 1) for word in _found(line)]
    assert found == []
