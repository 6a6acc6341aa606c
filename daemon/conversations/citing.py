"""Implicit feedback: an agent that cites a memory it was given, by its id or its text, has found it useful.

A citation counts once per session and memory, half as much as explicit feedback (`store/feedback.py`). Like access
counts it is not recorded as an operation, and an undo of an earlier change restores the former value.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.client.protocol import Observe
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.feedback import find_voter
from memoryd.daemon.store import feedback, rows
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.writer import Transaction

_BATCH = 8  # turns
_MAX_WAITING = 1000


class _AgentTurn(NamedTuple):
    """A turn of an agent: namespace, session, the agent's name and the text."""

    namespace: str
    session: str
    by: str
    text: str


class _Waiting:
    """The turns to check, oldest first. In RAM only and lost in a crash, since they only affect ranking."""

    def __init__(self) -> None:
        self.turns: deque[_AgentTurn] = deque(maxlen=_MAX_WAITING)


def note(core: Core, call: Observe, caller: Caller) -> None:
    """Queue an agent's turns to be checked for citations, if its session was given any memories."""
    if not call.session or not core.recalls.is_known(call.namespace, call.session):
        return
    by = find_voter(caller, call.namespace)
    for turn in call.turns:
        if turn.role == "assistant":
            core.state(_Waiting).turns.append(_AgentTurn(call.namespace, call.session, by, turn.content))


def step(core: Core) -> bool:
    """Check one batch of turns for citations; return whether there was one."""
    waiting = core.state(_Waiting).turns
    said = [waiting.popleft() for _ in range(min(_BATCH, len(waiting)))]
    citations = [(one, core.recalls.find_cited(one.namespace, one.session, one.text)) for one in said]
    if any(ids for _, ids in citations):
        core.store.write(lambda transaction: _count(core, transaction, citations)).result()
    return bool(said)


def _count(core: Core, transaction: Transaction, citations: Sequence[tuple[_AgentTurn, list[str]]]) -> None:
    """Count citations of memories that still exist and are visible to the session."""
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
