"""The room `topics`: tables, a job, a stage of searches, and calls on the graph."""

from memoryd.daemon.jobs.table import DAY, MIN, JobRow
from memoryd.daemon.rooms import Room
from memoryd.daemon.topics import listing, rebuild
from memoryd.daemon.topics.expand import expand
from memoryd.daemon.topics.naming import Naming
from memoryd.daemon.topics.tables import graph, graph_schema

_CLUSTER = "Rebuild the graph of L2: nodes, edges, concepts, topics, labels."


ROOM = Room(
    handlers=(rebuild, listing),
    tables=graph_schema.TABLES,
    find_problems=graph.find_problems,
    clear=graph.clear,
    erase=graph.erase,
    note_searches=graph.note_searches,
    report_tiers=lambda connection, visible: {"nodes": graph.count_nodes(connection, visible)},
    idle=lambda core: [Naming(core)],
    jobs={"cluster": JobRow(DAY, 10 * MIN, _CLUSTER, rebuild.CLUSTER_WORK)},
    stages={"cues": expand},
)
