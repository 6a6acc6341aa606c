"""Write the chunks of files to the database in slices of a few milliseconds; a file is never split.

Each change carries the stat that the index had when the file was read. If that differs now, another thread has indexed
the file since, and the change is discarded, so that the latest reading wins.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from memoryd.client.errors import NotFound
from memoryd.client.protocol.workspaces import IndexedWorkspace as Counts
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import SLICE_S
from memoryd.daemon.store import rows
from memoryd.daemon.store.writer import Transaction, wait_patiently
from memoryd.daemon.workspaces import chunks
from memoryd.daemon.workspaces.chunks import File
from memoryd.daemon.workspaces.live import FIRST_SLICE, get_live
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import Stat, StoredWorkspace

_LARGEST_SLICE = 256  # chunks

T = TypeVar("T")
ReportCounts = Callable[[int, int], None]
_COUNTS = ("scanned", "read", "indexed", "unchanged", "removed", "chunks_new", "chunks_kept")


class FileCommit(NamedTuple):
    """A change of one file: its deletion (no `stat`), a new stat only (no `file`), or new chunks."""

    relative: str
    known: Stat | None  # the stat in the index when the file was read
    stat: Stat | None
    file: File | None = None
    former: tuple[str, Stat | None] | None = None  # of a moved file: its former path and stat

    def is_larger(self) -> bool:
        """Return whether the index will grow: the file is new or has become longer."""
        if self.file is None or self.stat is None:
            return False
        return self.known is None or self.stat.size > self.known.size

    def weight(self) -> int:
        """Return about how many rows the change touches."""
        return 1 + (len(self.file.wanted) if self.file else 0)


def write(core: Core, workspace: StoredWorkspace, changes: Iterable[FileCommit], counts: Counts) -> list[str]:
    """Write changes as they come; return the files whose changes are outdated, and which must be read again."""
    live = get_live(core, workspace)
    outdated, part, weight = list[str](), list[FileCommit](), 0
    began = time.perf_counter()
    for change in changes:
        if part and weight + change.weight() > live.slice:
            outdated += _write_slice(core, workspace, part, counts, began)
            part, weight, began = [], 0, time.perf_counter()
        part.append(change)
        weight += change.weight()
    if part:
        outdated += _write_slice(core, workspace, part, counts, began)
    return outdated


def _write_slice(
    core: Core, workspace: StoredWorkspace, part: Sequence[FileCommit], counts: Counts, began: float
) -> list[str]:
    """Write changes in one transaction and rest; return the files whose changes are outdated."""
    live, weight = get_live(core, workspace), sum(change.weight() for change in part)
    if any(change.is_larger() for change in part):
        core.store.check_room()
    prepared_s = time.perf_counter() - began

    def write(transaction: Transaction) -> tuple[Counts, list[str], float]:
        began = time.perf_counter()
        connection = transaction.connection
        if workspaces.read_workspace(connection, workspace.id) is None:
            raise NotFound(f"The workspace {workspace.namespace} was removed.")
        done, changed, outdated = Counts(namespace=workspace.namespace), list[int](), list[str]()
        for change in part:
            if workspaces.read_stat(connection, workspace.id, change.relative) == change.known:
                changed += _apply(core, transaction, workspace, change, done)
            else:
                outdated.append(change.relative)
        if changed:
            transaction.after_commit(partial(core.embedding.refresh, changed))
        return done, outdated, time.perf_counter() - began

    done, outdated, took_s = write_patiently(core, write, alone=weight > _LARGEST_SLICE)
    add_counts(counts, done)
    live.slice = _resize(weight, live.slice, took_s)
    core.rest(prepared_s + took_s)
    return outdated


def _apply(
    core: Core, transaction: Transaction, workspace: StoredWorkspace, change: FileCommit, done: Counts
) -> list[int]:
    """Write one change; return the rows that are new, changed or deleted, for the embedder."""
    connection = transaction.connection
    path = chunks.absolute_path(workspace, change.relative)
    if change.stat is None:
        done.removed += workspaces.drop_file(connection, workspace.id, change.relative)
        gone = workspaces.find_rows(connection, path)
        rows.delete(connection, gone)
        return gone
    done.read += 1
    moved = _move(core, transaction, workspace, change, path)
    done.removed += bool(moved)
    workspaces.put_file(connection, workspace.id, change.relative, change.stat)
    if change.file is None:
        done.unchanged += 1
        workspaces.set_times(connection, path, change.stat.mtime_ns / 1e9)
        return []
    difference = chunks.put(core, transaction, change.file)
    done.indexed += 1
    done.chunks_new += len(difference.new)
    done.chunks_kept += difference.kept
    return [*moved, *difference.new, *difference.gone]


def _move(core: Core, transaction: Transaction, workspace: StoredWorkspace, change: FileCommit, path: str) -> list[int]:
    """Move the rows of a file's former path to it; return them, none if that path was indexed again since."""
    connection, (former, known) = transaction.connection, change.former or ("", None)
    if change.file is None or known is None or workspaces.read_stat(connection, workspace.id, former) != known:
        return []
    workspaces.drop_file(connection, workspace.id, former)
    moved = workspaces.find_rows(connection, chunks.absolute_path(workspace, former))
    namespace = core.store.namespaces.ensure(transaction, change.file.namespace) if moved else 0
    rows.change_many(connection, ("path", "namespace"), [(path, namespace, row) for row in moved])
    return moved


def add_counts(counts: Counts, other: Counts) -> None:
    """Add the counts of another update."""
    for name in _COUNTS:
        setattr(counts, name, getattr(counts, name) + getattr(other, name))


def write_patiently(core: Core, job: Callable[[Transaction], T], alone: bool = False) -> T:
    """Write, waiting while the writer's queue is full. Ignores the size limit, which `_write_slice` has checked."""
    return wait_patiently(lambda: core.store.write(job, alone, over_limit=True), core.background.check_open)


def sweep(core: Core, report: ReportCounts = lambda done, total: None) -> int:
    """Delete the chunks of files that belong to no workspace; return how many were deleted."""
    with core.store.reading() as connection:
        waiting = workspaces.find_orphans(connection)
    gone, size, total = 0, FIRST_SLICE, len(waiting)
    while waiting:
        core.background.check_open()
        part, waiting = waiting[:size], waiting[size:]
        removed, took_s = write_patiently(core, partial(_sweep, core, part))
        gone += removed
        size = _resize(len(part), size, took_s)
        report(total - len(waiting), total)
        core.rest(took_s)
    return gone


def _sweep(core: Core, part: Sequence[int], transaction: Transaction) -> tuple[int, float]:
    began = time.perf_counter()
    gone = workspaces.find_orphans(transaction.connection, part)  # again: the workspace may have been added since
    rows.delete(transaction.connection, gone)
    transaction.after_commit(partial(core.embedding.refresh, gone))
    return len(gone), time.perf_counter() - began


def _resize(weight: int, size: int, took_s: float) -> int:
    """Return the size of the next slice, at most doubled, after one of `weight` rows took `took_s`."""
    fitting = int(weight * SLICE_S / max(took_s, 1e-6))
    return max(1, min(fitting, 2 * size, _LARGEST_SLICE))
