"""Write the result of a dream: a copy of the old MEMORY.md, the new one, and an entry in the diary; and undo it.

Files are written by `workspaces.replacing`, atomically, and not if they have changed since they were read. The data for
an undo is recorded before MEMORY.md is written, so every written dream can be undone; after a crash in between, the
dream runs again and finds MEMORY.md unchanged or done.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memoryd.client.errors import Conflict, MemorydError, NotFound
from memoryd.client.protocol.dreams import DreamReport, DreamStep
from memoryd.daemon.core.core import Core
from memoryd.daemon.dreams import dreaming
from memoryd.daemon.dreams.dreaming import MEMORY, DreamDraft, DreamInput, DreamTerms
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.documents.walking import DREAMS
from memoryd.daemon.workspaces.replacing import change_file, read_file, remove_file
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_NOTHING_NEW = "Nothing is new since the last dream."
_TITLES = {"take": "Taken over", "outdated": "Outdated, left out", "repeat": "Said twice, left out"}


class _Names(NamedTuple):
    """The paths of a dream's files, relative to the root."""

    backup: str
    diary: str


def dream(core: Core, workspace: StoredWorkspace, terms: DreamTerms, dry_run: bool = False) -> DreamReport:
    """Run the dream of a workspace, or with `dry_run` report what it would do."""
    indexing.check_not_gone(core, workspace)
    reading = dreaming.read(core, workspace, terms.before)
    report = DreamReport(place=workspace.namespace, outcome="unchanged", path=f"{workspace.root}/{MEMORY}")
    if reading.memory is None and not reading.dailies:
        report.problem = f"{workspace.namespace} has neither {MEMORY} nor daily files (memory/YYYY-MM-DD.md)."
        return report
    if not terms.force and dreaming.is_dreamt(core, workspace, reading):
        report.problem = _NOTHING_NEW
        return report
    draft = dreaming.make_draft(core, workspace, reading, terms)
    old = reading.memory or b""
    report.steps, report.passing, report.by = draft.steps, draft.passing, draft.by
    report.chars_before, report.chars_after = _count_chars(old), _count_chars(draft.new)
    if 2 * report.chars_after < report.chars_before and not terms.force:
        report.outcome = "refused"
        report.problem = (
            f"{MEMORY} would shrink from {report.chars_before} to {report.chars_after} characters, by more than half;"
            " --force lets it."
        )
    elif dry_run:
        report.outcome = "planned"
    elif draft.new != old and not registry.is_write_allowed(core, workspace):
        report.outcome = "planned"
        report.problem = (
            f"{MEMORY} is yours: `memctl dream {workspace.namespace} --allow` writes this, and lets later dreams write."
        )
    elif draft.new == old:
        _record(core, workspace, reading, draft, None)
        report.problem = "" if draft.seen else _NOTHING_NEW
    else:
        _write(core, workspace, reading, draft, report)
    return report


def _count_chars(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))


def _write(core: Core, workspace: StoredWorkspace, reading: DreamInput, draft: DreamDraft, report: DreamReport) -> None:
    moment = dreaming.day_of(core, core.clock())
    names = _Names(f"{DREAMS}/{moment:%Y-%m-%dT%H%M%S}.MEMORY.md.bak", f"{DREAMS}/{moment:%Y-%m-%d}.md")
    if reading.memory is not None:
        change_file(workspace.root, names.backup, lambda data: reading.memory or b"", create=True)
    number = _record(core, workspace, reading, draft, names)

    def change(data: bytes | None) -> bytes:
        if data != reading.memory:
            raise Conflict(f"{MEMORY} was changed during the dream and is left as it is; run it again.")
        return draft.new

    change_file(workspace.root, MEMORY, change, create=reading.memory is None)
    core.store.write(lambda t: _end(t, number, "done", workspace, draft)).result()
    indexing.reindex(core, workspace, [MEMORY])
    report.outcome, report.diary = "written", f"{workspace.root}/{names.diary}"
    report.backup = None if reading.memory is None else f"{workspace.root}/{names.backup}"
    entry = _format_entry(moment, report, names)
    change_file(workspace.root, names.diary, lambda data: _append_entry(data, entry, moment), create=True)


def _record(
    core: Core, workspace: StoredWorkspace, reading: DreamInput, draft: DreamDraft, names: _Names | None
) -> int:
    """Record a dream before it is written, or one that changes nothing."""
    hashes = reading.digest(reading.memory), reading.digest(draft.new)
    before = None if reading.memory is None else hashlib.sha256(reading.memory).digest()

    def write(transaction: Transaction) -> int:
        connection = transaction.connection
        number = dreams.begin(connection, workspace.id, core.clock(), hashes)
        if names is None:
            _end(transaction, number, "unchanged", workspace, draft)
        else:
            dreams.keep_files(connection, number, before, hashlib.sha256(draft.new).digest(), names)
        return number

    return core.store.write(write).result()


