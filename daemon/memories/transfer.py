"""Export and import of memories with all their fields, without loss.

An import compares by id only and does not search for duplicates, since exported memories have passed that check before.
Vectors are not exported: texts that were embedded here before still have theirs, others are embedded again.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import merge
from typing import Literal, NamedTuple

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Conflict, Invalid
from memoryd.client.protocol import MAX_NOTE_CHARS, Gone, Imported, ImportMemories, NewMemory, Record
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import batches, keyed, origins
from memoryd.daemon.memories.changing import delete_found, visible_condition
from memoryd.daemon.memories.feedback import find_voter
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.search import active
from memoryd.daemon.store import (
    conversion,
    erasures,
    feedback,
    history,
    links,
    namespaces,
    queries,
    rows,
    turns,
    vectors,
    versions,
)
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter, compile_filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, L0, L1, L3, WAITING
from memoryd.daemon.store.writer import Transaction, wait_patiently

KIND = "import"
_GONE_PART = 200  # memories deleted in one transaction
PORTION_BYTES = 4 * 1024 * 1024  # of text in one reply: a frame holds 16 MiB
_LATEST = 253402300799.0  # the year 9999
# Fields that the daemon changes by itself, or that are derived from others.
_OWN = frozenset(
    {"row", "id", "tier", "access_count", "last_accessed_at", "content_hash", "text_hash", "feedback", "key"}
)

What = Literal["created", "replaced", "unchanged", "kept", "skipped", "erased", "deleted"]


# Export --------------------------------------------------------------------------------------------------------------


@handles(protocol.ExportMemories)
def export(core: Core, call: protocol.ExportMemories, caller: Caller = USER) -> protocol.Exported:
    """Return the next batch of the memories and turns that match a filter, in the order of their ids."""
    selection = compile_filter(call, core.store.namespaces, call.ids)
    reached = namespaces.condition(selection.reached)
    with core.store.reading() as connection:
        said = _select_turns(connection, selection, call)
        keys, more = _take_batch(connection, selection, call, said)
        by_id = rows.read_ids(connection, keys) | {key: said[key] for key in keys if key in said}
        records = _build_records(core, connection, [by_id[key] for key in keys], reached)
        mine = find_voter(caller, call.namespace)
        for record in records:  # a caller with a token gets only its own votes, since votes name their callers
            votes = feedback.decode_votes(by_id[record.id].feedback)
            record.votes = [vote for vote in votes if vote.by == mine] if caller.bound else votes
        total, chunks = queries.count_exported(connection, selection)
        left_out = {DOCUMENTS: chunks, **_count_inside(core, connection, selection, call, caller)}
    last = keys[-1] if more else None
    number = len(said)
    return protocol.Exported(records=records, next=last, total=total + number, left_out=left_out, turns=number)


def _count_inside(
    core: Core, connection: Connection, selection: Filter, call: protocol.ExportMemories, caller: Caller
) -> dict[str, int]:
    """Return as `inside` how many memories are in inner namespaces, which the usual reach of an export leaves out."""
    if not call.namespace or call.reach not in (None, "visible") or not caller.is_owner_of(call.namespace):
        return {}
    within, own = (core.store.namespaces.reach(call.namespace, reach) for reach in ("subtree", "exact"))
    inner = selection._replace(reached=(within or frozenset()) - (own or frozenset()))
    total, _ = queries.count_exported(connection, inner)
    return {"inside": total + len(_select_turns(connection, inner, call))}


def _select_turns(connection: Connection, selection: Filter, call: protocol.ExportMemories) -> dict[str, Row]:
    """Return by key the turns of L0 that match a filter, as the memories that they will become."""
    reached = selection.reached
    every = [one for one in turns.read_all(connection) if reached is None or one.namespace in reached]
    said = active.select_turns(connection, selection, call, [one for one in every if one.source != "recall"])
    return {one.key: msgspec.structs.replace(turns.to_row(one), tier=L1, neighbours=one.previous) for one in said}


def _take_batch(
    connection: Connection, selection: Filter, call: protocol.ExportMemories, said: Mapping[str, Row]
) -> tuple[list[str], bool]:
    """Return the ids of the next batch, and whether there are more."""
    keys: list[str] = []
    size = 0
    stored = queries.find_sizes(connection, selection, call.after_id, call.limit + 1)
    coming = ((key, len(said[key].content.encode())) for key in sorted(said) if key > call.after_id)
    for key, size_bytes in merge(stored, coming):
        size += size_bytes
        if len(keys) == call.limit or (keys and size > PORTION_BYTES):
            return keys, True
        keys.append(key)
    return keys, False


def _build_records(core: Core, connection: Connection, batch: list[Row], reached: str) -> list[Record]:
    linked = conversion.read_contradictions(connection, [row.id for row in batch], reached, None)
    relations = links.read_within(connection, [row.id for row in batch], reached)
    return [
        Record(
            **conversion.fields_of(row, core.store.namespaces, dict.fromkeys(linked.get(row.id, ()), "")),
            neighbours=row.neighbours,
            turns=row.turns,
            relations=relations.get(row.id, []),
        )
        for row in batch
    ]


@handles(protocol.ListVersions)
def list_versions(core: Core, call: protocol.ListVersions) -> protocol.Versions:
    """Return the next batch of versions of saved memories and of deleted ones."""
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        found, after = versions.list_versions(connection, core.store.namespaces, condition, call.after_id)
    return protocol.Versions(versions=found, next=after)


# Import --------------------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """One record, the row to write, the stored row, and what to do. A kept row gets the votes of both."""

    record: Record
    row: Row
    old: Row | None
    what: What


@handles(ImportMemories)
def import_(core: Core, call: ImportMemories) -> "Parts[Imported]":
    """Import memories exactly as given, in parts; with `dry_run` only return what would be done."""
    check(call.records)
    if call.dry_run:
        with core.store.reading() as connection:
            steps = _plan_steps(core, connection, call, [(record, _row(record)) for record in call.records])
            report = _tally(steps, None)
            report.dry_run = True
            report.removed = [row.id for row in _find_unchanged(connection, call, call.gone)]
            return report
    report, number = Imported(operation=call.operation), 0
    for gone in split_evenly(call.gone, _GONE_PART):
        core.check_going_on()
        report.add(_remove(core, call, gone, report.operation))
        yield
    for part in batches.split(call.records):
        if number:
            yield
        try:
            core.check_going_on()
            core.store.check_room()
            report.add(_write(core, call, part, report.operation))
        except Exception as error:
            raise batches.cut_short(error, number, len(call.records), report.operation) from None
        number += len(part)
    return report


def _remove(core: Core, call: ImportMemories, gone: Sequence[Gone], operation: str | None) -> Imported:
    """Delete memories that were deleted elsewhere; without an operation, begin one with the first."""

    def write(transaction: Transaction) -> Imported:
        connection, started = transaction.connection, operation
        if started is not None:
            _check_operation(connection, started)
        going = _find_unchanged(connection, call, gone)
        if started is None and going:
            started = history.begin(connection, KIND, "", core.clock())
        if started is not None:
            delete_found(core, transaction, going, started)
        return Imported(removed=[row.id for row in going], operation=started)

    return wait_patiently(lambda: core.store.write(write, over_limit=True), core.check_going_on)


def _find_unchanged(connection: Connection, call: ImportMemories, gone: Sequence[Gone]) -> list[Row]:
    """Return the stored memories that were deleted elsewhere and not changed here after that."""
    ids = [one.id for one in gone]
    changed_at = versions.find_changed_at(connection, ids)
    due = {one.id for one in gone if one.id in changed_at and (call.overwrite or changed_at[one.id] < one.at)}
    found = rows.read_ids(connection, sorted(due))
    return [found[id] for id in sorted(due) if found[id].tier != DOCUMENTS]


def _write(core: Core, call: ImportMemories, records: Sequence[Record], operation: str | None) -> Imported:
    """Write one part; without an operation, begin one with the first change."""
    pairs = [(record, _row(record)) for record in records]  # hashes outside the transaction

    def write(transaction: Transaction) -> Imported:
        started = operation
        if started is not None:
            _check_operation(transaction.connection, started)
        steps = _plan_steps(core, transaction.connection, call, pairs)
        if started is None and any(step.what == "created" or _is_changed(step) for step in steps):
            started = history.begin(transaction.connection, KIND, "", core.clock())
        for step in steps:
            if started is not None:
                _apply(core, transaction, step, started)
        for step in steps:  # after all rows, since both ends of a link must exist
            if step.what in ("created", "replaced"):
                _restore_links(transaction.connection, step.record)
        return _tally(steps, started)

    return wait_patiently(lambda: core.store.write(write), core.check_going_on)


def _tally(steps: list[_Step], operation: str | None) -> Imported:
    counts = Counter(step.what for step in steps)
    return Imported(
        created=counts["created"],
        replaced=counts["replaced"],
        unchanged=counts["unchanged"],
        kept=[step.record.id for step in steps if step.what == "kept"],
        skipped=counts["skipped"],
        erased=counts["erased"],
        changed=[step.record.id for step in steps if step.what == "replaced"],
        deleted=[step.record.id for step in steps if step.what == "deleted"],
        operation=operation,
    )


def _plan_steps(
    core: Core, connection: Connection, call: ImportMemories, pairs: list[tuple[Record, Row]]
) -> list[_Step]:
    ids = [record.id for record, _ in pairs]
    by_id, recent = rows.read_ids(connection, ids), turns.read_keys(connection, ids)
    absent = [id for id in ids if id not in by_id and id not in recent]
    erased = set() if call.overwrite else erasures.select_erased(connection, absent)
    deleted = {} if call.overwrite else history.find_deletions(connection, absent)
    for record, row in pairs:
        number = core.store.namespaces.find_number(record.namespace)  # another transaction may have made it
        row.namespace = -1 if number is None else number
        if not call.mine:
            origins.take_in(row, by_id.get(record.id))
    changed_at = versions.find_changed_at(connection, ids)
    suspect = set() if call.overwrite else erasures.find_suspect(connection, [row for _, row in pairs])
    steps = []
    for record, row in pairs:
        if record.id in erased:
            steps.append(_Step(record, row, None, "erased"))
        elif deleted.get(record.id, 0.0) > record.updated_at:
            steps.append(_Step(record, row, None, "deleted"))
        elif record.id in recent and recent[record.id].content_hash == row.content_hash:
            steps.append(_Step(record, row, None, "unchanged"))
        else:
            old = by_id.get(record.id)
            holder = None if row.key is None else rows.read_key(connection, row.namespace, row.key)
            is_taken = record.id in recent or (holder is not None and holder.id != row.id)
            if record.id in suspect:
                row = msgspec.structs.replace(row, neighbours=old.neighbours if old else "")
            is_later = record.updated_at > changed_at.get(record.id, 0.0)
            steps.append(_plan_step(call, record, row, old, is_taken, is_later))
    return steps


def _plan_step(
    call: ImportMemories, record: Record, row: Row, old: Row | None, is_taken: bool, is_later: bool
) -> _Step:
    if record.tier == DOCUMENTS:
        return _Step(record, row, old, "skipped")
    if old is None:
        # A turn that is still in L0 would become a memory of the same id; a key may be another memory's.
        return _Step(record, row, None, "kept" if is_taken else "created")
    compared = [name for name in rows.COLUMNS if name not in _OWN or (call.overwrite and name not in ("row", "id"))]
    is_same = all(getattr(row, name) == getattr(old, name) for name in compared)
    if call.overwrite or old.tier == DOCUMENTS:
        wins = old.tier != DOCUMENTS and not is_taken
        return _Step(record, row if wins else old, old, "unchanged" if is_same else "replaced" if wins else "kept")
    votes = feedback.merge(old.feedback, row.feedback)
    if is_same or is_taken or not is_later:
        what: What = "kept" if not is_same else "unchanged" if votes == old.feedback else "replaced"
        return _Step(record, msgspec.structs.replace(old, feedback=votes), old, what)
    merged = msgspec.structs.replace(
        row,
        feedback=votes,
        access_count=max(row.access_count, old.access_count),
        last_accessed_at=max(filter(None, (row.last_accessed_at, old.last_accessed_at)), default=None),
    )
    return _Step(record, merged, old, "replaced")


def _is_changed(step: _Step) -> bool:
    """Return whether a step changes a stored memory."""
    return step.old is not None and step.what in ("replaced", "kept") and step.row != step.old


def _metadata_limit(record: Record) -> int:
    return protocol.MAX_VALUE_BYTES if record.key is not None else protocol.MAX_METADATA_BYTES


def _row(record: Record) -> Row:
    return conversion.convert_to(
        Row,
        record,
        row=0,
        tier=L1 if record.tier in (WAITING, L3) else record.tier,  # an import sends nothing to shared roots
        namespace=-1,  # set when the record is compared
        pinned=int(record.pinned),
        feedback=feedback.text(record.votes),
        content_hash=limits.content_hash(record.content),
        text_hash=vectors.text_hash(rows.build_embedded_text(record.content, turns=record.turns)),
        metadata=limits.metadata_text(record.metadata, _metadata_limit(record)),
        searchable=int(record.searchable),
    )


def _apply(core: Core, transaction: Transaction, step: _Step, operation: str) -> None:
    connection, old = transaction.connection, step.old
    if step.what != "created" and not _is_changed(step):
        return
    kept = old if step.what == "kept" else None
    number = kept.namespace if kept else core.store.namespaces.ensure(transaction, step.record.namespace)
    row = msgspec.structs.replace(step.row, namespace=number)  # a copy, since the writer may run this again
    if step.what == "created":
        # Recorded before the insert: a trigger that counts turns reads the history.
        history.record(connection, operation, row.id, step.record.namespace, None)
        row.row = rows.insert(connection, row)
        transaction.after_commit(lambda: core.embedding.index_rows([(row.row, number, row.type)], [None]))
    elif old is not None:
        history.record(connection, operation, row.id, core.store.namespaces.name(old.namespace), old)
        different = {name: new for name in rows.COLUMNS[1:] if (new := getattr(row, name)) != getattr(old, name)}
        rows.change(connection, old.row, different)
        transaction.after_commit(lambda: core.embedding.refresh([old.row]))


def _restore_links(connection: Connection, record: Record) -> None:
    """Restore the links of a memory whose other ends exist; others are restored with the other memory."""
    relations = [(link.origin, link.target, link.kind, link.created_at) for link in record.relations]
    ids = {link.origin for link in record.relations} | {link.target for link in record.relations}
    relations += [
        (record.id, other, "contradicts", record.updated_at) for other in record.contradicts if other not in ids
    ]
    links.restore(connection, relations)


def _check_operation(connection: Connection, operation: str) -> None:
    if history.kind_of(connection, operation) != KIND:
        raise Invalid(f"{operation!r} is not the id of an import that could be continued.")
    if (undone_by := history.find_undo(connection, operation)) is not None:
        raise Conflict(
            f"The import, operation {operation[:8]}, was undone meanwhile by operation {undone_by[:8]}.",
            {"stored": 0, "operations": [operation]},
        )


# Validation ----------------------------------------------------------------------------------------------------------


def check(records: list[Record]) -> None:
    """Check all records; raise `Invalid` with the `index` of the first invalid one."""
    ids: dict[str, int] = {}
    keys: set[tuple[str, str]] = set()
    for number, record in enumerate(records):
        try:
            check_record(record)
            if record.id in ids:
                raise Invalid(f"The id {record.id} is that of memory {ids[record.id]} as well.")
            if record.key is not None and (place := (record.namespace, record.key)) in keys:
                raise Invalid(f"The key {place[1][:80]!r} is that of another memory as well.")
        except Invalid as error:
            raise Invalid(f"Memory {number}: {error}", {"index": number}) from None
        ids[record.id] = number
        keys |= {(record.namespace, record.key)} if record.key is not None else set()


def check_record(record: Record) -> None:
    """Check every field of a memory to be imported."""
    namespaces.check(record.namespace)
    names = [name for name in NewMemory.__struct_fields__ if name not in ("neighbours", "supersedes")]
    values = {name: getattr(record, name) for name in names}
    limits.check_memory(NewMemory(**values | {"metadata": {}}))
    limits.check_metadata(record.metadata, _metadata_limit(record))
    if record.key is not None:
        keyed.check_key(record.key)
    limits.check_text("neighbours", record.neighbours)
    if record.tier == L0:
        raise Invalid("It is a turn of L0, not yet a memory; use `memctl observe`.")
    if not 0.0 <= record.importance <= 1.0:
        raise Invalid(f"The importance {record.importance} is not between 0 and 1.")
    if not (0 <= record.access_count < 2**53 and 0 <= record.turns < 2**31):
        raise Invalid("The access count or the number of turns is out of range.")
    times = [record.created_at, record.updated_at, record.last_accessed_at, record.expires_at, record.confirmed_at]
    times += [link.created_at for link in record.relations] + [vote.at for vote in record.votes]
    for time in times:
        if time is not None and not (math.isfinite(time) and 0.0 <= time <= _LATEST):
            raise Invalid(f"The time {time} is not one of the years 1970 to 9999.")
    _check_votes(record)
    if record.start_line is not None and record.start_line < 1:
        raise Invalid(f"Line {record.start_line} does not exist: lines are counted from 1.")
    _check_ids(record)


def _check_votes(record: Record) -> None:
    if len(record.votes) > feedback.MAX_VOTES or len({vote.by for vote in record.votes}) < len(record.votes):
        raise Invalid(f"It has more than {feedback.MAX_VOTES} votes, or two by one caller.")
    for vote in record.votes:
        limits.check_text("caller of a vote", vote.by)
        limits.check_text("note of a vote", vote.note)
        if len(vote.note) > MAX_NOTE_CHARS or len(vote.cited) > feedback.MAX_CITATIONS:
            raise Invalid(f"A vote has a note of more than {MAX_NOTE_CHARS} characters, or too many citations.")


def _check_ids(record: Record) -> None:
    if record.superseded_by is not None:
        limits.check_id(record.superseded_by)
    for other in record.contradicts:
        limits.check_id(other)
    for link in record.relations:
        limits.check_id(link.origin)
        limits.check_id(link.target)
        limits.check_word("kind of link", link.kind)
        if record.id not in (link.origin, link.target):
            raise Invalid(f"A link from {link.origin[:8]} to {link.target[:8]} does not belong to this memory.")
