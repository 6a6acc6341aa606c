"""Memory files of agents: MEMORY.md with topic files (Claude Code), MEMORY.md with daily files (OpenClaw, CowAgent).

A file whose front matter has a `type` becomes one memory of that type. In all other files, each list entry and each
paragraph becomes a memory that begins with its heading; the memories of a daily file were created on its day.
Subfolders are namespaces. Links from MEMORY.md to topic files are left out, since the topic files are imported too.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.markdown import NoteFile, list_below, parse_tags, read_notes, split_entries
from memoryd.client.programs.importing.records import Account, make_record, parse_time
from memoryd.client.programs.memctl.sending import Item, Time
from memoryd.client.protocol import Record

_DAY = re.compile(r"^(\d{4}-\d\d-\d\d)(?:[-_ ].*)?$")
_POINTER = re.compile(r"^\[[^\]]+\]\((?!https?:)[^)]+\.md\)")
_INDEX = "MEMORY.md"
_EMPTY_TITLES = frozenset({"memory", "memories", "memory.md", "notes", "long-term memory", "index", "memory index"})
_IGNORED_FOLDERS = frozenset({"memory", "users"})


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield the memories in a file or in a folder of files."""
    root = path if path.is_dir() else path.parent
    files = _list_files(path) if path.is_dir() else iter([path])
    empty = True
    for note in read_notes(root, account, files):
        empty = False
        time, made = _convert_file(account, note)
        for number, one in enumerate(made, start=1):
            yield Item(f"{root / note.name}, entry {number}", one, time)
    if empty:
        raise Invalid(f"{path} has no Markdown files of an agent's memory. Nothing was imported.")


def _list_files(folder: Path) -> Iterator[Path]:
    """Return the memory files below a folder; if it is an agent's own folder, only MEMORY.md and those in memory/."""
    inner = folder / "memory"
    if not inner.is_dir():
        several = [child for child in sorted(folder.iterdir()) if (child / "memory").is_dir()]
        return (path for child in several for path in _list_files(child)) if several else list_below(folder)
    index = folder / _INDEX
    places = [index] if index.is_file() else list_below(index) if index.is_dir() else ()
    return chain(places, list_below(inner))


def _convert_file(account: Account, note: NoteFile) -> tuple[Time, Iterator[Record | None]]:
    day = _DAY.match(Path(note.name).stem)
    dated = bool(day) and parse_time(day[1] if day else "", -1.0) >= 0.0
    at = parse_time(day[1], note.changed_at) if day else note.changed_at
    folders = [name for name in Path(note.name).parts[:-1] if name not in _IGNORED_FOLDERS]
    namespace = account.namespace(*folders)
    if "type" in note.head:
        return "own" if dated else "file", iter([_convert_whole(account, note, namespace, at)])
    return "own" if dated else "unknown", _convert_entries(account, note, namespace, at)


def _convert_whole(account: Account, note: NoteFile, namespace: str, at: float) -> Record | None:
    head = note.head
    summary = " ".join(str(head.get("description") or head.get("name") or "").split())
    return make_record(
        account,
        f"file\0{note.name}",
        note.body.strip() or summary,
        namespace=namespace,
        type=head["type"],
        created_at=parse_time(head.get("created") or head.get("date"), at),
        updated_at=at,
        summary=summary,
        metadata={"file": note.name, "name": head.get("name"), "tags": parse_tags(head.get("tags"))},
    )


def _convert_entries(account: Account, note: NoteFile, namespace: str, at: float) -> Iterator[Record | None]:
    for entry in split_entries(note.body):
        if _POINTER.match(entry.text):
            account.skip("pointers to other files")
            continue
        heading = " > ".join(entry.headings)
        titles = [title for title in entry.headings if not _is_empty_title(title, note)]
        yield make_record(
            account,
            f"entry\0{note.name}\0{heading}\0{entry.text}",
            f"{titles[-1]}: {entry.text}" if titles else entry.text,
            namespace=namespace,
            type="note",
            created_at=at,
            metadata={"file": note.name, "heading": heading, "tags": parse_tags(note.head.get("tags"))},
        )


def _is_empty_title(title: str, note: NoteFile) -> bool:
    plain = title.strip().casefold()
    return plain in _EMPTY_TITLES or plain == Path(note.name).stem.casefold() or bool(_DAY.match(plain))
