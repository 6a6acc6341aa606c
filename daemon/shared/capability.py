"""What sharing brings to the kernel: tables, a stage of searches, calls, what is known of memories elsewhere."""

from collections.abc import Sequence

from memoryd.daemon.capability import Capability
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import asking, calls, conflicts
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared, shared_schema
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.tiers import SHARED


def _erase(connection: Connection, ids: Sequence[str], rows: Sequence[int]) -> None:
    shared.mark_purged(connection, ids)


def _report_tiers(connection: Connection, visible: str) -> dict[str, int]:
    held = shared.count_within(connection, visible)
    return {} if held is None else {SHARED: held}


def _report_runtime(core: Core) -> dict[str, object]:
    return {"shared": lines_of(core).report().roots}


CAPABILITY = Capability(
    handlers=(calls, conflicts),
    tables=shared_schema.TABLES,
    at_start=("shared_roots",),
    derived=("shared_unnoticed",),
    find_problems=shared.find_problems,
    clear=shared.clear,
    erase=_erase,
    find_siblings=shared.find_siblings,
    shares=shared.SHARES,
    change_locally=shared.change_locally,
    note_shared=shared.name_for_sharing,
    find_origins=shared.read_origins,
    in_force=shared.IN_FORCE,
    disarm=shared.disarm,
    start=lambda core: lines_of(core).start(),
    stop=lambda core: lines_of(core).close(),
    report_tiers=_report_tiers,
    report_runtime=_report_runtime,
    stages={"active": asking.shared},
    ask=asking.ask,
    note_hits=asking.keep,
)
