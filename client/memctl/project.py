"""project: which namespace each checkout or folder has for the hooks of agents and the MCP server, and its name."""

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from memoryd.client import projects
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.memctl.arguments import declare_nothing
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import make_printable, paint, show
from memoryd.client.memctl.place import shorten_home
from memoryd.client.memctl.table import count_text, format_table
from memoryd.client.projects import Project, ProjectTable
from memoryd.client.protocol import MEMORY_TIERS, List, Share, Turns
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
    old, entries = _choose_projects(projects.read_table(), args.project)
    _check_free(projects.read_table(), entries, new, args.join)
    report: dict[str, Any] = {"namespace": new, "former": old, "moved": 0, "left": 0, "operations": []}
    if not args.name_only and len(entries) == len(_find_projects(projects.read_table(), old)):
        with client_for(args) as client:
            report |= _move(client, old, new)
    with projects.change_table() as table:
        _, entries = _choose_projects(table, args.project)
        _check_free(table, entries, new, args.join)
        for project in entries:
            project["namespace"] = new
    show(args, report, lambda: _renamed_text(report))


def _check_name(name: str) -> str:
    parts = name.strip("/").split("/")
    is_short = len(parts) <= MAX_PARTS and len(name.encode("utf-8", "replace")) <= projects.MAX_NAME_BYTES
    if not is_short or not all(part.strip() and part.isprintable() for part in parts):
        raise Invalid(f"{name[:80]!r} cannot be a namespace; write it like payments or acme/api.")
    return "/".join(parts)


def _choose_projects(table: ProjectTable, name: str) -> tuple[str, list[Project]]:
    """Return the namespace and the projects meant: the one that a path is in, else all of a namespace."""
    if name.startswith((".", "/", "~")):
        path = os.path.realpath(os.path.expanduser(name))
        entries = [one for one in table["projects"] if any(f"{path}/".startswith(f"{at}/") for at in one["folders"])]
    else:
        entries = _find_projects(table, name.strip("/"))
    if not entries:
        raise NotFound(f"There is no project {name!r}; `memctl project list` shows them.")
    return entries[-1]["namespace"], entries


def _find_projects(table: ProjectTable, namespace: str) -> list[Project]:
    return [project for project in table["projects"] if project["namespace"] == namespace]


def _check_free(table: ProjectTable, entries: list[Project], new: str, join: bool) -> None:
    others = [project for project in _find_projects(table, new) if project not in entries]
    if new == entries[-1]["namespace"]:
        raise Invalid(f"The project is called {new} already.")
    if others and not join:
        there = ", ".join(others[0]["folders"]) or others[0]["remote"]
        raise Conflict(f"{new} is the namespace of {there}; --join lets both share it.")


def _move(client: Client, old: str, new: str) -> dict[str, Any]:
    """Move the memories of a namespace to another, some at a time; return how many, and how many stay."""
    operations: list[str] = []
    moved = 0
    first = List(namespace=old, reach="exact", tier=list(MEMORY_TIERS), limit=BATCH)
    while page := client.call(first).memories:
        shared = client.call(Share(ids=[memory.id for memory in page], to=new, move=True))
        operations.append(shared.operation)
        moved += len(shared)
    rest = client.call(Turns(namespace=old, reach="exact")).total
    rest += client.call(List(namespace=old, reach="exact", limit=1)).total
    return {"moved": moved, "left": rest, "operations": operations}


def _renamed_text(report: dict[str, Any]) -> str:
    former, new = make_printable(report["former"]), make_printable(report["namespace"])
    moved = count_text(report["moved"], "memory")
    lines = [f"{former} is called {paint(new, 'cyan')} from now on; {moved} moved there."]
    if report["operations"]:
        undo = ", ".join(f"`memctl undo {operation[:8]}`" for operation in reversed(report["operations"]))
        lines.append(f"{undo} moves them back.")
    if report["left"]:
        lines.append(f"{report['left']:,} stay in {former}: turns of the latest conversations, notes of a workspace.")
    return "\n".join(lines)


COMMANDS = {
    "project list": Command(declare_nothing, _list, "  memctl project\n  memctl project list --json"),
    "project rename": Command(
        _declare_rename,
        _rename,
        "  memctl project rename api-2 payments\n"
        "  memctl project rename . acme/api\n"
        "  memctl project rename notes-2 notes --join",
    ),
}
