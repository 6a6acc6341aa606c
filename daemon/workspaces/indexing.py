"""Bringing the index up to date with files."""

from collections.abc import Sequence

import msgspec

from memoryd.daemon.core.core import Core
from memoryd.daemon.workspaces.registry import Workspace


class Counts(msgspec.Struct):
    """What an update of the index did: files looked at, read, of these changed or not, gone; chunks new and kept."""

    scanned: int = 0
    read: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks_new: int = 0
    chunks_kept: int = 0


def reindex(core: Core, workspace: Workspace, relatives: Sequence[str]) -> Counts:
    """Read these files now and bring the index up to date; return when that is committed."""
    raise NotImplementedError
