"""Bringing the index up to date with files.

A pass looks at all files of a workspace (size and time of change), and gives those that are not as they were to
`reindex`, which reads them and writes what they hold, some at a time: each file is in the index as it was or as it is,
never half. Whatever moment the daemon dies at, the next pass finds what is left to do.

What cannot be read (no permission, too large, a link instead of the file) is not in the index; `status` says why. Only
where the whole folder is missing the index stays as it was: an unmounted disk must not empty it.

A file is not read again while its size and time are the same, unless it was written so shortly before it was read that
a later change may have left both as they were (as git does with its index).
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from memoryd.client.errors import Busy, Conflict, MemorydError, NotFound
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.workspaces import Live
from memoryd.daemon.documents.document import Document, Found, Scan
from memoryd.daemon.store import rows, workspaces
from memoryd.daemon.store.workspaces import Stat, Workspace
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.workspaces import chunks
from memoryd.daemon.workspaces.chunks import File

BATCH = 64  # files that are read together
_FIRST_SLICE, _LARGEST_SLICE = 8, 256  # chunks that are written together
_RACY_S = (-0.1, 2.0)  # a time of change that close to the time of reading proves nothing
_BUSY_PAUSE_S = 0.05

T = TypeVar("T")
Tell = Callable[[int, int], None]


class Gone(Conflict):
    """The folder of a workspace is not there: what is indexed of it stays until it is back."""


class Counts(msgspec.Struct):
    """What an update of the index did: files looked at, read, of these changed or not, gone; chunks new and kept."""

    scanned: int = 0
    read: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks_new: int = 0
    chunks_kept: int = 0

    def add(self, other: "Counts") -> None:
        """Count what another update did."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class _Change(NamedTuple):
    """What is to be written of one file: nothing but its stat when `file` is None."""

    relative: str
    stat: Stat | None  # None: there is no such file any more
    file: File | None
    last: Stat | None = None  # how it was known when it was not found; if it was read since, it is there again

    def weight(self) -> int:
        """Return about how many rows are touched."""
        return 1 + (len(self.file.wanted) if self.file else 0)


def index(core: Core, workspace: Workspace, force: bool = False, tell: Tell = lambda done, total: None) -> Counts:
    """Look at all files of a workspace and bring the index up to date; raise `Gone`, or `NotFound` once removed.

    `tell` hears of files done and files to do.
    """
    live = core.workspaces.live(workspace.id)
    _wait_for(core, live, tell)
    try:
        with core.store.reading() as connection:
            known = workspaces.stats(connection, workspace.id)
        found = scan(core, workspace)
        counts = Counts(scanned=len(found.files), unchanged=len(found.files))
        _leave_out(core, workspace, known, found, counts)
        todo = [file.path for file in found.files if force or _differs(file, known.get(file.path))]
        live.progress = (0, len(todo))
        tell(0, len(todo))
        for start in range(0, len(todo), BATCH):
            part = todo[start : start + BATCH]
            done = reindex(core, workspace, part, force)
            done.scanned, counts.unchanged = 0, counts.unchanged - done.read
            counts.add(done)
            live.progress = (start + len(part), len(todo))
            tell(*live.progress)
        live.scanned_at = core.clock()
        return counts
    finally:
        live.progress = None
        live.passing.release()


def _leave_out(core: Core, workspace: Workspace, known: dict[str, Stat], found: Scan, counts: Counts) -> None:
    """Delete what is indexed of files that are not there any more, or that the patterns or a .gitignore leave out."""
    there = {file.path for file in found.files}
    gone = [_Change(path, None, None, last) for path, last in known.items() if path not in there]
    with core.workspaces.live(workspace.id).writing:
        _write(core, workspace, gone, counts)


def _wait_for(core: Core, live: Live, tell: Tell) -> None:
    """Wait for the pass that is under way, and tell how far it is."""
    while not live.passing.acquire(timeout=0.1):
        core.workspaces.check_open()
        if live.progress:
            tell(*live.progress)


