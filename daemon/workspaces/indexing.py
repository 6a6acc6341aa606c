"""Update the index of a workspace after changes of its files.

A pass compares the size and modification time of all files with the index, and reads and writes those that differ, in
batches. A file is in the index either in its former or in its present state, and after a crash the next pass completes
the work.

Files that cannot be read (no permission, too large, a symbolic link) are not in the index; `status` says why. If the
whole folder is missing, the index is left unchanged: an unmounted disk must not empty it.

A file with the same size and time is not read again, unless its time is so close to that of reading that a later change
may have left both unchanged (git treats its index the same way).
"""

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from memoryd.client.errors import Conflict, MemorydError, NotFound
from memoryd.client.protocol.workspaces import IndexedWorkspace as Counts
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.system.process import lower_priority
from memoryd.daemon.workspaces import chunks, committing
from memoryd.daemon.workspaces.chunks import File
from memoryd.daemon.workspaces.committing import FileCommit, ReportCounts
from memoryd.daemon.workspaces.documents.document import Document, Scan, WalkedFile
from memoryd.daemon.workspaces.live import Live, get_live
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import Stat, StoredWorkspace

BATCH = 64  # files that are read together
_ATTEMPTS = 10  # to write a file that other threads index at the same time
_RACY_S = (-0.1, 2.0)  # a modification time this close to the time of reading proves nothing

Documents = list[tuple[str, Document | None]]


class Gone(Conflict):
    """The folder of a workspace is missing; its index is kept until the folder is back."""


def index(
    core: Core, workspace: StoredWorkspace, force: bool = False, report: ReportCounts = lambda done, total: None
) -> Counts:
    """Run a pass over all files of a workspace; raise `Gone`, or `NotFound` if it was removed.

    `report` is called with the numbers of files done and to do. The patterns are read again first: with outdated ones
    a pass would remove files that a later pass has added.
    """
    live = get_live(core, workspace)
    _wait_for(core, live, report)
    try:
        with core.store.reading() as connection:
            known = workspaces.stats(connection, workspace.id)
            now = workspaces.read_workspace(connection, workspace.id)
        if now is None:
            raise _build_removed_error(workspace)
        workspace = now
        scanned = scan(core, workspace)
        live.problems = dict(scanned.problems)
        live.folders = frozenset(scanned.folders)
        live.left_out = {**scanned.left_out, **({"*": scanned.others} if scanned.others else {})}
        counts = Counts(namespace=workspace.namespace, scanned=len(scanned.files), unchanged=len(scanned.files))
        gone, moved = _find_gone(known, scanned)
        held = set(moved.values())
        committing.write(core, workspace, (one for one in gone if one.relative not in held), counts)
        todo = [file.path for file in scanned.files if force or _is_different(file, known.get(file.path))]
        counts.unchanged -= len(todo)
        live.progress = (0, len(todo))
        report(0, len(todo))
        for documents in _read_ahead(core, live, workspace, todo):
            if late := _write(core, workspace, known, documents, force, counts, moved):
                committing.add_counts(counts, reindex(core, workspace, late, force))
            live.progress = (live.progress[0] + len(documents), len(todo))
            report(*live.progress)
        committing.write(core, workspace, (one for one in gone if one.relative in held), counts)  # unless moved
        counts.scanned = len(scanned.files)
        live.scanned_at = core.clock()
        return counts
    finally:
        live.progress = None
        live.passing.release()


def _find_gone(known: dict[str, Stat], scanned: Scan) -> tuple[list[FileCommit], dict[bytes, str]]:
    """Return the files that no longer exist or are excluded now, and by hash those that may have been moved."""
    present = {file.path for file in scanned.files}
    gone = [FileCommit(path, last, None) for path, last in known.items() if path not in present]
    sizes = {file.size for file in scanned.files if file.path not in known}
    moved = {one.known.hash: one.relative for one in gone if one.known and one.known.hash and one.known.size in sizes}
    return gone, moved


def _read_ahead(core: Core, live: Live, workspace: StoredWorkspace, relatives: Sequence[str]) -> Iterator[Documents]:
    """Yield documents in batches; the next batch is read while the caller writes the present one."""
    parts = list(split_evenly(relatives, BATCH))
    with ThreadPoolExecutor(1, "reading", initializer=lower_priority) as pool:
        coming = deque(pool.submit(_read, core, live, workspace, part) for part in parts[:1])
        for following in [*parts[1:], ()]:
            documents = coming.popleft().result() if coming else []
            core.background.check_open()
            if following:
                coming.append(pool.submit(_read, core, live, workspace, following))
            if documents:
                yield documents


def _wait_for(core: Core, live: Live, report: ReportCounts) -> None:
    while not live.passing.acquire(timeout=0.1):
        core.background.check_open()
        if live.progress:
            report(*live.progress)


def scan(core: Core, workspace: StoredWorkspace) -> Scan:
    """Return the files of a workspace; raise `Gone` if its folder or disk is missing."""
    live = get_live(core, workspace)
    check_present(workspace)
    try:
        scanned = live.reader.scan(workspace.root, workspace.globs)
    except NotFound as error:
        raise Gone(error.message) from None
    device = check_present(workspace)
    with core.store.reading() as connection:
        before = workspaces.read_device(connection, workspace.id)
        known = workspaces.count_indexed(connection, workspace).files
    if before is None:
        raise _build_removed_error(workspace)
    if device != before:
        if known and not scanned.files:
            raise Gone(f"{workspace.root} is empty and on another file system than before: its disk is not mounted.")
        core.store.write(lambda t: workspaces.set_device(t.connection, workspace.id, device)).result()
    return scanned


