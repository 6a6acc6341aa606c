"""Sections `[shared.NAME]` of the configuration, as `memctl shared` reads and writes them. All else stays as it is."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoryd.client.errors import Invalid
from memoryd.client.transport import paths

SECTION = "shared"


def read_section(name: str) -> dict[str, Any] | None:
    """Return the settings of a root, None where there is no such section."""
    section = _parse(_read(paths.config_path()), paths.config_path()).get(SECTION, {}).get(name)
    return dict(section) if isinstance(section, dict) else None


def write_section(name: str, settings: Mapping[str, str | list[str]] | None) -> Path:
    """Write the settings of a root, None to remove it; return the file. Raise `Invalid` where that would change more.

    The file is exchanged as a whole, so that a daemon that starts reads the one or the other.
    """
    path = paths.config_path()
    before = _read(path)
    lines = [f"[{SECTION}.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in (settings or {}).items())]
    kept = _cut(before, name)
    after = kept if settings is None else "\n\n".join(filter(None, [kept.rstrip("\n"), "\n".join(lines)])) + "\n"
    expected, found = _parse(before, path), _parse(after, path)
    for sections in (expected, found):
        sections.get(SECTION, {}).pop(name, None)
        if not sections.get(SECTION):
            sections.pop(SECTION, None)
    if expected != found or (_parse(after, path).get(SECTION, {}).get(name) or None) != (settings or None):
        raise Invalid(f"{path} is written in a way that memctl does not change; write into it yourself: {lines}")
    _exchange(path, after)
    return path


def _cut(text: str, name: str) -> str:
    """Return a text of TOML without a section; comments above the next one stay."""
    header = re.compile(rf'\s*\[\s*{SECTION}\s*\.\s*"?{re.escape(name)}"?\s*\]\s*(#.*)?')
    kept: list[str] = []
    cut: list[str] | None = None
    for line in text.splitlines():
        if line.lstrip().startswith("[") and not (cut is not None and line.startswith((" ", "\t"))):
            if cut is not None:
                kept += _find_comments(cut)
            cut = [] if header.fullmatch(line) else None
        if cut is None:
            kept.append(line)
        else:
            cut.append(line)
    return "".join(f"{line}\n" for line in kept)


def _find_comments(lines: list[str]) -> list[str]:
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    return lines[at:]


def _read(path: Path) -> str:
    with suppress(FileNotFoundError):
        return path.read_text("utf-8")
    return ""


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise Invalid(f"The configuration {path} is wrong: {error}.") from None


def _exchange(path: Path, text: str) -> None:
    there = Path(os.path.realpath(path))
    there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = there.with_name(f"{there.name}.part")
    mode = there.stat().st_mode & 0o777 if there.exists() else 0o600
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(there)
