"""project: which namespace each checkout or folder has for the hooks of agents and the MCP server, and its name."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from typing import Any

from memoryd.client import projects
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.memctl.arguments import declare_nothing
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import make_printable, paint, show
from memoryd.client.memctl.place import shorten_home
from memoryd.client.memctl.strayed import move_workspace
from memoryd.client.memctl.table import count_kept, count_text, format_table
from memoryd.client.memctl.token import list_around
from memoryd.client.project import project_namespace
from memoryd.client.projects import Project, ProjectTable
from memoryd.client.protocol import MEMORY_TIERS, List, MoveNamespace, Share, Turns
from memoryd.client.transport.sync import Client

MAX_PARTS = 16  # of a namespace
BATCH = 100  # memories of one operation


# list ----------------------------------------------------------------------------------------------------------------


def _list(args: Namespace) -> None:
    entries = projects.read_table()["projects"]
    show(args, entries, lambda: _list_text(entries))


def _list_text(entries: list[Project]) -> str:
    rows = [
        list(map(make_printable, [one["namespace"], one["remote"], ", ".join(map(shorten_home, one["folders"]))]))
        for one in entries
    ]
    none = "No projects yet; a hook or `memctl mcp` notes the one that its agent works in."
    return format_table(["NAMESPACE", "CLONED FROM", "FOLDERS"], rows, none, flexible=2)


# rename --------------------------------------------------------------------------------------------------------------


def _declare_rename(parser: ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its namespace, or a path of it (/…, ~/…, ./…)")
    parser.add_argument("new", metavar="NEW", help="its namespace from now on, like payments or acme/api")
    parser.add_argument("--join", action="store_true", help="share the namespace of another project")
    parser.add_argument("--name-only", action="store_true", help="leave its memories where they are")


def _rename(args: Namespace) -> None:
    new = _check_name(args.new)
    is_new = _meet(args.project, new, args.join)
    table = projects.read_table()
    old, entries = _choose_projects(table, args.project)
    report: dict[str, Any] = {"namespace": new, "former": old, "moved": 0, "turns": 0, "left": 0}
    report |= {"operations": [], "tokens": [], "is_apart": True}
    if not (is_new and old == new):  # which is what it is called anyway
        _check_free(table, entries, new, args.join)
        goes_along = not (is_new or args.name_only) and len(entries) == len(_find_projects(table, old))
        with client_for(args) as client:
            client.call(MoveNamespace(namespace=old, to=new, pauses_only=True))  # before anybody uses the new name
            if goes_along:
                report |= _move(client, old, new)
            _write_name(args, new)
            if goes_along:
                report |= _move_rest(client, old, new)
    show(args, report, lambda: _renamed_text(report, entries[-1]["folders"][-1], is_new))


def _meet(name: str, new: str, join: bool) -> bool:
    """Note the project of a folder that no agent has worked in; return whether it is a new one."""
    path, before = _read_path(name), projects.read_table()
    if path is None or not os.path.isdir(path) or _find_within(before, path):
        return False
    _check_free(before, [], new, join)
    if not (namespace := project_namespace(path)):
        raise Invalid(f"{path} is not the folder of one project.")
    return not _find_projects(before, namespace)


def _write_name(args: Namespace, new: str) -> None:
    with projects.change_table() as table:
        _, entries = _choose_projects(table, args.project)
        _check_free(table, entries, new, args.join)
        for other in _find_projects(table, new):
            if projects.is_gone(other) and not (other["remote"] or other["root"]):  # else a checkout may be it
                table["projects"].remove(other)
                projects.inherit_folders(entries[-1], other)  # past sessions name them
        for project in entries:
            projects.give_name(project, new)


def _check_name(name: str) -> str:
    parts = name.strip("/").split("/")
    is_short = len(parts) <= MAX_PARTS and len(name.encode("utf-8", "replace")) <= projects.MAX_NAME_BYTES
    if not is_short or not all(part.strip() not in ("", ".", "..") and part.isprintable() for part in parts):
        raise Invalid(f"{name[:80]!r} cannot be a namespace; write it like payments or acme/api.")
    return "/".join(parts)


def _choose_projects(table: ProjectTable, name: str) -> tuple[str, list[Project]]:
    """Return the namespace and the projects meant: the one that a path is in, else all of a namespace."""
    path = _read_path(name)
    entries = _find_within(table, path) if path else _find_projects(table, name.strip("/"))
    if not entries:
        is_folder = path is None and os.path.isdir(name)
        meant = f" {name} is a folder here: write ./{name}." if is_folder else ""
        raise NotFound(f"There is no project {name!r}; `memctl project list` shows them.{meant}")
    return entries[-1]["namespace"], entries


def _read_path(name: str) -> str | None:
    """Return the path that a project is named by; None where it is named by its namespace."""
    return os.path.realpath(os.path.expanduser(name)) if name.startswith((".", "/", "~")) else None


def _find_within(table: ProjectTable, path: str) -> list[Project]:
    return [one for one in table["projects"] if any(_is_in(path, folder) for folder in one["folders"])]


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


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
    """Move the memories of a namespace to another, some at a time; return how many, and by which operations."""
    operations: list[str] = []
    moved = 0
    is_apart = not (_count_memories(client, new) or client.call(Turns(namespace=new, reach="exact")).total)
    first = List(namespace=old, reach="exact", tier=list(MEMORY_TIERS), limit=BATCH)
    while page := client.call(first).memories:
        shared = client.call(Share(ids=[memory.id for memory in page], to=new, move=True))
        operations.append(shared.operation)
        moved += len(shared)
    return {"moved": moved, "operations": operations, "is_apart": is_apart}


def _move_rest(client: Client, old: str, new: str) -> dict[str, Any]:
    """Move what is there beside memories; return how much, and what stays."""
    rest = client.call(MoveNamespace(namespace=old, to=new))
    return {"turns": rest.turns, "tokens": rest.tokens, "left": _count_memories(client, old)}


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
        name_back = f"`memctl project rename {shlex.quote(make_printable(folder))} {back} --name-only`"
        lines.append(f"To take that back: {undo}; then {name_back}.")
    if report["left"]:
        parts = count_text(report["left"], "part")
        lines.append(
            f"In {former} stay {parts} of files: `{move_workspace(report['former'], report['namespace'])}` gives their"
            " workspace the new name."
        )
    return "\n".join(lines)


# forget --------------------------------------------------------------------------------------------------------------


def _declare_forget(parser: ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its namespace, or a folder of it (/…, ~/…, ./…)")


def _forget(args: Namespace) -> None:
    """Take a project out of the table, or only the folder of it that is named."""
    path = _read_path(args.project)
    with projects.change_table() as table:
        namespace, entries = _choose_projects(table, args.project)
        folders = [folder for one in entries for folder in one["folders"] if path is None or _is_in(path, folder)]
        gone = folders if path is None else [max(folders, key=len)]
        for one in entries:
            one["folders"] = [folder for folder in one["folders"] if folder not in gone]
            if not one["folders"]:
                table["projects"].remove(one)
    show(args, {"namespace": namespace, "folders": gone}, lambda: _forgotten_text(namespace, gone))


def _forgotten_text(namespace: str, folders: list[str]) -> str:
    name, places = make_printable(namespace), make_printable(", ".join(map(shorten_home, folders)))
    return (
        f"Forgot the project {name}{f' in {places}' if places else ''}; the memories in {name} stay."
        " An agent that works there makes it known again."
    )


COMMANDS = {
    "project list": Command(declare_nothing, _list, "  memctl project\n  memctl project list --json"),
    "project rename": Command(
        _declare_rename,
        _rename,
        "  memctl project rename api-2 payments\n"
        "  memctl project rename . acme/api\n"
        "  memctl project rename notes-2 notes --join",
    ),
    "project forget": Command(
        _declare_forget, _forget, "  memctl project forget api-2\n  memctl project forget ~/old/api"
    ),
}
