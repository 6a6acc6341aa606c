"""The graph of L2: nodes, what is in them and between them, topics; merging and grouping by hand; export."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Fraction, Limit, Scoped
from memoryd.client.protocol.jobs import PlannedStep

NodeKind = Literal["cluster", "concept"]
EdgeKind = Literal["co_occurs", "derived_from", "abstracted_from"]
NodeSort = Literal["size", "updated", "label"]
Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]


class Node(Struct, kw_only=True):
    """A cluster of memories of L2, or a concept that stands for clusters. `topic` is null while it has none.

    `named_by` is the language model that gave the label, or `rules`.
    """

    id: int
    namespace: str
    kind: NodeKind
    label: str
    size: int
    topic: int | None = None
    created_at: float
    updated_at: float
    named_by: str = "rules"


class NodePage(Struct, kw_only=True):
    """Nodes in the order asked for, how many match in all, and how many memories still wait for a node."""

    nodes: list[Node]
    total: int
    waiting: int = 0

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


class Edge(Struct, kw_only=True):
    """A relation of two nodes.

    `co_occurs`: how often both were retrieved together, without direction; `derived_from`: how many memories a node
    took along when it was split off; `abstracted_from`: from a concept to its clusters.
    """

    origin: int
    target: int
    kind: EdgeKind
    weight: float


class EdgePage(Struct, kw_only=True):
    """Edges, the heaviest first, how many there are in all, and (number, label) of their nodes."""

    edges: list[Edge]
    total: int
    labels: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)

    def __len__(self) -> int:
        return len(self.edges)


class NodeMember(Struct, kw_only=True):
    """A memory in a node: the beginning of its text, its cosine to the centroid."""

    id: str
    preview: str
    created_at: float
    similarity: float | None = None


class Neighbour(Struct, kw_only=True):
    """A node beside another: by an edge, or `similar`, with the cosine of their centroids as weight.

    `derived` and `abstraction` are `derived_from` and `abstracted_from` seen from the other end.
    """

    node: int
    label: str
    relation: Literal["co_occurs", "derived_from", "abstracted_from", "derived", "abstraction", "similar"]
    weight: float


class NodeDetail(Struct, kw_only=True):
    """One node with its members, nearest to the centroid first, and its neighbours, heaviest first in each relation."""

    node: Node
    topic: str = ""
    members: list[NodeMember] = []
    neighbours: list[Neighbour] = []


class Topic(Struct, kw_only=True):
    """A community of nodes of one namespace."""

    id: int
    namespace: str
    label: str
    nodes: int
    memories: int


class TopicList(Struct, kw_only=True):
    """Topics, the largest first; `alone` counts the nodes that belong to none."""

    topics: list[Topic]
    alone: int = 0

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)


class GraphChange(Struct, kw_only=True):
    """What was done to the graph, or with `dry_run` would be: how often what, and the first 1000 of `total` steps."""

    dry_run: bool
    counts: dict[str, int] = {}
    total: int = 0
    steps: list[PlannedStep] = []


class ExportedNode(Struct, kw_only=True):
    """A node with the beginnings of its members' texts and its most similar nodes (number, cosine)."""

    node: Node
    members: list[str] = []
    similar: list[tuple[int, float]] = []


class GraphPart(Struct, kw_only=True):
    """One part of an export: nodes by rising number, the edges that begin at them; `next` is null at the end."""

    nodes: list[ExportedNode]
    edges: list[Edge] = []
    next: int | None = None


class GraphNodes(Scoped[NodePage], kw_only=True, frozen=True):
    """List the nodes of the graph, the largest first unless `sort` says otherwise.

    `query` leaves those whose label, or a memory in them, has all of its words.
    """

    query: str = ""
    topic: Number | None = None
    kind: NodeKind | None = None
    sort: NodeSort = "size"
    limit: Limit = 20
    offset: Number = 0


class GraphEdges(Scoped[EdgePage], kw_only=True, frozen=True):
    """List the edges between nodes within reach, the heaviest first."""

    kind: EdgeKind | None = None
    node: Number | None = None
    limit: Limit = 20
    offset: Number = 0


class GraphNode(Scoped[NodeDetail], kw_only=True, frozen=True):
    """Show one node: its members, its topic, its neighbours."""

    node: Number


class GraphTopics(Scoped[TopicList], kw_only=True, frozen=True):
    """List the topics: communities of nodes that are alike or were retrieved together."""


class GraphDedupe(Scoped[GraphChange], kw_only=True, frozen=True):
    """Merge the nodes within reach that are alike: cosine at or above `threshold`, by default the model's own.

    Nodes that together would have more than 20 members stay apart.
    """

    threshold: Fraction | None = None
    dry_run: bool = False


class GraphAbstract(Scoped[GraphChange], kw_only=True, frozen=True):
    """Give each group of three or more clusters that are alike a concept node; doing it again changes nothing."""

    threshold: Fraction | None = None
    dry_run: bool = False


class GraphRegroup(Scoped[GraphChange], kw_only=True, frozen=True):
    """Find the topics anew; a topic keeps its number as long as most of its nodes stay together."""

    dry_run: bool = False


class GraphExport(Scoped[GraphPart], kw_only=True, frozen=True):
    """Return a part of the graph within reach: the nodes with numbers above `after`, in order.

    Ask again with `after` = `next` until that is null. `preview` is how many characters of each member come along.
    """

    after: Number = 0
    limit: Limit = 500
    preview: Annotated[int, Meta(ge=0, le=200)] = 80
