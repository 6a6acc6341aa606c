"""The `project` commands: list, rename and move projects, which map checkouts and folders to namespaces."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from typing import Any

from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.programs.memctl.arguments import add_optional, declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import make_printable, paint, show
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.text_table import count_kept, count_text, format_table
from memoryd.client.programs.memctl.token import list_around
from memoryd.client.projects import known as projects
from memoryd.client.projects.known import Project, ProjectTable
from memoryd.client.projects.project import project_namespace, project_root
from memoryd.client.projects.roots import find_root, read_roots
from memoryd.client.protocol import (
    MEMORY_TIERS,
    GetObserving,
    List,
    MoveNamespace,
    PauseObserving,
    Share,
    Turns,
)
from memoryd.client.transport.sync import Client

MAX_PARTS = 16  # the most parts of a namespace
BATCH = 100  # how many memories are moved in one operation


# list ----------------------------------------------------------------------------------------------------------------


def _list(args: Namespace) -> None:
    entries = projects.read_table()["projects"]
    show(args, entries, lambda: _list_text(entries))


def _list_text(entries: list[Project]) -> str:
    rows = [[make_printable(text) for text in (one["namespace"], one["remote"], _name_folders(one))] for one in entries]
    none = "No projects yet; a hook or `memctl mcp` adds the project in which its agent works."
    return format_table(["NAMESPACE", "CLONED FROM", "FOLDERS"], rows, none, flexible=2)


def _name_folders(project: Project) -> str:
    present = list(map(shorten_home, filter(os.path.isdir, project["folders"])))
    return ", ".join(present) or f"{shorten_home(project['folders'][-1])} (gone)" if project["folders"] else ""


# rename --------------------------------------------------------------------------------------------------------------


def _declare_rename(parser: ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its namespace, or a path of it (/…, ~/…, ./…)")
    parser.add_argument("new", metavar="NEW", help="its namespace from now on, like payments or acme/api")
    parser.add_argument("--join", action="store_true", help="share the namespace of another project")


def _rename(args: Namespace) -> None:
    new = _check_name(args.new)
    _check_unshared(args.project, new)
    report, entry, is_new = give_name(args, args.project, new, args.join)
    show(args, report, lambda: _renamed_text(report, entry["folders"][-1], is_new))


def _check_unshared(name: str, new: str) -> None:
    """Raise `Conflict` if a rename would move a project into a shared root or out of one."""
    roots = read_roots()
    entries = _find_within(projects.read_table(), path) if (path := _read_path(name)) else []
    for namespace in (new, entries[-1]["namespace"] if entries else name.strip("/")):
        if root := find_root(namespace, roots):
            raise Conflict(
                f"{root} is a shared root: a checkout lies in it by its remote alone (`memctl shared join {root}`),"
                f" and a memory goes there by `memctl share ID --to {root}/REPOSITORY`."
            )


def give_name(args: Namespace, name: str, new: str, join: bool) -> tuple[dict[str, Any], Project, bool]:
    """Rename a project, and move its memories unless other projects share its former namespace.

    Return the report, the project before the change, and whether it was unknown before.
    """
    is_new = _add_unknown(name, new, join)
    table = projects.read_table()
    old, entries = _choose_projects(table, name)
    report: dict[str, Any] = {"namespace": new, "former": old, "moved": 0, "turns": 0, "left": 0}
    report |= {"operations": [], "tokens": [], "is_apart": True, "is_shared": False}
    if not (is_new and old == new):  # a new project may already have the name by default
        _check_free(table, entries, new, join)
        moves_memories = not is_new and len(entries) == len(_find_projects(table, old))
        with client_for(args) as client:
            paused = _list_paused(client)
            if moves_memories:
                existing = _count_memories(client, new) or client.call(Turns(namespace=new, reach="exact")).total
                report["is_apart"] = not existing
                first = client.call(
                    MoveNamespace(namespace=old, to=new)
                )  # before the memories, so that pauses apply to the new name
                report |= _move(client, old, new)
            elif any(_is_in(old, name) and not _is_in(new, name) for name in paused):
                client.call(PauseObserving(kind="namespace", name=new))
            _write_name(name, new, join)
            if moves_memories:
                rest = client.call(MoveNamespace(namespace=old, to=new))  # turns recorded meanwhile
                report |= {"turns": first.turns + rest.turns, "tokens": [*first.tokens, *rest.tokens]}
                report["left"] = _count_memories(client, old)
                report["is_shared"] = len(_find_projects(projects.read_table(), new)) > len(entries)
                if old in paused:
                    client.call(PauseObserving(kind="namespace", name=old, resume=True))
    return report, entries[-1], is_new


def _list_paused(client: Client) -> list[str]:
    """Return the namespaces in which recording is paused, except those in the settings."""
    pauses = client.call(GetObserving()).pauses
    return [pause.name for pause in pauses if pause.kind == "namespace" and pause.since is not None]


def _add_unknown(name: str, new: str, join: bool) -> bool:
    """Add the project of a folder to the table if it is unknown; return whether its namespace is new as well."""
    path, before = _read_path(name), projects.read_table()
    if path is None or not os.path.isdir(path) or _find_within(before, path):
        return False
    _check_free(before, [], new, join)
    if not (namespace := project_namespace(path)):
        raise Invalid(f"{path} is not the folder of one project.")
    return not _find_projects(before, namespace)


def _write_name(name: str, new: str, join: bool) -> None:
    with projects.change_table() as table:
        _, entries = _choose_projects(table, name)
        _check_free(table, entries, new, join)
        for other in _find_projects(table, new):
            if projects.is_gone(other) and not other["remote"]:  # a project with a remote may be checked out again
                table["projects"].remove(other)
                projects.inherit_folders(entries[-1], other)  # past sessions refer to them
        for project in entries:
            project["namespace"] = new
            project.pop("origin", "")


def _check_name(name: str) -> str:
    parts = name.strip("/").split("/")
    is_short = len(parts) <= MAX_PARTS and len(name.encode("utf-8", "replace")) <= projects.MAX_NAME_BYTES
    if not is_short or not all(part.strip() not in ("", ".", "..") and part.isprintable() for part in parts):
        raise Invalid(f"{name[:80]!r} cannot be a namespace; write it like payments or acme/api.")
    return "/".join(parts)


def _choose_projects(table: ProjectTable, name: str) -> tuple[str, list[Project]]:
    """Return the namespace and the projects that a name selects: a namespace, or a path inside a project."""
    path = _read_path(name)
    entries = _find_within(table, path) if path else _find_projects(table, name.strip("/"))
    if not entries:
        is_folder = path is None and os.path.isdir(name)
        hint = f" {name} is a folder here: write ./{name}." if is_folder else ""
        raise NotFound(f"There is no project {name!r}; `memctl project list` shows them.{hint}")
    return entries[-1]["namespace"], entries


def _read_path(name: str) -> str | None:
    """Return a project's path, None if the name is a namespace."""
    return os.path.realpath(os.path.expanduser(name)) if name.startswith((".", "/", "~")) else None


