"""Projects whose memories are under a name that they had before, as after an undo of the moves of a rename."""

import shlex
from argparse import Namespace
from contextlib import suppress

from memoryd.client import projects
from memoryd.client.errors import MemorydError
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import make_printable
from memoryd.client.protocol import Namespaces
from memoryd.client.transport.sync import Client


def find_strayed(client: Client) -> list[tuple[str, str]]:
    """Return such projects, by their namespaces, and the former ones."""
    with suppress(OSError, MemorydError):
        table = projects.read_table()
        if any(project.get("former") for project in table["projects"]):
            counts = client.call(Namespaces(reach="all")).namespaces
            return projects.find_strayed(table, {one.name: one.memories for one in counts})
    return []


def list_strayed(args: Namespace) -> list[tuple[str, str]]:
    """Return such projects, asking the daemon that a command names."""
    with client_for(args) as client:
        return find_strayed(client)


def describe_strayed(namespace: str, former: str) -> str:
    """Say what is the matter."""
    return make_printable(f"the project {namespace} has no memories; under its former name {former} there are some")


def mend_strayed(namespace: str, former: str) -> str:
    """Return the command that gives the project its former name."""
    return make_printable(shlex.join(["memctl", "project", "rename", namespace, former]))
