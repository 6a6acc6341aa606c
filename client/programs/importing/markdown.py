"""Parse Markdown notes: front matter, and the entries (list entries, paragraphs) below their headings.

Front matter may use this part of YAML: plain and quoted texts, lists, and one level of keys. Anything else is missing
in the metadata; the content below is always complete.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.records import Account

MAX_FILE_BYTES = 16 * 1024 * 1024
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
_BULLET = re.compile(r"^(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_PAIR = re.compile(r"^\s*+([\w .-]+):(?:\s+(.*))?$")


class NoteFile(NamedTuple):
    """A file: its path below the folder of the import, its front matter, its other text, and when it was changed."""

    name: str
    head: dict[str, Any]
    body: str
    changed_at: float


class MarkdownEntry(NamedTuple):
    """A list entry with everything indented below it, or a paragraph; `headings` are above it, outermost first."""

    headings: tuple[str, ...]
    text: str


def read_notes(root: Path, account: Account, files: Iterator[Path]) -> Iterator[NoteFile]:
    """Yield files as notes; skip those that are not text or too large."""
    for path in files:
        if path.stat().st_size > MAX_FILE_BYTES:
            account.skip("files above 16 MiB")
            continue
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            account.skip("files that are not UTF-8 text")
            account.notes.append(f"{path}: not UTF-8 text, left out.")
            continue
        head, body = split_front_matter(text)
        yield NoteFile(path.relative_to(root).as_posix(), head, body, path.stat().st_mtime)


def list_below(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files below a folder, sorted, without hidden files and without following symlinks."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise Invalid(f"{folder} cannot be read: {error.strerror}.") from None
    for path in inside:
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from list_below(path)
        elif path.suffix.lower() == ".md" and path.is_file():  # reading a pipe would never end
            yield path


# Front matter --------------------------------------------------------------------------------------------------------


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split a text into its parsed front matter and the text below."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text
    return _parse_head(lines[1:end]), "\n".join(lines[end + 1 :])


def _parse_head(lines: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    name = ""
    for line in lines:
        entry = line.strip()
        if name and entry.startswith("- "):
            before = found.get(name)
            found[name] = [*(before if isinstance(before, list) else []), _parse_scalar(entry[2:])]
        elif pair := _PAIR.match(line):
            name = pair[1].strip()
            found.setdefault(name, _parse_value(pair[2] or ""))
    return {name: value for name, value in found.items() if value not in ("", [])}


def _parse_value(text: str) -> Any:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_parse_scalar(entry) for entry in text[1:-1].split(",") if entry.strip()]
    return _parse_scalar(text)


def _parse_scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace('\\"', '"').replace("''", "'" if text[0] == "'" else "''")
    return text.split(" #", 1)[0].rstrip()


def parse_tags(value: Any) -> list[str]:
    """Return the tags of a list or of a text with commas, without `#`."""
    found = value if isinstance(value, list) else str(value or "").split(",")
    return [str(tag).strip().lstrip("#") for tag in found if str(tag).strip()]


# Items ---------------------------------------------------------------------------------------------------------------


def split_entries(body: str) -> Iterator[MarkdownEntry]:
    """Yield the entries and paragraphs of a text in order; a fenced block belongs to the entry before it."""
    headings: dict[int, str] = {}
    block: list[str] = []
    fence = ""
    for line in [*body.splitlines(), "# "]:
        if fence or _FENCE.match(line):
            fence = _next_fence(fence, line)
            block.append(line)
            continue
        heading = _HEADING.match(line) or line == "# "
        if block and (heading or _is_new_entry(line, block)):
            text = "\n".join(block).strip("\n").rstrip()
            if text.strip() and not set(text.strip()) <= set("-*_= "):
                under = tuple(headings[level] for level in sorted(headings))
                yield MarkdownEntry(under, _BULLET.sub("", text, count=1).strip())
            block = []
        if isinstance(heading, re.Match):
            level, title = len(heading[1]), heading[2].rstrip().rstrip("#").rstrip()
            headings = {at: higher for at, higher in headings.items() if at < level} | {level: title}
        elif not heading and (block or line.strip()):
            block.append(line)


def _next_fence(fence: str, line: str) -> str:
    if not fence:
        found = _FENCE.match(line)
        return found[1] if found else ""
    mark = line.strip()
    return "" if mark.startswith(fence) and not mark.strip(fence[0]) else fence


def _is_new_entry(line: str, block: list[str]) -> bool:
    if _BULLET.match(line):
        return True
    is_list = bool(_BULLET.match(next((text for text in block if text.strip()), "")))
    after_gap = not block[-1].strip()
    return after_gap and bool(line.strip()) and not (is_list and line[:1].isspace())
