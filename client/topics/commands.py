"""The commands of topics in memctl."""

from memoryd.client.memctl.commands import Row

GROUPS = {
    "Graph": {
        "graph nodes": Row("graph", "the topic clusters of L2, the largest first", "topics"),
        "graph edges": Row("graph", "what is between nodes, the heaviest first", "topics"),
        "graph show": Row("graph", "one node: its memories and neighbours", "topics"),
        "graph topics": Row("graph", "communities of nodes; --recompute finds them again", "topics"),
        "graph dedupe": Row("graph", "merge nodes that are alike", "topics"),
        "graph abstract": Row("graph", "make concept nodes over clusters that are alike", "topics"),
        "graph export": Row("graph_export", "the graph as a page to look at, or as GraphML", "topics"),
    },
}
DEFAULT_VERBS = {"graph": "nodes"}
