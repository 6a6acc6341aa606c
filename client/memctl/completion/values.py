"""What a value may be: choices of the parser, paths, and names that daemon, catalogue or memctl know."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from memoryd.client.errors import MemorydError
from memoryd.client.memctl.completion.scripts import SCRIPTS
from memoryd.client.memctl.link import client_for
from memoryd.client.protocol import GetStats, List, ListTokens, Workspaces
from memoryd.client.transport.sync import Client

LIMIT_S = 1.0
IDS = 30
ID_DIGITS = 8
FILE, FOLDER = ":file", ":folder"  # the shell completes paths better than anybody else
PATHS = (FILE, FOLDER)


class Word(NamedTuple):
    """A word that may be typed, and what it means."""

    text: str
    about: str = ""

    def continue_from(self, begin: str) -> "Word":
        """Return the word that continues from what is typed already; a path stays what it is."""
        return self if self.text in PATHS else Word(begin + self.text, self.about)


def list_values(action: argparse.Action, command: str, args: argparse.Namespace) -> list[Word]:
    """Return what the value of an argument of a command may be, nothing where it may be anything."""
    if action.choices:
        return [Word(str(choice)) for choice in action.choices]
    kind = _value_kind(action, command)
    try:
        return _ask(kind, args) if kind in ASKED else SOURCES[kind]() if kind in SOURCES else []
    except (MemorydError, OSError):
        return []


def _value_kind(action: argparse.Action, command: str) -> str:
    """Return the kind of a value, which is the name that the parsers give it in their help."""
    if action.dest in ("session", "plan", "last"):  # called ID, and no memory's
        return ""
    if action.metavar == "NAME" and not action.option_strings:
        return f"NAME of {command.split()[0]}"
    return str(action.metavar)


def _ask(kind: str, args: argparse.Namespace) -> list[Word]:
    """Return the names of a kind that a running daemon knows; none is started for it."""
    args.timeout = min(args.timeout, LIMIT_S)
    with client_for(args, autostart=False) as client:
        return ASKED[kind](client)


def _list_namespaces(client: Client) -> list[Word]:
    counts = client.call(GetStats(reach="all")).by_namespace
    return [Word(name, f"{number:,} memories") for name, number in counts.items() if name]


def _list_workspaces(client: Client) -> list[Word]:
    return [Word(space.namespace, space.root) for space in client.call(Workspaces())]


# What a running daemon is asked for.
ASKED: dict[str, Callable[[Client], list[Word]]] = {
    "NS": _list_namespaces,
    "ID": lambda client: [Word(one.id[:ID_DIGITS], one.content) for one in client.call(List(limit=IDS, reach="all"))],
    "WORKSPACE": _list_workspaces,
    "W": _list_workspaces,
    "PLACE": _list_workspaces,
    "NAME of jobs": lambda client: [Word(job.name, job.about) for job in client.jobs().jobs],
    "NAME of token": lambda client: [Word(token.name, token.namespace) for token in client.call(ListTokens())],
}


def _list_models() -> list[Word]:
    import msgspec

    from memoryd.client.memctl.local import read_output

    listed = msgspec.json.decode(read_output("memoryd.models", ["list", "--json"]))
    return [Word(row["name"], row["description"]) for row in listed]


def _list_projects() -> list[Word]:
    from memoryd.client import projects

    return [Word(one["namespace"], ", ".join(one["folders"])) for one in projects.read_table()["projects"]]


def _list_checks() -> list[Word]:
    from memoryd.client.memctl.doctor.checks import AREAS, CHECKS

    areas = [Word(area, f"{len(checks)} checks") for area, checks in AREAS.items()]
    return areas + [Word(name, str(check.__doc__)) for name, check in CHECKS.items()]


# What needs no daemon.
SOURCES: dict[str, Callable[[], list[Word]]] = {
    "FILE": lambda: [Word(FILE)],
    "PATH": lambda: [Word(FILE)],
    "DIR": lambda: [Word(FOLDER)],
    "PROJECT": _list_projects,
    "CHECK": _list_checks,
    "SHELL": lambda: [Word(shell) for shell in SCRIPTS],
    "NAME of model": _list_models,
}
