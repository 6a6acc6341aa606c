"""The command `sync`: bring the saved memories of this machine and another one to the same state, over ssh.

No state is stored between runs. Both daemons list their memories and their deletions (`list_versions`). Memories that
differ are then copied as by an export and an import, so an interrupted run is completed by the next one. When a daemon
writes a memory, it checks again that it has no later version.
"""

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from memoryd.client.errors import Invalid, TimedOut, Unavailable, UnknownMethod, VersionMismatch
from memoryd.client.offline import is_offline
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import check_person, client_for, named_namespace
from memoryd.client.programs.memctl.local import effective_settings
from memoryd.client.programs.memctl.output import make_printable, paint, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text, list_ids
from memoryd.client.projects.roots import find_root
from memoryd.client.protocol import (
    Erase,
    ExportMemories,
    GetShared,
    Gone,
    ImportMemories,
    ListVersions,
    Record,
    Version,
)
from memoryd.client.transport.batches import split_evenly
from memoryd.client.transport.remote import RemoteClient
from memoryd.client.transport.sync import Client

_PART = 200  # memories per call

Versions = dict[str, Version]


class Outcome(Struct, kw_only=True):
    """What a run did on one machine, or would do: how many memories it added, and the ids of all others."""

    added: int = 0
    changed: list[str] = []
    deleted: list[str] = []
    erased: list[str] = []
    kept: list[str] = []  # not changed: they were changed there during the run, or another memory has their key
    copies: list[str] = []  # copies of the database there that still contain erased memories
    operation: str | None = None


class Report(Struct, kw_only=True):
    """What a run did on both machines; `same` is the number of memories that were equal before it."""

    same: int
    here: Outcome = field(default_factory=Outcome)
    there: Outcome = field(default_factory=Outcome)
    dry_run: bool = False


class _Plan(NamedTuple):
    """What one machine takes from the other."""

    erased: list[str]
    gone: list[Gone]
    records: list[Version]


def sync(here: Client, there: Client, bar: ProgressBar, dry_run: bool) -> Report:
    """Bring two daemons to the same state; with `dry_run` only return what would be done."""
    roots = {root.name: [""] for client in (there, here) for root in client.call(GetShared()).roots}
    theirs, ours = _list(there, bar), _list(here, bar)
    same = sum(one.digest != "" and one.digest == theirs[id].digest for id, one in ours.items() if id in theirs)
    report = Report(same=same, dry_run=dry_run)
    taken = _plan(theirs, ours, roots)
    if dry_run:
        _preview(taken, ours, report.here)
        _preview(_plan(ours, theirs, roots), theirs, report.there)
    else:
        _apply(taken, there, here, report.here, bar)
        if any(taken):  # the import may have changed other memories too, such as a circle of successors
            ours = _list(here, bar)
        _apply(_plan(ours, theirs, roots), here, there, report.there, bar)
    return report


def _list(client: Client, bar: ProgressBar) -> Versions:
    found: Versions = {}
    after: str | None = ""
    while after is not None:
        page = client.call(ListVersions(after_id=after, reach="subtree" if client.namespace else "all"))
        found |= {version.id: version for version in page}
        bar.update(len(found), len(found), "list")
        after = page.next
    return found


def _plan(source: Versions, target: Versions, roots: dict[str, list[str]]) -> _Plan:
    """Return what the target takes from the source: memories that were changed later there, and deletions."""
    plan = _Plan([], [], [])
    holders = {(one.namespace, one.key or ""): one for one in target.values() if one.digest and one.key}
    for one in source.values():
        other = target.get(one.id)
        if find_root(one.namespace, roots) or (other and find_root(other.namespace, roots)):
            continue
        if one.digest and _is_later(one, other):
            holder = holders.get((one.namespace, one.key or ""), one)
            if holder.id == one.id or holder.at < one.at:
                is_tie = other is not None and other.at == one.at
                plan.records.append(replace(one, at=math.nextafter(one.at, math.inf)) if is_tie else one)
            if holder.id != one.id and holder.at < one.at:  # each machine has a different memory with this key
                plan.gone.append(Gone(id=holder.id, at=one.at))
        elif one.digest or not other:
            continue
        elif one.gone == "erased" and other.gone != "erased":
            plan.erased.append(one.id)
        elif one.gone == "deleted" and other.digest and other.at < one.at:
            plan.gone.append(Gone(id=one.id, at=one.at))
    return plan


def _is_later(one: Version, other: Version | None) -> bool:
    """Return whether a memory replaces the version on the other machine; at equal times the greater digest wins."""
    if other is None:
        return True
    is_erased = other.gone == "erased" and not other.digest
    return one.digest != other.digest and not is_erased and (one.at, one.digest) > (other.at, other.digest)