def _find_within(table: ProjectTable, path: str) -> list[Project]:
    """Return the project whose folder contains a path; of several, the one with the innermost folder."""
    found = [(folder, one) for one in table["projects"] for folder in one["folders"] if _is_in(path, folder)]
    return [max(found, key=lambda pair: len(pair[0]))[1]] if found else []


def _is_in(path: str, outer: str) -> bool:
    """Return whether a path (or namespace) is inside another one or equal to it; all namespaces are in the root."""
    return not outer or f"{path}/".startswith(f"{outer}/")


def _find_projects(table: ProjectTable, namespace: str) -> list[Project]:
    return [project for project in table["projects"] if project["namespace"] == namespace]


def _check_free(table: ProjectTable, entries: list[Project], new: str, join: bool) -> None:
    if entries and new == entries[-1]["namespace"]:
        raise Invalid(f"The project is called {new} already.")
    others = [one for one in _find_projects(table, new) if one not in entries]
    if not join and not all(map(projects.is_gone, others)):
        there = ", ".join(next(one["folders"] for one in others if not projects.is_gone(one)))
        raise Conflict(f"{new} is the namespace of {there}; --join lets both share it.")


def _move(client: Client, old: str, new: str) -> dict[str, Any]:
    """Move the memories of a namespace in batches; return how many, and the operations."""
    operations: list[str] = []
    moved = 0
    first = List(namespace=old, reach="exact", tier=list(MEMORY_TIERS), limit=BATCH)
    while page := client.call(first).memories:
        shared = client.call(Share(ids=[memory.id for memory in page], to=new, move=True, here=True))
        operations.append(shared.operation)
        moved += len(shared)
    return {"moved": moved, "operations": operations}


