"""Files that tests of workspaces write, and a core that watches them."""

from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.protocol import List
from memoryd.client.protocol.workspaces import Workspace
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import rows
from memoryd.daemon.workspaces import calls, chunks, indexing, registry
from memoryd.daemon.workspaces.live import get_live
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


def equal(core: Core, workspace: StoredWorkspace) -> bool:
    """Return whether the index has what the files hold, line by line."""
    names = [file.path for file in indexing.scan(core, workspace).files]
    wanted = {
        (one.row.path, one.row.start_line, one.row.end_line, one.row.text_hash, one.row.metadata)
        for name, document in get_live(core, workspace).reader.read(workspace.root, names)
        if document
        for one in chunks.build_file(workspace, name, document).wanted
    }
    with core.store.reading() as connection:
        held = rows.select(connection, "m.tier = 'documents'", ())
    return wanted == {(row.path, row.start_line, row.end_line, row.text_hash, row.metadata) for row in held}


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

    def status(self, workspace: StoredWorkspace) -> Workspace:
        return calls.examine(self.core, workspace)

    def finds(self, query: str, words: str) -> bool:
        return any(words in content for content in found(self.core, query))

    def ids(self) -> set[str]:
        """Return the ids of all chunks."""
        return {memory.id for memory in ask(self.core, List(tier=["documents"], limit=1000))}

    def paths(self) -> set[str]:
        return {str(memory.path) for memory in ask(self.core, List(limit=1000))}
