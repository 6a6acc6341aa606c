"""Workspaces with the notes that coding agents keep themselves, which memoryd reads and never writes.

They are recognised by the last part of the namespace and the folder's name: `shop/claude-code` with a folder `memory`,
`codex` with a folder `memories`. Their files belong to the enclosing namespace: the project's, or the root. The types
`feedback` and `user` of their front matter are mapped to types that are shown at the start of sessions.
"""

from memoryd.client.errors import Conflict
from memoryd.daemon.store.queries import CLAUDE_CODE, CODEX
from memoryd.daemon.workspaces.documents.document import Front
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_FOLDERS = {CLAUDE_CODE: "memory", CODEX: "memories"}
_TYPES = {"feedback": "rule", "user": "preference", "project": "note", "reference": "note"}


def find_host(workspace: StoredWorkspace) -> str:
    """Return the agent whose notes a workspace has, empty for a person's."""
    host = workspace.namespace.rpartition("/")[2]
    return host if _FOLDERS.get(host) == workspace.root.name else ""


def find_type(front: Front) -> str:
    """Return the type of a note; newer versions of Claude Code write theirs below `metadata`."""
    inner = front.metadata.get("metadata")
    said = inner.get("type") if front.type == Front().type and isinstance(inner, dict) else front.type
    return _TYPES.get(said, front.type) if isinstance(said, str) else front.type


def check_writable(workspace: StoredWorkspace) -> StoredWorkspace:
    """Return the workspace; raise `Conflict` if it has an agent's own notes."""
    if host := find_host(workspace):
        raise Conflict(f"{workspace.root} has the notes that {host} keeps itself; memoryd only reads them.")
    return workspace
