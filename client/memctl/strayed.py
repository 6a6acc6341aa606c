"""Projects whose memories are under a name that they had before, as after an undo of the moves of a rename."""

import shlex
from argparse import Namespace
from contextlib import suppress
from typing import NamedTuple

from memoryd.client import projects
from memoryd.client.errors import MemorydError
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import make_printable
from memoryd.client.protocol import MEMORY_TIERS, List, Namespaces
from memoryd.client.transport.sync import Client


class Strayed(NamedTuple):
    """A project, the former name that its memories are under, and whether parts of files are all there is there."""

    namespace: str
    former: str
    only_parts: bool


def find_strayed(client: Client) -> list[Strayed]:
    """Return such projects."""
    with suppress(OSError, MemorydError):
        table = projects.read_table()
        if any(project.get("former") for project in table["projects"]):
            counts = client.call(Namespaces(reach="all")).namespaces
            found = projects.find_strayed(table, {one.name: one.memories for one in counts})
            return [Strayed(namespace, former, not _count_memories(client, former)) for namespace, former in found]
    return []


def _count_memories(client: Client, namespace: str) -> int:
    return client.call(List(namespace=namespace, reach="exact", tier=list(MEMORY_TIERS), limit=1)).total


def list_strayed(args: Namespace) -> list[Strayed]:
    """Return such projects, asking the daemon that a command names."""
    with client_for(args) as client:
        return find_strayed(client)


def describe_strayed(strayed: Strayed) -> str:
    """Say what is the matter."""
    namespace, former, only_parts = strayed
    if only_parts:
        return make_printable(f"parts of files of the project {namespace} are still under its former name {former}")
    return make_printable(f"the project {namespace} has no memories; under its former name {former} there are some")


def mend_strayed(strayed: Strayed) -> str:
    """Return the command that gives the project its former name, or its workspace the new one."""
    if strayed.only_parts:
        return move_workspace(strayed.former, strayed.namespace)
    return make_printable(shlex.join(["memctl", "project", "rename", strayed.namespace, strayed.former]))


def move_workspace(former: str, namespace: str) -> str:
    """Return the commands that give a workspace another namespace."""
    remove, add = (
        ["memctl", "workspace", "remove", former],
        ["memctl", "workspace", "add", "PATH", "--namespace", namespace],
    )
    return make_printable(f"{shlex.join(remove)}; {shlex.join(add)}")
