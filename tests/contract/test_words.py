"""The words of code and documents: plain technical English, one term for a thing. CONTRIBUTING.md has the table."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ["client", "daemon", "models", "scheduler", "systemd"]
GUIDES = sorted(f"docs/{path.name}" for path in (CHECKOUT / "docs").glob("*.md"))
UNITS = ["systemd/memoryd.service", "systemd/memoryd.socket"]
DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "PERFORMANCE.md",
    "PROTOCOL.md",
    *GUIDES,
    *UNITS,
]

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
_SPEECH = (
    "daemon/language/",
    "daemon/store/stopwords.py",
    "daemon/llm/llm.py",
    "client/credentials/",
    "client/memctl/demo/",
)
# Names in a statement, and the schema that was shipped.
_SQL = re.compile(r"\b(SELECT|INSERT|DELETE FROM|UPDATE|AND)\b|'gone: ")
_SCHEMA = "daemon/store/schema.py"
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
        is_sentence = not speech and _SENTENCE.search(node.value) and not _SQL.search(node.value)
        if id(node) in docstrings or is_sentence:
            yield node.lineno, node.value


def _found(text: str) -> Iterator[str]:
    text = re.sub(r"`[^`]*`|\(#\w+\)|^### \w+$", "", text)  # names
    for pattern, instead in _WORDS.items():
        if match := pattern.search(text):
            yield f"{match.group()!r} (say: {instead})"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_uses_plain_words(folder: str) -> None:
    paths = {path.relative_to(CHECKOUT).as_posix(): path for path in sorted((CHECKOUT / folder).rglob("*.py"))}
    paths.pop(_SCHEMA, None)
    found = [
        f"{name}:{line}: {word}" for name, path in paths.items() for line, text in _texts(path) for word in _found(text)
    ]
    assert found == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_uses_plain_words(document: str) -> None:
    lines = (CHECKOUT / document).read_text(encoding="utf-8").splitlines()
    found = [f"{document}:{number}: {word}" for number, line in enumerate(lines, 1) for word in _found(line)]
    assert found == []
