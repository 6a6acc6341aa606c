"""Add many memories as one operation, in parts, so that other writes wait for at most one part.

All memories are checked before the first part is written. Each part is embedded and compared on the caller's thread,
then written in one transaction. If the daemon crashes or the client disconnects, the parts written so far remain, and
`undo` removes them. If a later part cannot be written, the error says how many memories are stored.
"""

from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import Added, AddedMany, AddMany, Progress
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_nth, content_hash
from memoryd.daemon.memories import adding, batches, duplicates, origins
from memoryd.daemon.memories.duplicates import Batch
from memoryd.daemon.registry import Parts, ReportProgress, handles
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.writer import Transaction, wait_patiently


@handles(AddMany)
def add_many(
    core: Core, call: AddMany, report: ReportProgress = lambda event: None, caller: Caller = USER
) -> "Parts[AddedMany]":
    """Check all memories, then embed, compare and write them in parts."""
    check(core, call, caller)
    memories = [origins.limit(memory, caller) for memory in call.memories]
    outcome, operation = AddedMany(results=[], created=0, merged=0, operations=[]), None
    for part in batches.split(memories, batches.PART if call.dedup else batches.UNCOMPARED):
        try:
            if outcome.results:
                yield
            core.check_going_on()
            embedded = core.embedding.embed_texts([memory.content for memory in part])
            report(Progress(stage="embed", done=len(outcome.results) + len(part), total=len(call.memories)))
            results = _write(core, call, duplicates.search(core, call, part, embedded), operation, caller)
        except Exception as error:
            raise batches.cut_short(error, len(outcome.results), len(call.memories), operation) from None
        outcome.results += results
        operation = results[0].operation
        outcome.operations = [operation]
    outcome.created = sum(result.outcome == "created" for result in outcome.results)
    outcome.merged = len(outcome.results) - outcome.created
    return outcome


def _write(core: Core, call: AddMany, batch: Batch, begun: str | None, caller: Caller) -> list[Added]:
    """Write a part, within the operation that the first part began."""
    core.store.check_room()

    def write(transaction: Transaction) -> list[Added]:
        connection = transaction.connection
        if begun and (undone_by := history.find_undo(connection, begun)) is not None:
            raise Conflict(
                f"Operation {begun[:8]} was undone by operation {undone_by[:8]} while it went on;"
                " nothing of it is stored.",
                {"stored": 0, "operations": [begun]},
            )
        operation = begun or history.begin(connection, "add_many", caller.log_place(call.namespace), core.clock())
        return adding.write(core, transaction, adding.build_target(core, transaction, call, caller), batch, operation)

    return wait_patiently(lambda: core.store.write(write), core.check_going_on)


# Checks before the first part ----------------------------------------------------------------------------------------


def check(core: Core, call: AddMany, caller: Caller) -> None:
    """Raise if any of the memories is invalid, before anything is stored."""
    namespaces.check(call.namespace)
    if not call.memories:
        raise Invalid("No memories are given to add.")
    for number, memory in enumerate(call.memories):
        check_nth(number, memory)
        adding.check_id(memory, caller)
    if any(memory.id or memory.supersedes for memory in call.memories):
        with core.store.reading() as connection:
            _check_others(core, connection, call, caller)


def _check_others(core: Core, connection: Connection, call: AddMany, caller: Caller) -> None:
    """Check the stored memories that a call refers to, by a given id or as superseded."""
    visible = namespaces.condition(core.store.namespaces.reach(call.namespace, call.reach))
    number = core.store.namespaces.find_number(call.namespace)
    digests: dict[str, bytes] = {}
    for memory in call.memories:
        for prefix in duplicates.list_superseded(memory):
            try:
                old = rows.resolve(connection, prefix, visible)
            except NotFound:
                if not any(id.startswith(prefix) for id in digests):  # else an earlier memory of the same call
                    raise
            else:
                adding.check_replaceable(connection, old, core.store.namespaces.name(old.namespace), caller)
        if memory.id is not None:
            duplicates.find_by_id(connection, number, memory)
            if digests.setdefault(memory.id, content_hash(memory.content)) != content_hash(memory.content):
                raise Conflict(f"The id {memory.id} is given to two memories.", {"id": memory.id})
