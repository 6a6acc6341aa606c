"""The graph of L2: nodes, what is in them and between them, topics; merging and grouping by hand; export."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Fraction, Limit, Listed, Scoped, rpc
from memoryd.client.protocol.jobs import PlannedStep

NodeKind = Literal["cluster", "concept"]
EdgeKind = Literal["co_occurs", "derived_from", "abstracted_from"]
NodeSort = Literal["size", "updated", "label"]
Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]


class Node(Struct, kw_only=True):
    """A cluster of memories of L2, or a concept that represents clusters. `topic` is null while it has none.

    `named_by` is the language model that gave the label, or `rules`.
    """

    id: int
    """its number; never given again"""
    namespace: str
    """of all its members"""
    kind: NodeKind
    """`concept` represents clusters"""
    label: str
    """the most distinctive terms of its members, the beginning of the only one, or a model's words"""
    size: int
    """members; of a concept: clusters"""
    topic: int | None = None
    """number of its topic"""
    created_at: float
    """when it was made"""
    updated_at: float
    """when its members changed last"""
    named_by: str = "rules"
    """the language model that gave the label, or `rules`"""


class NodePage(Listed[Node], kw_only=True):
    """Nodes in the order asked for, how many match in all, and how many memories still wait for a node."""

    nodes: list[Node]
    """in the order asked for"""
    total: int
    """how many match in all"""
    waiting: int = 0
    """memories of L2 within reach that have no node yet"""


class Edge(Struct, kw_only=True):
    """A relation of two nodes.

    `co_occurs`: how often both were retrieved together, without direction; `derived_from`: how many memories a node
    took along when it was split off; `abstracted_from`: from a concept to its clusters.
    """

    origin: int
    """number of a node; of a `co_occurs` edge the smaller one"""
    target: int
    """number of a node"""
    kind: EdgeKind
    """what the relation says"""
    weight: float
    """how strong it is"""


class EdgePage(Listed[Edge], kw_only=True):
    """Edges, the heaviest first, how many there are in all, and (number, label) of their nodes."""

    edges: list[Edge]
    """the heaviest first"""
    total: int
    """how many match in all"""
    labels: list[tuple[int, str]] = []
    """number and label of each node in `edges`"""


class NodeMember(Struct, kw_only=True):
    """A memory in a node: the beginning of its text, its cosine to the centroid."""

    id: str
    """the memory's id"""
    preview: str
    """the beginning of its text"""
    created_at: float
    """when it was created"""
    similarity: float | None = None
    """cosine to the node's centroid; null: not known now"""


class Neighbour(Struct, kw_only=True):
    """A node beside another: by an edge, or `similar`, with the cosine of their centroids as weight.

    `derived` and `abstraction` are `derived_from` and `abstracted_from` seen from the other end.
    """

    node: int
    """its number"""
    label: str
    """its label"""
    relation: Literal["co_occurs", "derived_from", "abstracted_from", "derived", "abstraction", "similar"]
    """how it is related"""
    weight: float
    """how strongly"""


class NodeDetail(Struct, kw_only=True):
    """One node with its members, nearest to the centroid first, and its neighbours, heaviest first in each relation."""

    node: Node
    """the node"""
    topic: str = ""
    """label of its topic; empty: it has none"""
    members: list[NodeMember] = []
    """nearest to the centroid first"""
    neighbours: list[Neighbour] = []
    """by relation, the heaviest first"""


class Topic(Struct, kw_only=True):
    """A community of nodes of one namespace."""

    id: int
    """its number; kept while most of its nodes stay together"""
    namespace: str
    """of all its nodes"""
    label: str
    """the most distinctive terms of its memories"""
    nodes: int
    """how many nodes it has"""
    memories: int
    """how many members these have"""


class TopicList(Listed[Topic], kw_only=True):
    """Topics, the largest first; `alone` counts the nodes that belong to none."""

    topics: list[Topic]
    """the largest first"""
    alone: int = 0
    """nodes within reach that belong to no topic"""