def _preview(plan: _Plan, target: Versions, outcome: Outcome) -> None:
    outcome.erased, outcome.deleted = plan.erased, [one.id for one in plan.gone]
    outcome.changed = [one.id for one in plan.records if one.id in target and target[one.id].digest]
    outcome.added = len(plan.records) - len(outcome.changed)


def _apply(plan: _Plan, source: Client, target: Client, outcome: Outcome, bar: ProgressBar) -> None:
    bar.done, total = 0, len(plan.erased) + len(plan.gone) + len(plan.records)
    for ids in split_evenly(plan.erased, _PART):
        outcome.copies = target.call(Erase(ids=ids, reach="all")).copies
        outcome.erased += ids
        bar.update(bar.done + len(ids), total, "sync")
    for gone in split_evenly(plan.gone, _PART):
        _import(target, outcome, [], gone)
        bar.update(bar.done + len(gone), total, "sync")
    for versions in split_evenly(plan.records, _PART):
        at = {one.id: one.at for one in versions}
        for records in _export(source, list(at)):
            for record in records:
                record.updated_at = max(record.updated_at, at[record.id])
            _import(target, outcome, records, [])
        bar.update(bar.done + len(versions), total, "sync")


def _export(client: Client, ids: list[str]) -> Iterator[list[Record]]:
    after: str | None = ""
    while after is not None:
        page = client.call(ExportMemories(ids=ids, after_id=after, reach="all"))
        if page.records:  # all of them may have been deleted meanwhile
            yield page.records
        after = page.next


def _import(client: Client, outcome: Outcome, records: list[Record], gone: list[Gone]) -> None:
    # If the other machine stores a credential, somebody permitted that there.
    options = {"mine": True, "allow_secrets": True, "operation": outcome.operation}
    try:
        done = client.call(ImportMemories(records=records, gone=gone, **options))  # type: ignore[arg-type]
    except Invalid as error:
        index = error.data.get("index")
        if not isinstance(index, int) or index >= len(records):
            raise
        raise Invalid(f"{records[index].id[:8]} cannot be taken. {error.message}", error.data) from None
    outcome.added += done.created
    outcome.changed += done.changed
    outcome.deleted += done.removed
    outcome.kept += [*done.kept, *done.deleted]
    outcome.operation = done.operation or outcome.operation


# The command ---------------------------------------------------------------------------------------------------------


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("host", metavar="HOST", help="the other machine, as ssh knows it")
    parser.add_argument("--memctl", default="memctl", metavar="COMMAND", help="how memctl is called there")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, change nothing")


def _sync(args: Namespace) -> None:
    check_person("Run `memctl sync`")
    if is_offline() or effective_settings()["network"]["offline"]:
        raise Unavailable(f"{args.host} is not asked: it is elsewhere, and `offline` is set. Nothing was changed.")
    remote = RemoteClient(args.host, args.memctl, "memctl sync", named_namespace(args) or "", args.timeout)
    with client_for(args) as here, remote as there, ProgressBar("list") as bar:
        remote.open()  # if that fails, nothing was done yet
        try:
            report = sync(here, there, bar, args.dry_run)
        except UnknownMethod:
            raise VersionMismatch(
                f"The daemon here or on {args.host} is older than this memctl, and nothing was changed: update memoryd"
                " there, then `memctl down && memctl up`."
            ) from None
        except (TimedOut, Unavailable) as error:
            raise type(error)(f"{error.message} Nothing is lost: run `memctl sync` again.", error.data) from None
    show(args, report, lambda: _text(make_printable(args.host), report))


def _text(host: str, report: Report) -> str:
    lines = ["A dry run: nothing was changed."] if report.dry_run else []
    for where, outcome in (("here", report.here), (f"on {host}", report.there)):
        ids = {name: getattr(outcome, name) for name in ("changed", "deleted", "erased")}
        done = [f"{outcome.added:,} added"] if outcome.added else []
        done += [f"{len(some):,} {name} ({list_ids(some)})" for name, some in ids.items() if some]
        lines.append(f"{where[0].upper()}{where[1:]}: {', '.join(done) or 'nothing to do'}.")
        if outcome.operation:
            lines.append(f"  `{paint(f'memctl undo {outcome.operation[:8]}', 'cyan')}` {where} takes it back.")
        if outcome.kept:
            lines.append(f"  Left as they are, being changed meanwhile: {list_ids(outcome.kept)}.")
        if outcome.copies:
            lines.append(f"  Backups {where} still have what was erased: `memctl erase ID --copies` there.")
    lines.append(f"{count_text(report.same, 'memory')} {'was' if report.same == 1 else 'were'} the same on both.")
    return "\n".join(lines)


COMMANDS = {
    "sync": Command(
        _declare,
        _sync,
        "  memctl sync home --dry-run\n"
        "  memctl sync home\n"
        "  memctl sync ada@desk.lan --memctl /home/ada/.local/bin/memctl\n"
        "  memctl sync home --namespace shop",
    )
}