def _count_memories(client: Client, namespace: str) -> int:
    return client.call(List(namespace=namespace, reach="exact", limit=1)).total


def _renamed_text(report: dict[str, Any], folder: str, is_new: bool) -> str:
    former, new = make_printable(report["former"]), make_printable(report["namespace"])
    name = make_printable(shorten_home(folder)) if is_new else former
    back = shlex.quote(former)
    moved = count_kept(report["moved"], report["turns"])
    went = f"; {moved} moved there" if report["moved"] or report["turns"] else ""
    lines = [f"{name} is called {paint(new, 'cyan')} from now on{went}."]
    if report["tokens"]:
        around = make_printable(" and ".join([*list_around(report["namespace"]), "the root /"]))
        lines.append(f"Bound to {new} from now on: token {', '.join(report['tokens'])}. It sees {around}, too.")
    if went and report["is_apart"]:
        lines.append(f"`memctl project rename {shlex.quote(new)} {back}` takes that back.")
    elif report["operations"]:
        undo = ", ".join(f"`memctl undo {operation[:8]}`" for operation in reversed(report["operations"]))
        name_back = f"; then `memctl project rename {shlex.quote(make_printable(folder))} {back}`"
        lines.append(f"To take that back: {undo}{name_back if report['is_shared'] else ''}.")
    if report["left"]:
        parts = count_text(report["left"], "part")
        commands = f"memctl workspace remove {back}; memctl workspace add PATH --namespace {shlex.quote(new)}"
        lines.append(f"In {former} stay {parts} of files: `{commands}` gives their workspace the new name.")
    return "\n".join(lines)


# move ----------------------------------------------------------------------------------------------------------------


def _declare_move(parser: ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its namespace, or a folder that it had (/…, ~/…, ./…)")
    add_optional(parser, "folder", "where it is now (default: the current folder)")


def _move_project(args: Namespace) -> None:
    """Assign a folder to a project; memories under the folder's former name are moved to it."""
    if not os.path.isdir(given := os.path.expanduser(args.folder or ".")):
        raise NotFound(f"There is no folder {given}.")
    folder = project_root(given)
    namespace, _ = _choose_projects(projects.read_table(), args.project)
    if (met := project_namespace(folder)) in ("", namespace):
        raise Invalid(
            f"{folder} is {'of the project ' + met + ' already' if met else 'not the folder of one project'}."
        )
    _check_unshared(folder, namespace)
    report, _, _ = give_name(args, folder, namespace, join=True)
    show(args, report, lambda: _moved_text(report, folder))


def _moved_text(report: dict[str, Any], folder: str) -> str:
    moved = count_kept(report["moved"], report["turns"])
    went = f"; {moved} moved there from {report['former']}" if report["moved"] or report["turns"] else ""
    return make_printable(f"The project {report['namespace']} is in {shorten_home(folder)} from now on{went}.")


COMMANDS = {
    "project list": Command(declare_nothing, _list, "  memctl project\n  memctl project list --json"),
    "project rename": Command(
        _declare_rename,
        _rename,
        "  memctl project rename api-2 payments\n"
        "  memctl project rename . acme/api\n"
        "  memctl project rename notes-2 notes --join",
    ),
    "project move": Command(
        _declare_move, _move_project, "  memctl project move api\n  memctl project move api ~/new/api"
    ),
}