def _end(transaction: Transaction, number: int, state: str, workspace: StoredWorkspace, draft: DreamDraft) -> None:
    """Record that a dream is done, and its processed notes; not earlier, or a failure would lose them."""
    dreams.keep_seen(transaction.connection, number, workspace.id, draft.seen)
    dreams.end(transaction.connection, number, state)


# The diary -----------------------------------------------------------------------------------------------------------


def _append_entry(data: bytes | None, entry: str, moment: datetime) -> bytes:
    head = f"# Dream of {moment:%Y-%m-%d}\n".encode() if data is None else data
    return head + f"\n{entry}".encode("utf-8", "surrogateescape")


def _format_entry(moment: datetime, report: DreamReport, names: _Names) -> str:
    old = f"the old one is {names.backup}" if report.backup else "there was none before"
    head = f"{MEMORY}: {report.chars_before} characters before, {report.chars_after} after; {old}. By {report.by}."
    parts = [f"## {moment:%H:%M:%S}\n\n{head}\n"]
    for action, title in _TITLES.items():
        steps = [step for step in report.steps if step.action == action]
        if steps:
            parts.append(f"### {title} ({len(steps)})\n\n{_lines(steps)}")
    if report.passing:
        parts.append(f"{report.passing} notes stay in the daily files alone.\n")
    return "\n".join(parts)


def _lines(steps: Sequence[DreamStep]) -> str:
    alike: dict[tuple[str, str], list[DreamStep]] = {}
    for step in steps:
        alike.setdefault((step.text, step.kept), []).append(step)
    return "".join(_line(text, kept, repeats) for (text, kept), repeats in alike.items())


def _line(text: str, kept: str, steps: Sequence[DreamStep]) -> str:
    origins = ", ".join(dict.fromkeys(step.source for step in steps))
    why = f" → {kept}" if kept not in ("", text) else ""
    reason = f" ({steps[0].reason})" if steps[0].reason and why else ""
    return f"- {text} ({origins}){why}{reason}\n"


# Undo ----------------------------------------------------------------------------------------------------------------


def undo(core: Core, workspace: StoredWorkspace, dry_run: bool = False) -> DreamReport:
    """Restore MEMORY.md as it was before the latest dream, unless it was changed since."""
    indexing.check_not_gone(core, workspace)
    with core.store.reading() as connection:
        stored = dreams.read_latest(connection, workspace.id)
    if stored is None:
        raise NotFound(f"There is no dream of {workspace.namespace} to undo.")
    former = None if stored.before is None else _read_former(workspace, stored)
    report = DreamReport(place=workspace.namespace, outcome="planned", path=f"{workspace.root}/{MEMORY}")
    report.backup, report.diary = f"{workspace.root}/{stored.backup}", f"{workspace.root}/{stored.diary}"
    report.chars_after = _count_chars(former or b"")
    if dry_run:
        return report

    def change(data: bytes | None) -> bytes:
        if data == former:  # a crash happened before it was written
            return former or b""
        if data is None or hashlib.sha256(data).digest() != stored.after:
            raise Conflict(
                f"{MEMORY} was changed since that dream, so it is left as it is. The old one: {stored.backup}"
            )
        report.chars_before = _count_chars(data)
        return former or b""

    if former is None:
        remove_file(workspace.root, MEMORY, change)
    else:
        change_file(workspace.root, MEMORY, change)
    core.store.write(lambda t: dreams.end(t.connection, stored.id, "undone")).result()
    indexing.reindex(core, workspace, [MEMORY])
    moment = dreaming.day_of(core, core.clock())
    entry = f"Undone on {moment:%Y-%m-%d} at {moment:%H:%M:%S}: {MEMORY} is as it was before.\n"
    change_file(workspace.root, stored.diary, lambda data: _append_entry(data, entry, moment), create=True)
    report.outcome = "undone"
    return report


def _read_former(workspace: StoredWorkspace, stored: dreams.StoredDream) -> bytes:
    try:
        former = read_file(workspace.root, stored.backup)
    except NotFound:
        raise NotFound(f"{stored.backup} no longer exists, so the dream cannot be undone.") from None
    if hashlib.sha256(former).digest() != stored.before:
        raise Conflict(f"{stored.backup} was changed, so the dream cannot be undone by it.")
    return former


def dream_all(core: Core, chosen: Sequence[StoredWorkspace], terms: DreamTerms, dry_run: bool) -> list[DreamReport]:
    """Run the dreams of workspaces; an error does not stop the others."""
    reports = []
    for workspace in chosen:
        try:
            reports.append(dream(core, workspace, terms, dry_run))
        except MemorydError as error:
            if len(chosen) == 1:
                raise
            reports.append(DreamReport(place=workspace.namespace, outcome="refused", problem=error.message))
    return reports
