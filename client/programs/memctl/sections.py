"""Read and write the sections `[shared.NAME]` of the configuration file; the rest of the file stays as it is."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd.client.errors import Invalid
from memoryd.client.programs.hooks.installing import PRIVATE, read_file, replace_file
from memoryd.client.transport import paths

SECTION = "shared"


def read_section(name: str) -> dict[str, Any] | None:
    """Return the settings of a root, None if there is no such section."""
    path = paths.config_path()
    section = _parse(read_file(path) or b"", path).get(SECTION, {}).get(name)
    return dict(section) if isinstance(section, dict) else None


def write_section(name: str, settings: Mapping[str, str | list[str]] | None) -> None:
    """Write the settings of a root, or remove its section (None); raise `Invalid` if other settings would change."""
    path = paths.config_path()
    former = read_file(path)
    expected = _parse(former or b"", path)
    lines = [f"[{SECTION}.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in (settings or {}).items())]
    kept = _cut((former or b"").decode(), name)
    after = kept if settings is None else "\n\n".join(filter(None, [kept.rstrip("\n"), "\n".join(lines)])) + "\n"
    found = _parse(after.encode(), path)
    written = found.get(SECTION, {}).get(name)
    for sections in (expected, found):
        sections.get(SECTION, {}).pop(name, None)
        if not sections.get(SECTION):
            sections.pop(SECTION, None)
    if expected != found or (written or None) != (settings or None):
        raise Invalid(f"memctl cannot change {path} without changing other settings; add this yourself: {lines}")
    replace_file(path, former, after.encode(), PRIVATE)


def _cut(text: str, name: str) -> str:
    """Return a TOML text without a section; comments above the next section stay."""
    header = rf'^[ \t]*\[[ \t]*{SECTION}[ \t]*\.[ \t]*"?{re.escape(name)}"?[ \t]*\].*\n?'
    return re.sub(rf"{header}(?:(?:(?!\[).*\n)*(?![ \t\r]*(?:#|$)|\[).+\n?)?", "", text, flags=re.MULTILINE)


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:
        raise Invalid(f"The configuration {path} is wrong: {error}.") from None
