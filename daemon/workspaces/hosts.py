"""The notes that coding agents keep themselves: workspaces that memoryd reads and never writes.

The end of such a workspace's namespace and the name of its folder say whose it is: `shop/claude-code` with a folder
`memory`, `codex` with a folder `memories`. Its files are in the namespace above, which is the project's or the root.
What their front matter calls feedback or about the user has a type here that a session may start with.
"""

from memoryd.client.errors import Conflict
from memoryd.daemon.store.queries import CLAUDE_CODE, CODEX
from memoryd.daemon.workspaces.documents.document import Front
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_FOLDERS = {CLAUDE_CODE: "memory", CODEX: "memories"}
_TYPES = {"feedback": "rule", "user": "preference", "project": "note", "reference": "note"}


def find_host(workspace: StoredWorkspace) -> str:
    """Return the agent whose notes a workspace has, empty for those of a person."""
    host = workspace.namespace.rpartition("/")[2]
    return host if _FOLDERS.get(host) == workspace.root.name else ""


def find_type(front: Front) -> str:
    """Return the type of a note; newer versions of Claude Code write theirs below `metadata`."""
    inner = front.metadata.get("metadata")
    said = inner.get("type") if front.type == Front().type and isinstance(inner, dict) else front.type
    return _TYPES.get(said, front.type) if isinstance(said, str) else front.type


def check_writable(workspace: StoredWorkspace) -> StoredWorkspace:
    """Return a workspace; raise `Conflict` for an agent's notes."""
    if host := find_host(workspace):
        raise Conflict(f"{workspace.root} has the notes of {host} itself, which memoryd only reads.")
    return workspace