def scan(core: Core, workspace: Workspace) -> Scan:
    """Return the files of a workspace; raise `Gone` when its folder, or its disk, is not there."""
    live = core.workspaces.live(workspace.id)
    check_there(workspace)
    try:
        found = live.reader.scan(workspace.root, workspace.globs)
    except NotFound as error:
        raise Gone(error.message) from None
    device = check_there(workspace)
    with core.store.reading() as connection:
        before = workspaces.device(connection, workspace.id)
        known = workspaces.sums(connection, workspace).files
    if before is None:
        raise NotFound(f"The workspace {workspace.namespace} was removed.")
    if device != before:
        if known and not found.files:
            raise Gone(f"{workspace.root} is empty and on another file system than before: its disk is not mounted.")
        core.store.write(lambda t: workspaces.set_device(t.connection, workspace.id, device)).result()
    live.problems = dict(found.problems)
    live.folders = frozenset(found.folders)
    return found


def check_there(workspace: Workspace) -> int:
    """Return the file system of a workspace's folder; raise `Gone` when it is not there."""
    try:
        with os.scandir(workspace.root):
            return os.stat(workspace.root).st_dev
    except OSError as error:
        raise Gone(f"{workspace.root} cannot be looked into: {error.strerror}.") from None


def _differs(file: Found, known: Stat | None) -> bool:
    if known is None or not known.hash or (file.size, file.mtime_ns) != (known.size, known.mtime_ns):
        return True
    return _RACY_S[0] < file.mtime_ns / 1e9 - known.indexed_at < _RACY_S[1]


def reindex(core: Core, workspace: Workspace, relatives: Sequence[str], force: bool = False) -> Counts:
    """Read these files now and bring the index up to date; return when that is committed.

    Files that the workspace's globs do not name, or that an ignore file leaves out, are the caller's to leave out.
    """
    counts = Counts(scanned=len(relatives))
    live = core.workspaces.live(workspace.id)
    with live.writing:
        core.workspaces.check_open()
        check_there(workspace)
        documents = _read(live, workspace, relatives)
        if any(document is None for _, document in documents):
            _check_not_gone(core, workspace)
        with core.store.reading() as connection:
            known = {relative: workspaces.stat(connection, workspace.id, relative) for relative, _ in documents}
        counts.read = sum(document is not None for _, document in documents)
        changes = [
            change
            for relative, document in documents
            if (change := _change(core, workspace, relative, document, known[relative], force, counts))
        ]
        _write(core, workspace, changes, counts)
    return counts


def _read(live: Live, workspace: Workspace, relatives: Sequence[str]) -> list[tuple[str, Document | None]]:
    try:
        return list(live.reader.read(workspace.root, relatives))
    except NotFound as error:
        raise Gone(error.message) from None


def _check_not_gone(core: Core, workspace: Workspace) -> None:
    """Raise `Gone` when files are missing because their disk is."""
    device = check_there(workspace)
    with core.store.reading() as connection:
        before = workspaces.device(connection, workspace.id)
    if before is not None and device != before:
        raise Gone(f"{workspace.root} is on another file system than before: its disk is not mounted.")


def _change(
    core: Core,
    workspace: Workspace,
    relative: str,
    document: Document | None,
    known: Stat | None,
    force: bool,
    counts: Counts,
) -> _Change | None:
    """Return what is to be written of a file, None for nothing."""
    if document is None:
        return _Change(relative, None, None) if known else None
    stat = Stat(document.size, document.mtime_ns, document.sha256, core.clock(), document.problem)
    if known is not None and known.hash == document.sha256 and known.problem == document.problem and not force:
        counts.unchanged += 1
        return _Change(relative, stat, None)
    counts.indexed += 1
    try:
        file = chunks.file_of(workspace, relative, document)
    except MemorydError as error:
        stat = stat._replace(problem=error.message)
        file = File(chunks.absolute(workspace, relative), workspace.namespace, [])
    return _Change(relative, stat, file)