def find_differences(core: Core, workspace: StoredWorkspace) -> list[tuple[str, str]]:
    """Return the files whose size or time differs from the index, and what happened to each.

    The list is empty during a pass, or if the folder cannot be read.
    """
    if get_live(core, workspace).passing.locked():
        return []
    try:
        present = {file.path: file for file in scan(core, workspace).files}
    except MemorydError:
        return []
    with core.store.reading() as connection:
        known = workspaces.stats(connection, workspace.id)
    differing = []
    for path in sorted(present.keys() | known.keys()):
        file, last = present.get(path), known.get(path)
        if file is None:
            differing.append((path, "It no longer exists, or is excluded now."))
        elif last is None:
            differing.append((path, "It is not in the index yet."))
        elif (file.size, file.mtime_ns) != (last.size, last.mtime_ns):
            differing.append((path, "It has changed since it was read."))
    return differing


def _build_removed_error(workspace: StoredWorkspace) -> NotFound:
    return NotFound(f"The workspace {workspace.namespace} was removed.")


def check_present(workspace: StoredWorkspace) -> int:
    """Return the device number of a workspace's folder; raise `Gone` if it cannot be read."""
    try:
        with os.scandir(workspace.root):
            return os.stat(workspace.root).st_dev
    except OSError as error:
        raise Gone(f"{workspace.root} cannot be read: {error.strerror}.") from None


def _is_different(file: WalkedFile, known: Stat | None) -> bool:
    if known is None or not known.hash or (file.size, file.mtime_ns) != (known.size, known.mtime_ns):
        return True
    return _RACY_S[0] < file.mtime_ns / 1e9 - known.indexed_at < _RACY_S[1]


def reindex(core: Core, workspace: StoredWorkspace, relatives: Sequence[str], force: bool = False) -> Counts:
    """Read the given files and update the index; return after the commit.

    The caller must not pass files that the workspace's patterns or an ignore file exclude.
    """
    counts, waiting = Counts(namespace=workspace.namespace, scanned=len(relatives)), list(relatives)
    live = get_live(core, workspace)
    for _ in range(_ATTEMPTS):
        check_present(workspace)
        with core.store.reading() as connection:
            known = {relative: workspaces.read_stat(connection, workspace.id, relative) for relative in waiting}
        waiting = _write(core, workspace, known, _read(core, live, workspace, waiting), force, counts)
        if not waiting:
            break
    return counts


def _read(core: Core, live: Live, workspace: StoredWorkspace, relatives: Sequence[str]) -> Documents:
    try:
        documents = list(live.reader.read(workspace.root, relatives))
    except NotFound as error:
        raise Gone(error.message) from None
    if any(document is None for _, document in documents):
        check_not_gone(core, workspace)
    return documents


def check_not_gone(core: Core, workspace: StoredWorkspace) -> None:
    """Raise `Gone` if files are missing because their disk is not mounted."""
    device = check_present(workspace)
    with core.store.reading() as connection:
        before = workspaces.read_device(connection, workspace.id)
    if before is not None and device != before:
        raise Gone(f"{workspace.root} is on another file system than before: its disk is not mounted.")


def _write(
    core: Core,
    workspace: StoredWorkspace,
    known: Mapping[str, Stat | None],
    documents: Documents,
    force: bool,
    counts: Counts,
    moved: dict[bytes, str] | None = None,
) -> list[str]:
    """Write the documents that differ from `known`; return the files that another thread has indexed since.

    A new file with the content of one in `moved` (hash -> former path) takes over its chunks; the entry is removed.
    """
    changes = (_change(core, workspace, known.get(path), path, document, force) for path, document in documents)
    if moved:
        changes = (_take_over(known, moved, change) for change in changes)
    return committing.write(core, workspace, (change for change in changes if change.stat or change.known), counts)


def _take_over(known: Mapping[str, Stat | None], moved: dict[bytes, str], change: FileCommit) -> FileCommit:
    if change.known is not None or change.stat is None or change.stat.hash not in moved:
        return change
    former = moved.pop(change.stat.hash)
    return change._replace(former=(former, known[former]))


def _change(
    core: Core, workspace: StoredWorkspace, known: Stat | None, relative: str, document: Document | None, force: bool
) -> FileCommit:
    """Return the change for a file that was read: only its stat if its content is in the index already."""
    if document is None:
        return FileCommit(relative, known, None)
    stat = Stat(document.size, document.mtime_ns, document.sha256, core.clock(), document.problem)
    if known and not force and (known.hash, known.problem) == (stat.hash, stat.problem):
        return FileCommit(relative, known, stat)
    try:
        return FileCommit(relative, known, stat, chunks.build_file(workspace, relative, document))
    except MemorydError as error:
        nothing = File(chunks.absolute_path(workspace, relative), workspace.namespace, [])
        return FileCommit(relative, known, stat._replace(problem=error.message), nothing)