class GraphChange(Struct, kw_only=True):
    """What was done to the graph, or with `dry_run` would be: how often what, and the first 1000 of `total` steps."""

    dry_run: bool
    """nothing was changed"""
    counts: dict[str, int] = {}
    """what was done how often, by action; `skipped`: it held no more"""
    total: int = 0
    """how many steps there are"""
    steps: list[PlannedStep] = []
    """the first 1000 of them"""


class ExportedNode(Struct, kw_only=True):
    """A node with the beginnings of its members' texts and its most similar nodes (number, cosine)."""

    node: Node
    """the node"""
    members: list[str] = []
    """the beginnings of its members' texts"""
    similar: list[tuple[int, float]] = []
    """the most similar nodes of its namespace: number, cosine"""


class GraphPart(Struct, kw_only=True):
    """One part of an export: nodes by rising number, the edges that begin at them; `next` is null at the end."""

    nodes: list[ExportedNode]
    """by rising number"""
    edges: list[Edge] = []
    """those that begin at them, with both ends within reach"""
    next: int | None = None
    """what to give as `after` for the next part; null: this was the last"""


@rpc("within", reads=True, page=True)
class GraphNodes(Scoped[NodePage], kw_only=True, frozen=True):
    """List the nodes of the graph, the largest first unless `sort` says otherwise.

    With `query` only those whose label, or a memory in them, has all of its words.
    """

    query: str = ""
    """only nodes whose label, or a memory in them, has all of these words"""
    topic: Number | None = None
    """only nodes of this topic"""
    kind: NodeKind | None = None
    """only nodes of this kind"""
    sort: NodeSort = "size"
    """`size` and `updated`: largest and latest first"""
    limit: Limit = 20
    """how many at most"""
    offset: Number = 0
    """how many to leave out first"""


@rpc("within", reads=True, page=True)
class GraphEdges(Scoped[EdgePage], kw_only=True, frozen=True):
    """List the edges between nodes within reach, the heaviest first."""

    kind: EdgeKind | None = None
    """only edges of this kind"""
    node: Number | None = None
    """only edges from or to this node"""
    limit: Limit = 20
    """how many at most"""
    offset: Number = 0
    """how many to leave out first"""


@rpc("within", reads=True, page=True)
class GraphNode(Scoped[NodeDetail], kw_only=True, frozen=True):
    """Show one node: its members, its topic, its neighbours."""

    node: Number
    """its number"""


@rpc("within", reads=True, page=True)
class GraphTopics(Scoped[TopicList], kw_only=True, frozen=True):
    """List the topics: communities of nodes that are alike or were retrieved together."""


@rpc("owner", grows=True, lane="bulk", page=False)
class GraphDedupe(Scoped[GraphChange], kw_only=True, frozen=True):
    """Merge the nodes within reach that are alike: cosine at or above `threshold`, by default the model's own.

    Nodes that together would have more than 20 members stay apart.
    """

    threshold: Fraction | None = None
    """cosine of centroids from which nodes are merged; null: the model's own"""
    dry_run: bool = False
    """plan and change nothing"""


@rpc("owner", grows=True, lane="bulk", page=False)
class GraphAbstract(Scoped[GraphChange], kw_only=True, frozen=True):
    """Give each group of three or more clusters that are alike a concept node; doing it again changes nothing."""

    threshold: Fraction | None = None
    """cosine from which clusters belong to one concept; null: the model's own"""
    dry_run: bool = False
    """plan and change nothing"""


@rpc("owner", grows=True, lane="bulk", page=False)
class GraphRegroup(Scoped[GraphChange], kw_only=True, frozen=True):
    """Find the topics again; a topic keeps its number as long as most of its nodes stay together."""

    dry_run: bool = False
    """plan and change nothing"""


@rpc("within", reads=True, lane="bulk", page=False)
class GraphExport(Scoped[GraphPart], kw_only=True, frozen=True):
    """Return a part of the graph within reach: the nodes with numbers above `after`, in order.

    Ask again with `after` = `next` until that is null. `preview` is how many characters of each member come along.
    """

    after: Number = 0
    """only nodes with larger numbers; 0 at first, then `next` of the reply"""
    limit: Limit = 500
    """nodes in one reply at most"""
    preview: Annotated[int, Meta(ge=0, le=200)] = 80
    """characters of each member's text; 0: no members"""
