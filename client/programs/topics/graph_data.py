"""The graph within reach, as `graph export` reads it from the daemon."""

from argparse import Namespace
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from memoryd.client.programs.memctl.link import apply_options, client_for
from memoryd.client.protocol import Scoped
from memoryd.client.protocol.topics import Edge, ExportedNode, GraphExport, GraphTopics, Topic


class ExportedGraph(NamedTuple):
    """What is exported: nodes by falling size, the edges between them, the topics, how many nodes there are in all."""

    nodes: list[ExportedNode]
    edges: list[Edge]
    topics: list[Topic]
    total: int


def fetch(args: Namespace, limit: int | None) -> ExportedGraph:
    """Return the graph, part by part."""
    reading = read(args.preview, limit)
    with client_for(args) as client:
        reply: Any = None
        while True:
            try:
                call = reading.send(reply)
            except StopIteration as end:
                graph: ExportedGraph = end.value
                return graph
            reply = client.call(apply_options(args, call))


def read(preview: int, limit: int | None) -> Generator[Scoped[Any], Any, ExportedGraph]:
    """Yield calls and take their results; return the graph with the `limit` largest nodes (None: all)."""
    nodes: list[ExportedNode] = []
    edges: list[Edge] = []
    topics = (yield GraphTopics()).topics
    after: int | None = 0
    while after is not None:
        part = yield GraphExport(after=after, preview=preview)
        nodes += part.nodes
        edges += part.edges
        after = part.next
    chosen = sorted(nodes, key=lambda n: (n.node.kind == "concept", -n.node.size, n.node.id))[:limit]
    kept = {item.node.id for item in chosen}
    return ExportedGraph(chosen, [e for e in edges if e.origin in kept and e.target in kept], topics, len(nodes))


def all_edges(graph: ExportedGraph) -> Iterator[tuple[int, int, str, float]]:
    """Yield every edge: those of the graph and, once, each pair of which one is among the most similar to the other."""
    for edge in graph.edges:
        yield edge.origin, edge.target, edge.kind, edge.weight
    kept = {item.node.id for item in graph.nodes}
    seen: set[tuple[int, int]] = set()
    for item in graph.nodes:
        for other, cosine in item.similar:
            pair = (min(item.node.id, other), max(item.node.id, other))
            if other in kept and pair not in seen:
                seen.add(pair)
                yield *pair, "similar", cosine
