"""Implicit feedback: an agent that names a memory it was given, by its id or by its text, has found it useful.

Counted once for each session and memory, at half of what it counts to say so (`store/feedback.py`). As the count of
accesses it is a habit and no operation; an undo of an earlier change puts back what there was then.
"""

import hashlib
from collections.abc import Sequence

from memoryd.client.protocol import Observe
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.feedback import find_voter
from memoryd.daemon.store import feedback, rows
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.tiers.citations import AgentTurn

_PORTION = 8  # turns
_SPEAKER = "assistant"


def note(core: Core, call: Observe, caller: Caller) -> None:
    """Queue the turns of an agent for a check, if its session was given anything."""
    if not call.session or not core.recalls.is_known(call.namespace, call.session):
        return
    by = find_voter(caller, call.namespace)
    for turn in call.turns:
        if turn.role == _SPEAKER:
            core.citations.note(AgentTurn(call.namespace, call.session, by, turn.content))


def step(core: Core) -> bool:
    """Look at some turns; say whether there were any."""
    said = core.citations.take(_PORTION)
    citations = [(one, core.recalls.find_cited(one.namespace, one.session, one.text)) for one in said]
    if any(ids for _, ids in citations):
        core.store.write(lambda transaction: _count(core, transaction, citations)).result()
    return bool(said)


def _count(core: Core, transaction: Transaction, citations: Sequence[tuple[AgentTurn, list[str]]]) -> None:
    """Count the citations of memories that still exist and that the session can see."""
    present = rows.read_ids(transaction.connection, [id for _, ids in citations for id in ids])
    for one, ids in citations:
        seen = core.store.namespaces.reach(one.namespace, None)
        session = hashlib.sha256(f"{one.namespace}\n{one.session}".encode()).hexdigest()[:12]
        for row in (present[id] for id in ids if id in present):
            if row.tier == DOCUMENTS or (seen is not None and row.namespace not in seen):
                continue
            if (column := feedback.note_citation(row.feedback, one.by, session, core.clock())) is not None:
                row.feedback = column
                rows.change(transaction.connection, row.row, {"feedback": column})
