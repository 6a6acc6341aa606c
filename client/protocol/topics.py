"""Graph: the nodes of L2 with their members and edges, and topics."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Limit, Listed, Scoped, rpc

Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]


class Node(Struct, kw_only=True):
    """A cluster of memories of L2, or a concept that represents several clusters.

    A cluster's id is that of its medoid, the memory nearest to its centre, so that the id stays the same when the graph
    is rebuilt. A concept's id is `concept-` and the id of the cluster nearest to its centre.
    """

    id: str
    """the id of its medoid, or `concept-` and the id of its central cluster"""
    namespace: str
    """the namespace of all its members"""
    kind: Literal["cluster", "concept"]
    """a cluster of memories, or a concept over clusters"""
    label: str
    """up to three distinctive terms that half of its members have, or a model's words; empty: there are none"""
    about: str = ""
    """the beginning of the medoid's text"""
    size: int
    """how many members (of a concept: clusters) it had when the graph was built"""
    topic: str | None = None
    """id of its topic; null: none"""
    named_by: str = "rules"
    """the language model that gave the label, or `rules`"""


class NodeMember(Struct, kw_only=True):
    """A memory in a node."""

    id: str
    """the memory's id"""
    preview: str
    """the beginning of its text"""
    created_at: float
    """when it was created"""
    similarity: float | None = None
    """cosine to the node's centre; null: unknown at present"""


class Neighbour(Struct, kw_only=True):
    """A node that an edge joins with another one."""

    node: str
    """its id"""
    label: str
    """its label"""
    about: str = ""
    """the beginning of its medoid's text"""
    relation: Literal["co_occurs", "abstracted_from", "abstraction", "similar"]
    """`co_occurs`: searches returned memories of both; `abstracted_from`: a cluster of this concept; `abstraction`: a
    concept over this cluster; `similar`: their centres are close"""
    weight: float
    """of `co_occurs` the number of searches, of `similar` the cosine, else 1"""


class NodePage(Listed[Node], kw_only=True):
    """Nodes, the largest first; or one node with its members and neighbours."""

    nodes: list[Node]
    """the largest first"""
    total: int
    """how many match in all"""
    members: list[NodeMember] = []
    """with `node`: its memories, the nearest to the centre first"""
    neighbours: list[Neighbour] = []
    """with `node`: the nodes joined with it, by relation, the heaviest first"""


class Topic(Struct, kw_only=True):
    """A community of nodes of one namespace."""

    id: str
    """the id of the node nearest to its centre"""
    namespace: str
    """the namespace of all its nodes"""
    label: str
    """up to three distinctive terms that half of its memories have; empty: there are none"""
    about: str = ""
    """the beginning of the memory nearest to its centre"""
    nodes: int
    """how many nodes it has"""
    memories: int
    """how many memories its nodes have"""


class TopicList(Listed[Topic], kw_only=True):
    """Topics, the largest first."""

    topics: list[Topic]
    """the largest first"""
    alone: int = 0
    """nodes within reach that belong to no topic"""


class Rebuilt(Struct, kw_only=True):
    """The size of the rebuilt graph within reach, or with `dry_run` of a rebuilt one, and the differences."""

    dry_run: bool
    """nothing was changed"""
    nodes: int = 0
    """clusters and concepts"""
    concepts: int = 0
    """how many of these are concepts"""
    topics: int | None = None
    """communities of nodes; null with `dry_run`, because they are computed from the written nodes"""
    added: int = 0
    """nodes that are new"""
    changed: int = 0
    """nodes with other members or another label"""
    removed: int = 0
    """nodes that were removed"""


@rpc("within", reads=True, page=True)
class GraphNodes(Scoped[NodePage], kw_only=True, frozen=True):
    """List the nodes of the graph, the largest first, or return one with its members and its neighbours.

    The graph is rebuilt each night and by `graph_rebuild`; newer memories are in no node.
    """

    query: str = ""
    """only nodes whose label, or a memory in them, has all of these words"""
    topic: str | None = None
    """only nodes of this topic: its id, or the beginning of it"""
    node: str | None = None
    """only this node, with `members` and `neighbours`: its id, or the unique beginning of it"""
    limit: Limit = 20
    """how many at most"""
    offset: Number = 0
    """how many to skip"""


@rpc("within", reads=True, page=True)
class GraphTopics(Scoped[TopicList], kw_only=True, frozen=True):
    """List the topics: communities of nodes that are alike or were retrieved together."""


@rpc("owner", grows=True, lane="bulk", page=False)
class GraphRebuild(Scoped[Rebuilt], kw_only=True, frozen=True):
    """Rebuild the graph of the namespaces within reach, as the job `cluster` does each night.

    This computes the clusters, merges similar ones, and adds concepts, edges, topics and labels.
    """

    dry_run: bool = False
    """only count what would change"""
