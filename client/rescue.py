"""What the process that makes another database ready reports to memctl, as JSON."""

import msgspec

from memoryd.client.projects.known import Project
from memoryd.client.protocol import Verification

_OF_PAGE = "Tree "  # how SQLite begins what it says of a damaged page


class RescueReport(msgspec.Struct):
    """What was made ready (`parts` are of files), whether it is in place, and where the former database is kept.

    A damaged database had `former` memories, as far as that can be told. `dropped` was in the schema of a copy and is
    not memoryd's. What of a copy is not in force here either: `tokens` and `workspaces` were left out (these, the
    namespace by the folder, with `chunks` of files). `pauses` of observing are of folders that are not here;
    `kept_pauses` are those that are in force here and not in the copy. `projects` are those that the copy knows; memctl
    leaves those that have no folder here, and notes `lost_folders`, which are no longer of a project (its namespace by
    the folder). `erased`: ids of what a copy had and was erased again; `copies` still hold these. `changed_at`: the
    latest change of a copy.
    """

    memories: int = 0
    taken_up: bool = False
    kept: str = ""
    rows: dict[str, int] = {}
    damaged: list[str] = []
    former: int = 0
    dropped: list[str] = []
    tokens: list[str] = []
    workspaces: dict[str, str] = {}
    chunks: int = 0
    pauses: list[str] = []
    kept_pauses: list[str] = []
    erased: list[str] = []
    copies: list[str] = []
    projects: list[Project] = []
    lost_folders: dict[str, str] = {}
    changed_at: float | None = None
    turns: int = 0
    parts: int = 0


def find_damage(found: Verification) -> bool:
    """Return whether a page of the file is damaged, so that `memctl repair` would refuse."""
    return any(problem.startswith(_OF_PAGE) for problem in found.problems)