# Writing -------------------------------------------------------------------------------------------------------------


def _write(core: Core, workspace: Workspace, changes: Sequence[_Change], counts: Counts) -> None:
    """Write changes in slices that hold the writer for a few milliseconds; a file is always whole within one."""
    budget = _FIRST_SLICE
    waiting = list(changes)
    while waiting:
        part = list(_within(waiting, budget))
        del waiting[: len(part)]
        took_s = _slice(core, workspace, part, counts)
        weight = sum(change.weight() for change in part)
        budget = _resized(core, weight, budget, took_s)
        core.rest(took_s)


def _within(waiting: Sequence[_Change], budget: int) -> Iterator[_Change]:
    """Yield the first changes that fit into a slice, one at least."""
    for position, change in enumerate(waiting):
        budget -= change.weight()
        if position and budget < 0:
            return
        yield change


def _slice(core: Core, workspace: Workspace, part: Sequence[_Change], counts: Counts) -> float:
    def job(transaction: Transaction) -> tuple[Counts, float]:
        began = time.perf_counter()
        if workspaces.by_id(transaction.connection, workspace.id) is None:
            raise NotFound(f"The workspace {workspace.namespace} was removed.")
        done, concerned = Counts(), []
        for change in part:
            concerned += _apply(core, transaction, workspace, change, done)
        if concerned:
            transaction.after_commit(partial(core.embedding.refresh, concerned))
        return done, time.perf_counter() - began

    done, took_s = written(core, job, alone=sum(change.weight() for change in part) > _LARGEST_SLICE)
    counts.add(done)
    return took_s


def _apply(core: Core, transaction: Transaction, workspace: Workspace, change: _Change, done: Counts) -> list[int]:
    """Write one change; return the rows whose vectors are to be looked up, or that are gone."""
    connection = transaction.connection
    path = chunks.absolute(workspace, change.relative)
    if change.last not in (None, workspaces.stat(connection, workspace.id, change.relative)):
        return []
    if change.stat is None:
        done.removed += workspaces.drop_file(connection, workspace.id, change.relative)
        return chunks.remove(transaction, path)
    workspaces.put_file(connection, workspace.id, change.relative, change.stat)
    if change.file is None:
        chunks.touched(connection, path, change.stat.mtime_ns)
        return []
    difference = chunks.put(core, transaction, change.file)
    done.chunks_new += len(difference.new)
    done.chunks_kept += difference.kept
    return difference.new + difference.gone


def written(core: Core, job: Callable[[Transaction], T], alone: bool = False) -> T:
    """Write, however long the queue of the writer is."""
    while True:
        try:
            return core.store.write(job, alone).result()
        except Busy:
            core.workspaces.check_open()
            time.sleep(_BUSY_PAUSE_S)


def sweep(core: Core) -> int:
    """Delete the chunks whose file belongs to no workspace any more; return how many there were."""
    with core.store.reading() as connection:
        waiting = workspaces.orphans(connection)
    gone, size = 0, _FIRST_SLICE
    while waiting:
        core.workspaces.check_open()
        part, waiting = waiting[:size], waiting[size:]
        removed, took_s = written(core, partial(_sweep, core, part))
        gone += removed
        size = _resized(core, len(part), size, took_s)
        core.rest(took_s)
    return gone


def _sweep(core: Core, part: Sequence[int], transaction: Transaction) -> tuple[int, float]:
    began = time.perf_counter()
    gone = workspaces.orphans(transaction.connection, part)  # its workspace may have been added again since
    rows.delete(transaction.connection, gone)
    transaction.after_commit(partial(core.embedding.refresh, gone))
    return len(gone), time.perf_counter() - began


def _resized(core: Core, weight: int, size: int, took_s: float) -> int:
    """Return the size of the next slice after one of `weight` rows took `took_s`: at most doubled."""
    fitting = int(weight * core.config.jobs.slice_ms / 1000 / max(took_s, 1e-6))
    return max(1, min(fitting, 2 * size, _LARGEST_SLICE))
