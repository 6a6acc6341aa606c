"""Links between the files of a workspace, `[[name]]`: resolved to the files of that name when a memory is shown."""

from memoryd.client.protocol import Memory
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.workspaces.documents.references import name_of
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_MOST_LINKS = 100  # of one memory, each way


def show(connection: Connection, row: Row, memory: Memory, reached: str) -> None:
    """Set what a chunk of a file links to and what links to its file, as far as it is in the `reached` namespaces."""
    workspace = workspaces.find_holding(connection, row.path) if row.tier == DOCUMENTS and row.path else None
    if workspace is None or row.path is None:
        return
    names = sorted(workspaces.read_mentioned(connection, [row.row]).get(row.row, ()))
    if names:
        memory.links = _find_linked(connection, workspace, names, reached)[:_MOST_LINKS]
    memory.linked_from = workspaces.find_mentioning(connection, workspace, name_of(row.path), reached, _MOST_LINKS)


def _find_linked(connection: Connection, workspace: StoredWorkspace, names: list[str], reached: str) -> list[str]:
    """Return the paths of the files with these names, or a note if there is no such file or it is out of reach."""
    files: dict[str, list[str]] = {name: [] for name in names}
    for path in workspaces.list_paths(connection, workspace):
        if (name := name_of(path)) in files:
            files[name].append(path)
    found: list[str] = []
    for name, paths in files.items():
        seen = [path for path in paths if workspaces.can_see(connection, path, reached)]
        found += sorted(seen) or [f"{name} (not found)"]
    return found
