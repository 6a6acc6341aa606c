"""The call `erase`: delete rows with everything derived from them, then clean the file, then the copies.

Each part is a transaction. After a crash between two parts, repeating the call completes the work. `tables/erasing`
defines what is deleted.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from memoryd.client.errors import Invalid, NotFound, StorageFailed
from memoryd.client.protocol import Erase, Erased, Mentioned
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.conversations.tables import session_names
from memoryd.daemon.core.core import Core
from memoryd.daemon.erasing.tables import erasing, leftovers, mentions, trimming
from memoryd.daemon.erasing.tables.mentions import Mention, OtherTraces
from memoryd.daemon.memories.batches import cut_short
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.search.active import select_turns
from memoryd.daemon.store import copies, erasures, queries, rows, turns, upkeep
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import UNBOUNDED, compile_filter, is_bounded
from memoryd.daemon.store.rows import Row, choose_unique
from memoryd.daemon.store.turns import StoredTurn
from memoryd.daemon.store.writer import Transaction, wait_patiently
from memoryd.daemon.system import log_lines

_PART = 500  # memories per transaction
_MAX_IDS = 1000  # of a reply
_MAX_MENTIONS = 100
_RECENT_S = 3600

T = TypeVar("T")

logger = logging.getLogger(__name__)


@handles(Erase)
def erase(core: Core, call: Erase) -> "Parts[Erased]":
    """Erase what matches the call; with `dry_run` only report it."""
    if call.session is not None:
        call = msgspec.structs.replace(call, session=_resolve_session(core, call))
    chosen = _choose(core, call)
    ids, traces = chosen.ids, chosen.traces
    with core.store.reading() as connection:
        derived = erasing.find_derived(connection, [*ids, *chosen.again])
        report = Erased(count=len(ids), ids=ids[:_MAX_IDS], derived=derived[:_MAX_IDS], dry_run=call.dry_run)
        report.already = chosen.again[:_MAX_IDS]
        report.skipped, report.waiting = traces.sum_up(connection, [*ids, *derived])
        texts = erasing.read_texts(connection, [*ids, *derived]) if chosen.mention else []
        found = traces.find_neighbour_texts(connection, [*ids, *derived], texts)
        report.around = [chosen.mention.describe_around(one) for one in found.values() if chosen.mention][:_MAX_IDS]
    every = [*ids, *derived]
    report.session, report.notes, report.mentions = call.session, chosen.notes[:_MAX_IDS], chosen.mentions
    report.recent = chosen.recent
    if not call.dry_run:
        yield from _erase_all(core, traces, every, report, call.unsent)
        if chosen.mention and traces == OtherTraces(None, chosen.mention):
            log_lines.forget_lines(core.folder / log_lines.FILE_NAME, chosen.mention.is_in_text)
    every += chosen.again
    paths = leftovers.list_copies(core.folder)
    report.looked_at = len(paths)
    if call.dry_run or not call.copies:
        report.copies = [str(path) for path in leftovers.find_copies(core.folder, every, traces)]
        return report
    with core.store.reading() as connection:
        every = list(dict.fromkeys([*every, *erasures.find_all_erased(connection)]))
    for path in paths:
        try:
            leftovers.rewrite(path, every, traces, core.clock())
            report.rewritten.append(str(path))
        except StorageFailed as error:  # go on with the other copies
            logger.warning("%s", error.message)
            report.copies.append(str(path))
        yield
    return report


def _erase_all(
    core: Core, traces: OtherTraces, every: Sequence[str], report: Erased, unsent: Sequence[str]
) -> Iterator[None]:
    """Erase in parts and clean the file. An error says how much was erased before it."""
    erased = 0
    for _ in copies.hold(core.store):  # no copy may be made meanwhile: it would hold the erased rows
        core.check_going_on()
        yield
    try:
        for part in split_evenly(every, _PART):
            yield
            operation = _erase_part(core, part)
            report.operation = report.operation or operation
            erased += len(part)
        _write(core, lambda transaction: _erase_traces(core, transaction, traces, unsent))
        yield from clean(core)
    except Exception as error:
        raise cut_short(error, erased, len(every), report.operation, "erased") from None
    finally:
        core.store.copying.release()


class _Chosen(NamedTuple):
    """The ids of the memories and turns to erase, deleted ones included, and the other traces to erase with them.

    `mentions` says where they contain the text of the call, `notes` are workspace files that contain it. `again` are
    ids that were erased before, `recent` the sessions with matching turns of the last hour that are still recorded.
    """

    ids: list[str]
    traces: OtherTraces
    mention: Mention | None
    mentions: list[Mentioned]
    notes: list[str]
    again: list[str]
    recent: list[str]


def _resolve_session(core: Core, call: Erase) -> str:
    """Return the full name of the session; if it is unknown here, it may still be in copies."""
    session = call.session or ""
    with core.store.reading() as connection:
        names = [*session_names.list_sessions(connection), *call.unsent]
    try:
        return session_names.choose_session(names, session)
    except NotFound:
        return session_names.choose_session(leftovers.list_sessions(core.folder), session)


def _choose(core: Core, call: Erase) -> _Chosen:
    """Return what matches the call: memories, turns, and deleted memories that are only in the history."""
    said = [{"metadata.session": call.session}] if call.session is not None else []
    where = {"$and": [call.where, *said]} if call.where and said else {**call.where, **dict(*said)}
    full_call = msgspec.structs.replace(call, where=where, reach=call.reach or ("subtree" if call.namespace else "all"))
    selection = compile_filter(full_call, core.store.namespaces, call.ids)
    mention = None if call.matching is None else Mention(call.matching)
    if not (selection.condition or mention or is_bounded(call)):
        raise Invalid(f"The filter is empty; {UNBOUNDED}")
    condition, values = selection.full_condition(core.clock(), True)
    with core.store.reading() as connection:
        notes: list[str] = []
        if mention:
            stored, notes = mentions.find_mentions(connection, mention, condition, values)
        else:
            stored = [id for id, _ in queries.find_deletable(connection, condition, values)[0]]
        active = select_turns(connection, selection, full_call, core.active.list_turns(selection.reached))
        active = [turn for turn in active if not mention or mention.is_in(turn)]
        past = _find_past(connection, call, mention, selection.reached)
        ids = list(dict.fromkeys(stored + [turn.key for turn in active] + [one.id for one in past]))
        again = sorted(set(erasures.find_erased(connection, call.ids)) - set(ids))
        shown = _describe(connection, mention, ids, past) if mention else []
    for prefix in call.ids:
        choose_unique(prefix, [id for id in [*ids, *again] if id.startswith(prefix)])
    # Skipped and waiting turns do not have the other fields.
    has_others = call.type or call.source or call.tier or call.where or call.ids or call.path_prefix is not None
    place = selection.reached, call.after, call.before
    traces = OtherTraces() if has_others else OtherTraces(call.session, mention, *place)
    recent = {turn.session for turn in active if turn.session and turn.created_at > core.clock() - _RECENT_S}
    paused = {pause.name for pause in core.pauses.list_all() if pause.kind == "session"}
    return _Chosen(ids, traces, mention, shown, notes, again, sorted(recent - paused))


def _find_past(
    connection: Connection, call: Erase, mention: Mention | None, reached: frozenset[int] | None
) -> list[erasing.Past]:
    """Return the former states in the history that match the ids, session, text and place of the call."""
    is_about_past = bool(call.ids) or call.session is not None or mention is not None or is_bounded(call)
    is_filtered = call.where or call.type or call.source or call.tier or call.path_prefix is not None
    if not is_about_past or is_filtered:
        return []
    past = [
        one
        for one in erasing.find_past(connection)
        if (not call.ids or one.id.startswith(tuple(call.ids)))
        and (mention is None or mention.is_in(one.held))
        and (call.session is None or (one.session is not None and one.session[1] == call.session))
        and (reached is None or one.namespace in reached)
        and (call.after is None or one.created_at > call.after)
        and (call.before is None or one.created_at < call.before)
    ]
    if reached is None:
        return past
    present = _read_present(connection, sorted({one.id for one in past}))
    # Memories that have moved out of reach since are not erased.
    return [one for one in past if one.id not in present or present[one.id].namespace in reached]


def _read_present(connection: Connection, ids: Sequence[str]) -> dict[str, Row | StoredTurn]:
    return {**rows.read_ids(connection, ids), **turns.read_keys(connection, ids)}


def _describe(
    connection: Connection, mention: Mention, ids: Sequence[str], past: Sequence[erasing.Past]
) -> list[Mentioned]:
    """Return where the first `_MAX_MENTIONS` memories contain a text."""
    shown = ids[:_MAX_MENTIONS]
    present = _read_present(connection, shown)
    former = {one.id: one.held for one in reversed(past)}
    return [mentions.describe(id, mention, present.get(id), former.get(id)) for id in shown]


def _erase_traces(core: Core, transaction: Transaction, traces: OtherTraces, unsent: Sequence[str]) -> None:
    erasures.note_sessions(transaction.connection, unsent)
    traces.erase(transaction.connection)
    changed = traces.clear_neighbour_texts(transaction.connection)
    core.active.follow(transaction, changed.rings)
    if changed.rows:
        transaction.after_commit(lambda: _forget(core, [], erasing.ErasedRows([], changed.rings, changed.rows)))


def _erase_part(core: Core, ids: Sequence[str]) -> str:
    """Erase memories and turns; return the operation. Call `clean` afterwards."""

    def write(transaction: Transaction) -> str:
        operation, erased = erasing.erase(transaction.connection, ids, core.clock())
        core.active.follow(transaction, erased.rings)
        transaction.after_commit(lambda: _forget(core, ids, erased))
        return operation

    return _write(core, write)


def _forget(core: Core, ids: Sequence[str], erased: erasing.ErasedRows) -> None:
    """Remove erased rows from RAM."""
    core.embedding.remove_rows(erased.rows)
    core.embedding.refresh(erased.changed)
    core.sources.traces.clear()
    core.recalls.forget(ids)


def clean(core: Core) -> Iterator[None]:
    """Delete unused vectors, merge full text, vacuum the file and truncate the log."""
    yield from clean_words(core)
    _write(core, lambda transaction: erasing.rewrite_file(transaction.connection), alone=True)
    upkeep.clear_log(core.store)


def clean_words(core: Core) -> Iterator[None]:
    """Delete unused vectors, and merge full text without words of deleted rows."""
    with core.store.reading() as connection:
        unused = trimming.find_unused(connection)
    for part in split_evenly(unused, _PART):
        _write(core, lambda transaction, part=part: trimming.forget_unused(transaction.connection, part))  # type: ignore[misc]
        yield
    is_more = _write(core, lambda transaction: erasing.merge(transaction.connection, True))
    while is_more:
        yield
        is_more = _write(core, lambda transaction: erasing.merge(transaction.connection, False))


def _write(core: Core, job: Callable[[Transaction], T], alone: bool = False) -> T:
    core.check_going_on()
    return wait_patiently(lambda: core.store.write(job, alone=alone, over_limit=True), core.check_going_on)
