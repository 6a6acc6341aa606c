"""What the place of a root has taken from here in the last 24 hours, in case it loses its latest changes.

When the line opens, and every twenty minutes, the place is asked whether it still has these memories. Those that it
lacks are sent again with the same keys, so that the place decides: if it knows a key, the memory was deleted or erased
there, and the text goes here, too; if not, the place has lost the memory, and takes it again.
"""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError, NotFound, Unavailable
from memoryd.client.protocol import Add, Added, Changed, Deleted, List, NewMemory, Undone
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding
from memoryd.daemon.memories.duplicates import list_superseded
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.store import sent, upkeep
from memoryd.daemon.store.caller import USER
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.conversion import build_new
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.sent import Sent
from memoryd.daemon.store.tiers import WAITING
from memoryd.daemon.store.writer import Transaction

KEPT_S = 86400.0
_PART = 100

log = logging.getLogger(__name__)


def note(core: Core, root: str, call: Add, added: Added) -> None:
    """Keep a memory that the place has taken; if this machine cannot, the memory is saved all the same."""
    try:
        core.store.write(build_note(core, root, call, added), over_limit=True).result()
    except MemorydError as error:
        log.warning("what %s has taken is not kept here: %s", root, error.message)


def build_note(core: Core, root: str, call: Add, added: Added) -> Callable[[Transaction], None]:
    """Return what writes a memory as the place has taken it, without credentials."""
    now, key = core.clock(), call.idempotency_key
    call = find_privacy(core).strip(call)
    memory = msgspec.structs.replace(call.memory, id=added.id, created_at=call.memory.created_at or now)

    def write(transaction: Transaction) -> None:
        place = adding.build_target(core, transaction, call, USER)._replace(tier=WAITING)
        row = adding.new_row(core, place, memory, b"")
        sent.note(transaction.connection, root, key, added, row, list_superseded(memory), now)

    return write


def note_change(core: Core, answer: "Future[Any]") -> None:
    """Keep what became of a memory by a change from here, so that nothing is sent again as it was before."""
    result = None if answer.exception() else answer.result()
    if isinstance(result, Changed):
        core.background.run("change what was sent", partial(_rewrite, core, partial(sent.change, memory=result.memory)))
    elif isinstance(result, Deleted | Undone):
        core.background.run("delete what was sent", partial(_rewrite, core, partial(sent.remove, ids=result.ids)))


def forget_root(core: Core, root: str) -> None:
    """Delete what the place of a root has taken, since it refuses this machine."""
    others = [name for name in core.config.shared if name != root]
    with suppress(Unavailable):  # the daemon is stopping; the next refusal does it
        core.background.run("delete what was sent", partial(remove_others, core, others))


def remove_others(core: Core, roots: Iterable[str]) -> float | None:
    """Delete what is of other roots or too old; return the seconds until more is due, None if nothing is left."""
    _rewrite(core, partial(sent.remove_others, roots=roots, since=core.clock() - KEPT_S))
    with core.store.reading() as connection:
        oldest = sent.find_oldest(connection)
    return None if oldest is None else max(60.0, oldest + KEPT_S - core.clock())


def _rewrite(core: Core, job: Callable[[Connection], None]) -> None:
    """Change or delete what is kept, so that the former texts are in no file."""

    def write(transaction: Transaction) -> bool:
        before = transaction.connection.total_changes()
        transaction.connection.pragma("secure_delete", True)
        job(transaction.connection)
        return transaction.connection.total_changes() > before

    if core.store.write(write, over_limit=True).result():
        upkeep.clear_log(core.store)


def offer_again(core: Core, root: str, ask: Callable[[Any], Any]) -> None:
    """Send again what the place has lost; raise what `ask` raises, after which it may be called again."""
    with core.store.reading() as connection:
        kept = sent.list_of(connection, root)
    for part in split_evenly(kept, _PART):
        ids = [one.id for one in part]
        page = ask(List(namespace=root, reach="subtree", ids=ids, all_states=True, limit=_PART))
        there = {memory.id for memory in page.memories}
        for one in part:
            if one.id not in there:
                _offer_one(core, root, ask, one)


def _offer_one(core: Core, root: str, ask: Callable[[Any], Any], one: Sent) -> None:
    memory = msgspec.structs.replace(build_whole(one.row), supersedes=one.supersedes or None)
    call = Add(namespace=core.store.namespaces.name(one.row.namespace), memory=memory, idempotency_key=one.key)
    try:
        added = ask(call)
    except NotFound:  # what it replaced is lost, too
        call = msgspec.structs.replace(call, memory=msgspec.structs.replace(memory, supersedes=None))
        added = ask(call)
    if added.operation == one.operation:
        _rewrite(core, partial(sent.remove, ids=[one.id]))
    else:
        log.warning("%s had lost a memory, which was sent again: %s", root, added.id)
        note(core, root, call, added)


def build_whole(row: Row) -> NewMemory:
    """Return a row as a new memory to add at a place."""
    return msgspec.structs.replace(build_new(row), path=row.path, start_line=row.start_line, end_line=row.end_line)
