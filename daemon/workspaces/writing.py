"""Write to files of workspaces: `remember` appends a note, `forget` removes lines. Both update the index at once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from memoryd.client.errors import Conflict, Forbidden, Invalid, NotFound
from memoryd.client.protocol import Delete
from memoryd.client.protocol.workspaces import Forget, Forgotten, Remember, Remembered, RemovedLines
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import changing
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.registry import handles
from memoryd.daemon.store import history, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.turns import resolve_row
from memoryd.daemon.workspaces import chunks, hosts, indexing, registry
from memoryd.daemon.workspaces.documents.document import MAX_BYTES
from memoryd.daemon.workspaces.documents.lines import REPLACEMENT
from memoryd.daemon.workspaces.editing import append, cut, decode, find_item, split
from memoryd.daemon.workspaces.note_paths import relative_path
from memoryd.daemon.workspaces.replacing import change_file, read_file
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_MARK = "\ufeff"


# remember ------------------------------------------------------------------------------------------------------------


@handles(Remember)
def remember(core: Core, call: Remember, caller: Caller = USER) -> Remembered:
    """Append a note to a file; return its place and the memory that contains it."""
    limits.check_content(call.text)
    workspace = hosts.check_writable(find_workspace(core, call.workspace, caller))
    relative = relative_path(workspace, call.file, core.clock(), core.config.workspaces.local_dates)
    namespace = chunks.namespace_of(workspace, relative)
    if not caller.may_change(namespace):
        raise Forbidden(f"{namespace} is shared; with this token only what is in {caller.namespace} may be written.")
    indexing.check_not_gone(core, workspace)
    lines = (1, 1)

    def change(data: bytes | None) -> bytes:
        nonlocal lines
        edit = append(decode(data or b""), call.text)
        lines = edit.start_line, edit.end_line
        new = edit.text.encode("utf-8", "surrogateescape")
        if len(new) > MAX_BYTES:
            raise Invalid(f"{relative} would have {len(new)} bytes; larger files are not indexed. Name another one.")
        return new

    change_file(workspace.root, relative, change, create=True)
    indexing.reindex(core, workspace, [relative])
    path = chunks.absolute_path(workspace, relative)
    with core.store.reading() as connection:
        holder = _find_holder(_read_chunks(connection, path), lines, call.text)
    id = holder.id if holder else None
    return Remembered(path=path, start_line=lines[0], end_line=lines[1], namespace=namespace, id=id)


def find_workspace(core: Core, name: str, caller: Caller) -> StoredWorkspace:
    """Return a workspace by name or path; a caller with a token finds only those whose memories it can see."""
    if not caller.bound:
        return registry.find(core, name)
    for workspace in registry.list_all(core):
        if workspace.namespace == name.strip("/") and caller.can_see(workspace.namespace):
            return workspace
    raise NotFound(f"There is no workspace {name[:200]!r}.", {"workspace": name[:200]})


def _read_chunks(connection: Connection, path: str) -> list[Row]:
    found = rows.read_rows(connection, workspaces.find_rows(connection, path))
    return sorted(found.values(), key=lambda row: (row.start_line or 0, row.end_line or 0, row.row))


def _find_holder(found: Sequence[Row], lines: tuple[int, int], note: str) -> Row | None:
    """Return the chunk that contains a note: at its lines, or elsewhere if the file was changed meanwhile."""
    words = note.split()[0]
    for row in found:
        if (row.start_line or 0) <= lines[0] <= (row.end_line or 0) and words in row.content:
            return row
    first = note.strip().splitlines()[0].strip()
    return next((row for row in found if first in row.content), None)


# forget --------------------------------------------------------------------------------------------------------------


class _Target(NamedTuple):
    """A chunk to remove. Its first `repeated` lines also belong to the chunk before it; the `kept` lines after them
    are headings of further chunks as well."""

    row: Row
    repeated: int
    kept: int


@handles(Forget)
def forget(core: Core, call: Forget, caller: Caller = USER) -> Forgotten:
    """Remove the lines of chunks from their files, and delete memories that belong to no file."""
    _check(call)
    with core.store.reading() as connection:
        condition = changing.visible_condition(core, call)
        found = {row.id: row for row in (resolve_row(connection, prefix, condition) for prefix in call.ids)}
        paths = dict.fromkeys(str(row.path) for row in found.values() if row.tier == DOCUMENTS)
        files = {path: _read_chunks(connection, path) for path in paths}  # in the same snapshot as the ids
        for row in found.values():
            history.check_change(connection, caller, row.id, core.store.namespaces.name(row.namespace))
    others = [row.id for row in found.values() if row.tier != DOCUMENTS]
    if others and (call.text is not None or call.start_line is not None):
        raise Invalid(f"Memory {others[0][:8]} belongs to no file; `text` and lines are for memories of files.")
    removals = [_Removal(core, call, path, chunks_of_file, set(found)) for path, chunks_of_file in files.items()]
    removed = [part for one in removals for part in one.plan()]  # for all files, before any is changed
    if call.dry_run:
        return Forgotten(removed=removed, deleted=others, dry_run=True)
    operation = None
    if others:
        deleted = changing.delete(core, Delete(ids=others, namespace=call.namespace, reach=call.reach), caller).result()
        operation = deleted.operation
    removed = [part for one in removals for part in one.apply()]
    return Forgotten(removed=removed, deleted=others, operation=operation)


def _check(call: Forget) -> None:
    if not call.ids:
        raise Invalid("Give the ids of the memories to forget.")
    if call.end_line is not None and (call.start_line is None or call.end_line < call.start_line):
        raise Invalid(f"Line {call.end_line} cannot be the last: the first is {call.start_line or 'not given'}.")
    if call.text is not None and (not call.text.strip() or call.start_line is not None):
        raise Invalid("Give either lines or a text that is not empty.")
    if (call.text is not None or call.start_line is not None) and len(call.ids) != 1:
        raise Invalid("With a text or lines give exactly one id: that of the memory that contains them.")


class _Removal:
    def __init__(self, core: Core, call: Forget, path: str, chunks: Sequence[Row], ids: set[str]) -> None:
        self.core, self.call, self.path = core, call, path
        self.workspace = hosts.check_writable(registry.find(core, path))
        self.relative = path[len(str(self.workspace.root).rstrip("/")) + 1 :]
        self.targets = [_find_target(chunks, at) for at, row in enumerate(chunks) if row.id in ids]
        self.removed: list[RemovedLines] = []

    def plan(self) -> list[RemovedLines]:
        """Return the lines that would be removed."""
        self._with_reindex(lambda: self._change(read_file(self.workspace.root, self.relative)))
        return self.removed

    def apply(self) -> list[RemovedLines]:
        """Remove the lines, and update the index."""
        self._with_reindex(lambda: change_file(self.workspace.root, self.relative, self._change))
        indexing.reindex(self.core, self.workspace, [self.relative])
        return self.removed

    def _with_reindex(self, work: Callable[[], object]) -> None:
        """Run `work`; if the file differs from the index, update the index for the next attempt."""
        indexing.check_not_gone(self.core, self.workspace)
        try:
            work()
        except (Conflict, NotFound):
            indexing.reindex(self.core, self.workspace, [self.relative])
            raise

    def _change(self, data: bytes | None) -> bytes:
        text = decode(data or b"")
        redacted = find_privacy(self.core).text(text)
        ranges = [_find_range(self.call, target, text, redacted) for target in self.targets]
        self.removed = []
        for target, (start, end) in sorted(zip(self.targets, ranges, strict=True), key=lambda pair: -pair[1][0]):
            edit, gone = cut(text, start, end)
            text = edit.text
            lines = {"start_line": edit.start_line, "end_line": edit.end_line}
            self.removed.insert(0, RemovedLines(id=target.row.id, path=self.path, text=_normalise(gone), **lines))
        return text.encode("utf-8", "surrogateescape")


def _find_target(chunks: Sequence[Row], at: int) -> _Target:
    row = chunks[at]
    start = row.start_line or 1
    before = [other.end_line or 0 for other in chunks[:at]]
    repeated = max([0, *(last - start + 1 for last in before)])
    after = chunks[at + 1] if at + 1 < len(chunks) else None
    heading = _heading_of(row)
    continues = after is not None and heading and f"{_heading_of(after)} > ".startswith(f"{heading} > ")
    lines = row.content.split("\n")
    kept = 0
    if continues:
        while repeated + kept < len(lines) and _is_heading(lines, repeated + kept):
            kept += 1
    return _Target(row, repeated, kept)


def _heading_of(row: Row) -> str:
    return str(msgspec.json.decode(row.metadata).get("heading", ""))


def _is_heading(lines: Sequence[str], at: int) -> bool:
    line = lines[at].strip()
    underlined = at + 1 < len(lines) and line and set(lines[at + 1].strip()) in ({"="}, {"-"})
    return line.startswith("#") or bool(underlined) or (bool(line) and set(line) in ({"="}, {"-"})) or not line


def _find_range(call: Forget, target: _Target, text: str, redacted: str) -> tuple[int, int]:
    """Return the lines to remove from the present text of a file, in which the chunk may have moved.

    `redacted` is the text with credentials redacted, as in the index, with the same lines.
    """
    moved, is_whole = _measure_move(target.row, redacted)
    start, end = (target.row.start_line or 1) + moved, (target.row.end_line or 1) + moved
    if call.start_line is not None:
        first, last = call.start_line + moved, (call.end_line or call.start_line) + moved
        if not start <= first <= last <= end:
            raise Invalid(f"Memory {target.row.id[:8]} is lines {start - moved} to {end - moved} of {target.row.path}.")
        return first, last
    if call.text is not None:
        return _find_line(call.text, target, text, start, end)
    first = start + target.repeated + target.kept
    if not is_whole or first > end:
        raise Conflict(
            f"Memory {target.row.id[:8]} is a part of line {end - moved} of {target.row.path}, or all its lines"
            " belong to other memories as well; give the lines to remove, or a text in them.",
            {"id": target.row.id},
        )
    return first, end


def _measure_move(row: Row, text: str) -> tuple[int, bool]:
    """Return by how many lines a chunk has moved in its file, and whether it consists of whole lines.

    Raise `Conflict` if the file does not contain it any more, or more than once.
    """
    lines = [_normalise(line.rstrip("\r\n")) for line in split(text.removeprefix(_MARK))]
    wanted = row.content.split("\n")
    at = (row.start_line or 1) - 1
    part = lines[at : at + len(wanted)]
    if part == wanted:
        return 0, True
    if len(part) == len(wanted) and part[:-1] == wanted[:-1] and wanted[-1] in part[-1]:
        return 0, False
    places = [place for place in range(len(lines) - len(wanted) + 1) if lines[place : place + len(wanted)] == wanted]
    if len(places) != 1:
        raise Conflict(
            f"{row.path} was changed; memory {row.id[:8]} is not at lines {row.start_line} to {row.end_line} any more."
            " Search again.",
            {"id": row.id, "path": row.path},
        )
    return places[0] - at, True


def _find_line(wanted: str, target: _Target, text: str, start: int, end: int) -> tuple[int, int]:
    """Return the list item or line of a chunk that contains a text."""
    lines = split(text)
    first_words = wanted.strip().splitlines()[0].strip()
    found = [number for number in range(start, end + 1) if first_words in lines[number - 1]]
    if len(found) != 1:
        where = f"is in lines {', '.join(map(str, found))}" if found else "does not stand"
        raise Conflict(
            f"{first_words[:60]!r} {where} of memory {target.row.id[:8]}; give more of it, or the lines.",
            {"id": target.row.id, "lines": found},
        )
    return find_item(text, found[0])


def _normalise(text: str) -> str:
    """Replace bytes that are not UTF-8, and NUL, by U+FFFD, as in chunks."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", REPLACEMENT)
