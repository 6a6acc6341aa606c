"""Who may write MEMORY.md, which is a person's file: dreams, once somebody has allowed it for that folder."""

from memoryd.daemon.core.core import Core
from memoryd.daemon.store.workspaces import Workspace

_NAME, _YES = "dreams write ", "yes"  # of a setting, followed by the folder


def is_allowed(core: Core, workspace: Workspace) -> bool:
    """Return whether dreams may write MEMORY.md of a workspace."""
    return core.store.read_setting(f"{_NAME}{workspace.root}") == _YES


def allow(core: Core, workspace: Workspace, may_write: bool) -> None:
    """Keep whether dreams may write MEMORY.md of a workspace from now on."""
    core.store.set_setting(f"{_NAME}{workspace.root}", _YES if may_write else "no").result()
