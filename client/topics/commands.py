"""The commands of topics in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Graph": {
        "graph nodes": CommandRow("graph", "the topic clusters of L2, the largest first", "topics"),
        "graph edges": CommandRow("graph", "what is between nodes, the heaviest first", "topics"),
        "graph show": CommandRow("graph", "one node: its memories and neighbours", "topics"),
        "graph topics": CommandRow("graph", "communities of nodes; --recompute finds them again", "topics"),
        "graph dedupe": CommandRow("graph", "merge nodes that are alike", "topics"),
        "graph abstract": CommandRow("graph", "make concept nodes over clusters that are alike", "topics"),
        "graph export": CommandRow("graph_export", "the graph as a page to look at, or as GraphML", "topics"),
    },
}
DEFAULT_VERBS = {"graph": "nodes"}
