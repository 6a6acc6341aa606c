"""Files that tests of workspaces write, and a core that watches them."""

from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.protocol import List
from memoryd.client.protocol.workspaces import WorkspaceStatus
from memoryd.daemon.core.core import Core
from memoryd.daemon.workspaces import calls, registry
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from workbench import ask, found, wait_until

FILLER = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu " * 9


def write(root: Path, relative: str, text: str) -> Path:
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sections(count: int, changed: int = -1, word: str = "changed") -> str:
    """Return a file of so many chunks, one of which may be another."""
    return "\n".join(
        f"# Section {n}\n\nNumber {n} {word if n == changed else 'original'}. {FILLER}\n" for n in range(count)
    )


class Watched(NamedTuple):
    """A core that watches its workspaces."""

    core: Core
    embedder: Any

    def add(self, root: Path, **options: Any) -> StoredWorkspace:
        """Add a workspace and wait until it is indexed, embedded and watched."""
        workspace = registry.add(self.core, str(root), options.get("namespace"), options.get("globs", ()))
        wait_until(lambda: self.status(workspace).scanned_at is not None)
        self.settle()
        return workspace

    def settle(self) -> None:
        wait_until(lambda: self.core.embedding.count_pending() == 0)

    def status(self, workspace: StoredWorkspace) -> WorkspaceStatus:
        return calls.status(self.core, workspace)

    def finds(self, query: str, words: str) -> bool:
        return any(words in content for content in found(self.core, query))

    def ids(self) -> set[str]:
        """Return the ids of all chunks."""
        return {memory.id for memory in ask(self.core, List(tier=["documents"], limit=1000))}

    def paths(self) -> set[str]:
        return {str(memory.path) for memory in ask(self.core, List(limit=1000))}
