"""basic-memory: a project's folder of Markdown notes, or the database with all projects and the times of notes.

The prose of a note becomes a memory. Each of its observations (`- [category] text #tag (context)`) becomes a fact that
begins with the title and has the category as a tag. Its relations (`- kind [[Note]]`) become links between notes. All
are in the namespace of the project.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.foreign_database import is_database, open_database, read_rows
from memoryd.client.programs.importing.markdown import NoteFile, list_below, parse_tags, read_notes
from memoryd.client.programs.importing.records import Account, Unconfirmed, make_record, parse_time, to_type_word
from memoryd.client.programs.memctl.sending import Item
from memoryd.client.protocol import Link, Record

FILE_NAME = "memory.db"
WHAT = "a database of basic-memory"
_NEEDED = {"project": {"id", "name", "path"}, "entity": {"project_id", "file_path", "created_at", "updated_at"}}
_OBSERVATION = re.compile(r"^\s*[-*] \[(?!\[)([^\[\]()]{2,}|[^\[\]() xX-])\]\s++(.+)$")
_RELATION = re.compile(r"^\s*[-*]\s++(?:\"([^\"]+)\"\s*+|([^\[\]\"]*+))\[\[([^\]]+)\]\]\s*+(?:\([^()]*\)\s*+)?$")
_CONTEXT = re.compile(r"(?<!\s)\s*+\(([^()]+)\)\s*$")
_TAG = re.compile(r"(?<!\S)#([^\s#]+)")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s")


class _Project(NamedTuple):
    """A project: the folder of its notes, and the times at which they were created and changed, if known."""

    name: str
    folder: Path
    times: dict[str, tuple[Any, Any]]


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield the notes, observations and relations of one project or of all."""
    file = path / FILE_NAME if (path / FILE_NAME).is_file() else path
    if file.is_dir():
        projects = [_Project(path.resolve().name, path, {})]
    elif is_database(file):
        projects = _read_projects(file, account)
    else:
        raise Invalid(f"{path} is neither a folder of notes nor {WHAT}. Nothing was imported.")
    empty = True
    for project in projects:
        if not project.folder.is_dir():
            account.notes.append(f"The folder of the notes of {project.name} does not exist: {project.folder}.")
            account.skip("notes whose folder does not exist", len(project.times))
            continue
        for item in _read_project(account, project):
            empty = False
            yield item
    if empty and not account.skipped:
        raise Invalid(f"{path} has no notes. Nothing was imported.")


def _read_projects(file: Path, account: Account) -> list[_Project]:
    """Return the projects in a database; raise `Unconfirmed` if folders are outside that of the database."""
    with open_database(file, WHAT, _NEEDED) as connection:
        times: dict[int, dict[str, tuple[Any, Any]]] = {}
        for row in read_rows(connection, "SELECT project_id, file_path, created_at, updated_at FROM entity"):
            times.setdefault(row["project_id"], {})[row["file_path"]] = (row["created_at"], row["updated_at"])
        found = [
            _Project(str(row["name"]), Path(str(row["path"])).expanduser(), times.get(row["id"], {}))
            for row in read_rows(connection, "SELECT id, name, path FROM project ORDER BY id")
        ]
    here = file.resolve().parent
    elsewhere = [str(one.folder) for one in found if not one.folder.resolve().is_relative_to(here)]
    if elsewhere and not account.confirmed:
        raise Unconfirmed("\n".join(" ".join(folder.split()) for folder in elsewhere))
    return found


def _read_project(account: Account, project: _Project) -> Iterator[Item]:
    found = list(read_notes(project.folder, account, list_below(project.folder)))
    known: dict[str, str] = {}
    for note in found:
        id = account.stable_id(_key(project, note))
        for name in (_title(note), note.head.get("permalink"), note.name.removesuffix(".md")):
            known.setdefault(str(name).casefold(), id)
    for note in found:
        where = str(project.folder / note.name)
        created, updated = project.times.get(note.name, (None, None))
        made_at = parse_time(created or note.head.get("created"), note.changed_at)
        times = {"created_at": made_at, "updated_at": parse_time(updated or note.head.get("modified"), note.changed_at)}
        prose, observations, relations = _split_parts(note.body)
        about = _convert_note(account, project, note, prose, times)
        if about:
            if relations:
                about.metadata["relations"] = [f"{kind} {target}" for kind, target in relations]
            about.relations = _make_links(about.id, relations, known, made_at)
        yield Item(where, about, "own" if created else "file")
        for line in observations:
            observation = _convert_observation(account, project, note, line, times)
            yield Item(where, observation, "own" if created else "unknown")


def _split_parts(body: str) -> tuple[str, list[re.Match[str]], list[tuple[str, str]]]:
    """Return the prose of a note, its observations, and its relations as (kind, target)."""
    prose: list[str] = []
    observations: list[re.Match[str]] = []
    relations: list[tuple[str, str]] = []
    for line in body.splitlines():
        if relation := _RELATION.match(line):
            relations.append(((relation[1] or relation[2] or "relates_to").strip() or "relates_to", relation[3]))
        elif observation := _OBSERVATION.match(line):
            observations.append(observation)
        else:
            prose.append(line)
    return _drop_empty_sections(prose), observations, relations


def _drop_empty_sections(lines: list[str]) -> str:
    kept: list[str] = []
    below = ""
    for line in reversed(lines):
        is_last = not below or (_HEADING.match(below) and _heading_level(below) <= _heading_level(line))
        if not (_HEADING.match(line) and is_last):
            kept.append(line)
            below = line if line.strip() else below
    return "\n".join(reversed(kept)).strip()


def _heading_level(line: str) -> int:
    return len(line.strip().split(" ")[0])


def _convert_note(
    account: Account, project: _Project, note: NoteFile, prose: str, times: dict[str, float]
) -> Record | None:
    title = _title(note)
    return make_record(
        account,
        _key(project, note),
        prose if prose.lstrip("# ").startswith(title) else f"{title}\n\n{prose}",
        namespace=account.namespace(project.name),
        type=note.head.get("type") or "note",
        otherwise="note",
        summary=title,
        metadata={
            "file": note.name,
            "permalink": note.head.get("permalink"),
            "tags": parse_tags(note.head.get("tags")),
        },
        **times,
    )


def _convert_observation(
    account: Account, project: _Project, note: NoteFile, line: re.Match[str], times: dict[str, float]
) -> Record | None:
    category, whole = line[1].strip(), line[2].rstrip()
    context = _CONTEXT.search(whole)
    text = _CONTEXT.sub("", whole)
    return make_record(
        account,
        f"{_key(project, note)}\0{category}\0{whole}",
        f"{_title(note)}: {text}",
        namespace=account.namespace(project.name),
        type=category,
        metadata={
            "file": note.name,
            "note": _title(note),
            "tags": _TAG.findall(text),
            "context": context[1] if context else None,
        },
        **times,
    )


def _make_links(origin: str, relations: list[tuple[str, str]], known: dict[str, str], at: float) -> list[Link]:
    found = [(to_type_word(kind), known.get(target.split("|")[0].strip().casefold())) for kind, target in relations]
    return [
        Link(origin=origin, target=target, kind=kind, created_at=at)
        for kind, target in dict.fromkeys(found)
        if target and target != origin
    ]


def _title(note: NoteFile) -> str:
    return str(note.head.get("title") or Path(note.name).stem)


def _key(project: _Project, note: NoteFile) -> str:
    return f"note\0{project.name}\0{note.head.get('permalink') or note.name}"
