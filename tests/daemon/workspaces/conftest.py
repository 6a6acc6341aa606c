"""Fixtures of workspaces: a folder of notes; a core that watches, with an embedder that counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memoryd.client.protocol import List, WorkspaceStatus
from memoryd.daemon.core import reading
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.workspaces import Workspace
from memoryd.daemon.workspaces import registry, reporting
from memoryd.daemon.workspaces.watching import Watchers
from workbench import CountingEmbedder, found, running, wait_until


class Watched(NamedTuple):
    """A core that watches its workspaces."""

    core: Core
    embedder: Any

    def add(self, root: Path, **options: Any) -> Workspace:
        """Add a workspace and wait until it is indexed, embedded and watched."""
        workspace = registry.add(self.core, str(root), options.get("namespace"), options.get("globs", ()))
        wait_until(lambda: self.status(workspace).scanned_at is not None)
        self.settle()
        return workspace

    def settle(self) -> None:
        wait_until(lambda: self.core.embedding.pending() == 0)

    def status(self, workspace: Workspace) -> WorkspaceStatus:
        return reporting.status(self.core, workspace)

    def finds(self, query: str, words: str) -> bool:
        return any(words in content for content in found(self.core, query))

    def paths(self) -> set[str]:
        return {str(memory.path) for memory in reading.list_(self.core, List(limit=1000))}


@pytest.fixture
def root(folder: Path) -> Path:
    made = folder / "notes"
    made.mkdir()
    return made


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        watchers = Watchers(core)
        watchers.start()
        yield Watched(core, embedder)
        watchers.close()
