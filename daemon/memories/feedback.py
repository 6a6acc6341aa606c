"""The call `feedback`: record a vote on a memory as one operation, without changing its text and times.

A caller may rate every memory within its reach, even if it may not change it.
"""

from concurrent.futures import Future

import msgspec

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Changed, Feedback
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import show, visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import feedback, history, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.tiers import DOCUMENTS, L0
from memoryd.daemon.store.turns import resolve_row
from memoryd.daemon.store.writer import Transaction


def find_voter(caller: Caller, namespace: str) -> str:
    """Return the name under which a caller votes: its token, or its namespace without one."""
    return f"token {caller.name}" if caller.bound else namespace


@handles(Feedback)
def give(core: Core, call: Feedback, caller: Caller = USER) -> "Future[Changed]":
    """Record whether a memory was useful to the caller; this replaces its former vote."""
    limits.check_text("note", call.note)
    condition, by = visible_condition(core, call), find_voter(caller, call.namespace)

    def write(transaction: Transaction) -> Changed:
        connection, now = transaction.connection, core.clock()
        row = resolve_row(connection, call.id, condition)
        if row.tier == L0:
            raise Conflict(f"{row.id[:8]} is a turn that is still in L0; feedback is for memories.", {"id": row.id})
        if row.tier == DOCUMENTS:
            reason = "feedback is for memories that are in no file"
            raise Conflict(f"Memory {row.id[:8]} is a part of the file {row.path}; {reason}.", {"id": row.id})
        if caller.bound:  # the operation is listed by its namespace, which may not exist yet
            core.store.namespaces.ensure(transaction, caller.log_place(call.namespace))
        operation = history.begin(connection, "feedback", caller.log_place(call.namespace), now)
        history.record(connection, operation, row.id, core.store.namespaces.name(row.namespace), row)
        after = msgspec.structs.replace(row, feedback=feedback.note_vote(row.feedback, by, call.useful, call.note, now))
        rows.change(connection, row.row, {"feedback": after.feedback})
        [memory] = show(core, connection, [after], condition)
        memory.usefulness = feedback.rate_usefulness(after.feedback, notes=True)
        return Changed(memory=memory, operation=operation)

    return core.store.write(write)
