"""Delete by filter: one operation in parts, so that other writes wait for at most one part.

The memories are selected once, before the first part. A memory is kept if it does not match the filter any more when
its part runs, or if it was added since.
"""

from collections.abc import Sequence

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Delete, Deleted
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.batches import cut_short
from memoryd.daemon.memories.changing import delete as delete_named
from memoryd.daemon.memories.changing import delete_found
from memoryd.daemon.memories.elsewhere import here_or_elsewhere
from memoryd.daemon.registry import Answer, Parts, handles
from memoryd.daemon.search.active import select_turns
from memoryd.daemon.store import history, queries, turns
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.filters import UNBOUNDED, Filter, compile_filter, is_bounded
from memoryd.daemon.store.writer import Transaction, wait_patiently

_PART = 200
_MAX_IDS = 1000  # of a reply


@handles(Delete)
def delete(core: Core, call: Delete, caller: Caller = USER) -> "Answer[Deleted]":
    """Delete memories by ids and keys, or those that match a filter."""
    selection = compile_filter(call, core.store.namespaces)
    if call.ids or call.keys:
        if selection.condition or call.dry_run or call.all_states:
            raise Invalid("Give ids or keys of what to delete, or a filter, not both; `dry_run` goes with a filter.")
        return here_or_elsewhere(core, call, caller, lambda: delete_named(core, call, caller))
    if not (selection.condition or is_bounded(call)):
        raise Invalid(f"Give ids of what to delete, or a filter; {UNBOUNDED}")
    return _delete_matching(core, call, caller)


def _delete_matching(core: Core, call: Delete, caller: Caller) -> "Parts[Deleted]":
    """Delete the memories that match a filter, part by part; with `dry_run` only return which these are."""
    call = call if call.reach else msgspec.structs.replace(call, reach="subtree")
    selection = compile_filter(call, core.store.namespaces)
    ids, documents = _choose(core, call, selection, caller)
    report = Deleted(count=len(ids), ids=ids[:_MAX_IDS], documents=documents, dry_run=call.dry_run)
    if call.dry_run:
        return report
    report.count = 0
    for start in range(0, len(ids), _PART):
        if start:
            yield
        try:
            part = ids[start : start + _PART]
            report.operation, count = _delete_part(core, call, selection, caller, part, report.operation)
        except Exception as error:
            raise cut_short(error, report.count, len(ids), report.operation, "deleted") from None
        report.count += count
    return report


def _choose(core: Core, call: Delete, selection: Filter, caller: Caller) -> tuple[list[str], int]:
    """Return the ids of the memories that match the filter, oldest first, and how many chunks of files match."""
    condition, values = selection.full_condition(core.clock(), call.all_states)
    with core.store.reading() as connection:
        pairs, documents = queries.find_deletable(connection, condition, values)
        active = select_turns(connection, selection, call, core.active.list_turns(selection.reached))
        every = pairs + [(turn.key, turn.namespace) for turn in reversed(active)]
        for id, namespace in every:
            history.check_change(connection, caller, id, core.store.namespaces.name(namespace))
    return [id for id, _ in every], documents


def _delete_part(
    core: Core, call: Delete, selection: Filter, caller: Caller, ids: Sequence[str], operation: str | None
) -> tuple[str, int]:
    """Delete the memories of a part that still match the filter; return the operation and how many were deleted."""
    condition, values = selection.full_condition(core.clock(), call.all_states)

    def write(transaction: Transaction) -> tuple[str, int]:
        connection = transaction.connection
        rows_to_delete = queries.find_by_id(connection, ids, condition, values)
        rows_to_delete += [turns.to_row(turn) for turn in turns.read_keys(connection, ids).values()]
        started = operation or history.begin(connection, "delete", caller.log_place(call.namespace), core.clock())
        delete_found(core, transaction, rows_to_delete, started, caller)
        return started, len(rows_to_delete)

    core.check_going_on()
    return wait_patiently(lambda: core.store.write(write, over_limit=True), core.check_going_on)
