"""Links of contradiction: listing them, dismissing one, and restoring it."""

from concurrent.futures import Future

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Disagreement, Disagreements, DismissLink, Done, Links
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import show, visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import links, rows
from memoryd.daemon.store.turns import resolve_row
from memoryd.daemon.store.writer import Transaction


@handles(Links)
def list_links(core: Core, call: Links) -> Disagreements:
    """Return the memories within reach that contradict each other."""
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        pairs = links.select_contradictions(connection, condition, call.limit)
        found = rows.read_ids(connection, [id for newer, older, _ in pairs for id in (newer, older)])
        shown = {one.id: one for one in show(core, connection, found.values(), condition)}
    return Disagreements(
        links=[
            Disagreement(newer=shown[newer], older=shown[older], created_at=at)
            for newer, older, at in pairs
            if newer in shown and older in shown
        ]
    )


@handles(DismissLink)
def dismiss(core: Core, call: DismissLink) -> "Future[Done]":
    """Dismiss the link between two memories, or restore it; raise `NotFound` where there is none."""
    condition = visible_condition(core, call)

    def write(transaction: Transaction) -> Done:
        connection = transaction.connection
        one, other = (resolve_row(connection, prefix, condition).id for prefix in (call.id, call.other))
        if not links.dismiss(connection, one, other, restore=call.restore):
            missing = "have no dismissed link" if call.restore else "are not linked"
            raise NotFound(f"{one[:8]} and {other[:8]} {missing}.", {"id": one, "other": other})
        now = "are linked again" if call.restore else "are not linked any more, and will not be again"
        return Done(message=f"{one[:8]} and {other[:8]} {now}.")

    return core.store.write(write)
