"""Comparing the index with the files: what each has that the other has not. Changes neither."""

from collections.abc import Sequence

from memoryd.client.protocol.workspaces import ChunkDifference, Differences, FileDifference
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.workspaces import chunks, indexing
from memoryd.daemon.workspaces.committing import Tell
from memoryd.daemon.workspaces.documents.document import Document
from memoryd.daemon.workspaces.live import get_live
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

BATCH = 64  # files that are read together
LISTED = 1000  # files that differ, of which the rest is counted
SHOWN = 100  # chunks of one file
PREVIEW_CHARS = 200


def compare(core: Core, chosen: Sequence[StoredWorkspace], tell: Tell) -> Differences:
    """Return where these workspaces and the index differ; raise `Gone` when the folder of one is not there."""
    differences: list[FileDifference] = []
    compared = 0
    for workspace in chosen:
        names = _names(core, workspace)
        for part in split_evenly(names, BATCH):
            core.apart.check_open()
            differing = [difference.path for difference in _compare(core, workspace, part)]
            if differing:  # a second look, since the index may have followed a change just now
                root = chunks.absolute_path(workspace, "")
                differences += _compare(core, workspace, [path.removeprefix(root) for path in differing])
            compared += len(part)
            tell(compared, max(len(names), compared))
    return Differences(files=differences[:LISTED], total=len(differences), compared=compared)


def _names(core: Core, workspace: StoredWorkspace) -> list[str]:
    """Return the files that there are and those that the index knows."""
    there = {file.path for file in indexing.scan(core, workspace).files}
    with core.store.reading() as connection:
        known = workspaces.stats(connection, workspace.id)
    return sorted(there | known.keys())


def _compare(core: Core, workspace: StoredWorkspace, names: Sequence[str]) -> list[FileDifference]:
    documents = get_live(core, workspace).reader.read(workspace.root, names)
    differences = (_find_difference(core, workspace, name, document) for name, document in documents)
    return [difference for difference in differences if difference]


def _find_difference(
    core: Core, workspace: StoredWorkspace, name: str, document: Document | None
) -> FileDifference | None:
    path = chunks.absolute_path(workspace, name)
    with core.store.reading() as connection:
        held = rows.read_rows(connection, workspaces.find_rows(connection, path)).values()
    wanted = [] if document is None else [one.row for one in chunks.build_file(workspace, name, document).wanted]
    if document is not None and not document.sha256:
        return None  # it cannot be read, so what is indexed of it stays
    number = core.store.namespaces.find_number(chunks.namespace_of(workspace, name))
    for row in wanted:
        row.namespace = -1 if number is None else number
    there, here = [_key(row) for row in wanted], [_key(row) for row in held]
    only = [(True, row) for row in wanted if _key(row) not in here] + [
        (False, row) for row in held if _key(row) not in there
    ]
    if not only and len(wanted) == len(held):
        return None
    only.sort(key=lambda pair: (pair[1].start_line or 0, pair[0]))
    return FileDifference(
        workspace=workspace.namespace,
        path=path,
        standing="extra" if document is None else "changed" if held else "missing",
        chunks=[_show(in_file, row) for in_file, row in only[:SHOWN]],
    )


def _key(row: Row) -> tuple[object, ...]:
    """Return what a chunk is: its text, its attributes, and its place."""
    return (
        *(row.namespace, row.type, row.text_hash, row.content_hash, row.metadata),
        *(row.start_line, row.end_line, row.pinned, row.expires_at),
    )


def _show(in_file: bool, row: Row) -> ChunkDifference:
    return ChunkDifference(
        in_file=in_file,
        start_line=row.start_line or 1,
        end_line=row.end_line or 1,
        preview=row.content[:PREVIEW_CHARS],
    )
