"""A dream of a namespace: of its memories that say the same the newest stays, what is out of date is marked so.

Both are superseded by the one that stays: out of results, readable by id, put back by `undo`. One that stays takes over
the metadata and the importance of those that it repeats. Pinned memories and parts of files are left alone.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol.dreams import DreamReport, DreamStep
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.dreams.dreaming import MAX_NOTES, DreamTerms, judge
from memoryd.daemon.dreams.fates import DreamNote, NoteFate
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.store import history, queries, rows
from memoryd.daemon.store.filters import select_living
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

KIND = "dream"


def dream(core: Core, namespace: str, terms: DreamTerms, dry_run: bool = False) -> DreamReport:
    """Put the memories of one namespace in order, or report what that would do."""
    report = DreamReport(place=namespace, outcome="unchanged")
    number = core.store.namespaces.find_number(namespace)
    memories = [] if number is None else _read_memories(core, number)
    subject, digest = f"namespace {namespace}", _digest(memories)
    with core.store.reading() as connection:
        if not memories or (not terms.force and dreams.is_known(connection, subject, digest)):
            report.problem = "Nothing is new since the last dream." if memories else "There are no memories here."
            return report
    fates, report.by = _find_fates(core, memories, terms)
    report.steps = _build_steps(memories, fates)
    report.chars_before = sum(len(row.content) for row in memories)
    report.chars_after = sum(
        len(r.content) for r, fate in zip(memories, fates, strict=True) if fate.judgement == "keep"
    )
    if dry_run:
        report.outcome = "planned"
        return report
    left = _write(core, memories, fates, report) if report.steps else memories
    if left is not memories:
        report.outcome = "written"

    def note(transaction: Transaction) -> None:
        made = dreams.begin(
            transaction.connection, subject, None, core.clock(), (digest, _digest(_read_memories(core, number or 0)))
        )
        dreams.end(transaction.connection, made, "done")

    core.store.write(note).result()
    return report


def _read_memories(core: Core, namespace: int) -> list[Row]:
    """Return what a dream is about, the oldest first."""
    with core.store.reading() as connection:
        return queries.find_unpinned(connection, namespace, MAX_NOTES, core.clock())[::-1]


def _digest(memories: Sequence[Row]) -> bytes:
    return sha256(b"".join(bytes.fromhex(row.id) + row.text_hash for row in memories)).digest()


def _day(row: Row) -> str:
    return f"{datetime.fromtimestamp(row.created_at, UTC):%Y-%m-%d}"


def _find_fates(core: Core, memories: Sequence[Row], terms: DreamTerms) -> tuple[list[NoteFate], str]:
    fates, _, by = judge(core, [DreamNote(row.content, _day(row), True) for row in memories], terms)
    # As with `add`, memories of unlike types do not repeat each other.
    for at, fate in enumerate(fates):
        if fate.judgement == "repeats" and fate.by is not None and memories[fate.by].type != memories[at].type:
            fates[at] = NoteFate("keep")
    return fates, by


def _build_steps(memories: Sequence[Row], fates: Sequence[NoteFate]) -> list[DreamStep]:
    return [
        DreamStep(
            action="repeat" if fate.judgement == "repeats" else "outdated",
            text=row.content,
            source=row.id,
            date=_day(row),
            kept=memories[fate.by].content,
            reason=fate.reason or ("it says the same" if fate.judgement == "repeats" else ""),
        )
        for row, fate in zip(memories, fates, strict=True)
        if fate.by is not None
    ]


def _write(core: Core, memories: Sequence[Row], fates: Sequence[NoteFate], report: DreamReport) -> Sequence[Row]:
    """Mark what does not stay, as one operation; what was changed since it was read stays as it is."""

    def write(transaction: Transaction) -> str | None:
        connection = transaction.connection
        pairs = [
            (row, memories[fate.by], fate) for row, fate in zip(memories, fates, strict=True) if fate.by is not None
        ]
        there = rows.read_ids(connection, [row.id for pair in pairs for row in pair[:2]]).values()
        present = {row.id: row for row in select_living(connection, there, core.clock())}
        sound = [
            (present[old.id], present[kept.id], fate)
            for old, kept, fate in pairs
            if _is_unchanged(present.get(old.id), old) and _is_unchanged(present.get(kept.id), kept)
        ]
        if not sound:
            return None
        operation = history.begin(connection, KIND, report.place, core.clock())
        for old, kept, fate in sound:
            history.record(connection, operation, old.id, report.place, old)
            rows.change(connection, old.row, {"superseded_by": kept.id, "updated_at": core.clock()})
            if fate.judgement == "repeats":
                _take_over(core, transaction, operation, (old, present[kept.id]), report.place)
                present[kept.id] = rows.read_ids(connection, [kept.id])[kept.id]
        return operation

    report.operation = core.store.write(write).result()
    return memories if report.operation is None else []


def _is_unchanged(now: Row | None, then: Row) -> bool:
    return now is not None and (now.text_hash, now.pinned) == (then.text_hash, 0)


def _take_over(core: Core, transaction: Transaction, operation: str, pair: tuple[Row, Row], place: str) -> None:
    """Give what stays the metadata and importance of what it repeats."""
    old, kept = pair
    metadata = kept.metadata
    with suppress(Invalid):  # together they may be too large
        both = {**msgspec.json.decode(old.metadata), **msgspec.json.decode(kept.metadata)}
        metadata = checks.metadata_text(both)
    fields = {"metadata": metadata, "importance": max(old.importance, kept.importance)}
    if (fields["metadata"], fields["importance"]) != (kept.metadata, kept.importance):
        history.record(transaction.connection, operation, kept.id, place, kept)
        rows.change(transaction.connection, kept.row, {**fields, "updated_at": core.clock()})
