"""The report that the process which prepares a repaired or restored database sends to memctl, as JSON."""

import msgspec

from memoryd.client.projects.known import Project
from memoryd.client.protocol import Verification

_PAGE_DAMAGE = "Tree "  # SQLite's messages about a damaged page begin with this


class RescueReport(msgspec.Struct):
    """A prepared database: its contents, and what differs from the damaged database or the copy that it was made of."""

    memories: int = 0
    taken_up: bool = False  # it is in place
    kept: str = ""  # where the former database is kept
    rows: dict[str, int] = {}
    damaged: list[str] = []
    former: int = 0  # memories of the damaged database, as far as they could be counted
    dropped: list[str] = []  # objects in a copy's schema that are not memoryd's
    tokens: list[str] = []  # a copy's tokens, which were left out
    workspaces: dict[str, str] = {}  # a copy's workspaces, which were left out: folder → namespace
    chunks: int = 0  # chunks of files of these workspaces
    pauses: list[str] = []  # a copy's pauses of folders that are not on this machine
    kept_pauses: list[str] = []  # pauses of this machine that the copy did not have
    erased: list[str] = []  # ids of a copy's memories that had been erased here and were erased again
    copies: list[str] = []  # copies that still have erased memories
    projects: list[Project] = []  # projects that the copy knows; memctl leaves out those without a folder here
    lost_folders: dict[str, str] = {}  # folders that belong to no project any more: folder → namespace
    changed_at: float | None = None  # the latest change of a copy
    turns: int = 0
    parts: int = 0  # parts of files


def find_damage(found: Verification) -> bool:
    """Return whether a page of the file is damaged, so that `memctl repair` would refuse."""
    return any(problem.startswith(_PAGE_DAMAGE) for problem in found.problems)
