"""What topics bring to the kernel: tables, a job, a stage of searches, calls on the graph."""

from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.table import MIN, JobRow
from memoryd.daemon.rooms import Room
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.topics import clustering, reading
from memoryd.daemon.topics.expand import expand
from memoryd.daemon.topics.naming import Naming
from memoryd.daemon.topics.nodes import Centroids
from memoryd.daemon.topics.tables import graph, graph_faults, graph_reading, graph_schema

_CLUSTER = "Put memories of L2 into nodes; split, merge, name these."


def _forget(core: Core) -> None:
    core.state(Centroids).forget()


def _report_tiers(connection: Connection, visible: str) -> dict[str, int]:
    return {"nodes": graph_reading.count_nodes(connection, visible)}


ROOM = Room(
    handlers=(clustering, reading),
    tables=graph_schema.TABLES,
    find_problems=graph_faults.find_problems,
    clear=graph_faults.clear,
    erase=graph.erase,
    forget=_forget,
    note_searches=graph.note_searches,
    report_tiers=_report_tiers,
    idle=lambda core: [Naming(core)],
    jobs={"cluster": JobRow(5 * MIN, 10 * MIN, _CLUSTER, clustering.CLUSTER)},
    stages={"cues": expand},
)
