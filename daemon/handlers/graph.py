"""Handlers of the calls about the graph."""

from memoryd.client.protocol import (
    EdgePage,
    GraphAbstract,
    GraphChange,
    GraphDedupe,
    GraphEdges,
    GraphExport,
    GraphNode,
    GraphNodes,
    GraphPart,
    GraphRegroup,
    GraphTopics,
    NodeDetail,
    NodePage,
    TopicList,
)
from memoryd.daemon.core import graph
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.lifecycle import clustering_calls


@handles(GraphNodes)
def graph_nodes(context: Context, call: GraphNodes) -> NodePage:
    """List nodes."""
    return graph.nodes(context.core, call)


@handles(GraphEdges)
def graph_edges(context: Context, call: GraphEdges) -> EdgePage:
    """List edges."""
    return graph.edges(context.core, call)


@handles(GraphNode)
def graph_node(context: Context, call: GraphNode) -> NodeDetail:
    """Show one node."""
    return graph.show(context.core, call)


@handles(GraphTopics)
def graph_topics(context: Context, call: GraphTopics) -> TopicList:
    """List topics."""
    return graph.topics(context.core, call)


@handles(GraphDedupe)
def graph_dedupe(context: Context, call: GraphDedupe) -> GraphChange:
    """Merge nodes that are alike."""
    return clustering_calls.dedupe(context.core, call)


@handles(GraphAbstract)
def graph_abstract(context: Context, call: GraphAbstract) -> GraphChange:
    """Make concept nodes."""
    return clustering_calls.abstract(context.core, call)


@handles(GraphRegroup)
def graph_regroup(context: Context, call: GraphRegroup) -> GraphChange:
    """Find the topics anew."""
    return clustering_calls.regroup(context.core, call)


@handles(GraphExport)
def graph_export(context: Context, call: GraphExport) -> GraphPart:
    """Return a part of the graph."""
    return graph.export(context.core, call)
