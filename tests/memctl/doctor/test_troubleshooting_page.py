"""docs/troubleshooting.md has what each check of doctor says, word for word."""

import ast
import re
from importlib import import_module
from pathlib import Path

from memoryd.client.programs.doctor import patient
from memoryd.client.programs.doctor.checks import AREAS, list_checks
from memoryd.client.programs.memctl import local

PAGE = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text()
_ROW = re.compile(r"^\| (`[\w-]+`|) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_MODULES = ["agents", "database", "files", "installation", "models", "service", "settings", "work"]
_SHORTEST = 6  # characters of a part of a sentence that says something


def list_rows() -> list[tuple[str, str]]:
    """Return the check and what it says, of each row."""
    rows, check = [], ""
    for found in _ROW.finditer(PAGE):
        check = found[1].strip("`") or check
        rows.append((check, found[2]))
    return rows


def list_said() -> str:
    """Return all texts in the modules of checks, those of one sentence in a line, with `…` for what is put in."""
    modules = [import_module(f"memoryd.client.programs.doctor.{name}") for name in _MODULES]
    modules += [patient, local, import_module("memoryd.client.projects.known")]
    modules.append(import_module("memoryd.client.programs.doctor.workspaces"))
    lines = []
    for module in modules:
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                lines.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                lines.append(node.value)
    return "\n".join(lines)


def test_each_check_has_its_entry_in_the_section_of_its_area() -> None:
    for area, checks in AREAS.items():
        section = PAGE.split(f"### {area}\n")[1].split("\n### ")[0]
        named = set(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE))
        assert named == set(checks), f"write a row for each check of {area} in docs/troubleshooting.md"
    assert {check for check, _ in list_rows()} == set(list_checks())


def test_what_a_check_is_said_to_say_is_in_its_code() -> None:
    said = list_said()
    missing = [
        f"{check}: {part}"
        for check, text in list_rows()
        for quoted in re.findall(r'"([^"]+)"', text)
        for part in quoted.split("…")
        if len(part.strip()) >= _SHORTEST and part.strip(" ,;:") not in said
    ]
    assert missing == []
