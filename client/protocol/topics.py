"""Graph: the nodes of L2, what is in them and between them, their topics."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Limit, Listed, Scoped, rpc

Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]


class Node(Struct, kw_only=True):
    """A cluster of memories of L2, or a concept that represents clusters.

    A cluster has the id of its medoid, the memory nearest to its middle, so that it keeps its id from one making of the
    graph to the next; a concept has that of the cluster nearest to its own, with `concept-` before it.
    """

    id: str
    """the id of its medoid; of a concept with `concept-` before it"""
    namespace: str
    """of all its members"""
    kind: Literal["cluster", "concept"]
    """`concept` represents clusters"""
    label: str
    """up to three distinctive terms that stand in half of its members, or a model's words; empty: there are none"""
    about: str = ""
    """the beginning of the medoid's text"""
    size: int
    """members, of a concept clusters, when the graph was made"""
    topic: str | None = None
    """id of its topic; null: none"""
    named_by: str = "rules"
    """the language model that gave the label, or `rules`"""


class NodeMember(Struct, kw_only=True):
    """A memory in a node: the beginning of its text, its cosine to the centre."""

    id: str
    """the memory's id"""
    preview: str
    """the beginning of its text"""
    created_at: float
    """when it was created"""
    similarity: float | None = None
    """cosine to the node's centre; null: not known now"""


class Neighbour(Struct, kw_only=True):
    """A node beside another."""

    node: str
    """its id"""
    label: str
    """its label"""
    about: str = ""
    """the beginning of its medoid's text"""
    relation: Literal["co_occurs", "abstracted_from", "abstraction", "similar"]
    """`co_occurs`: searches returned memories of both; `abstracted_from`: a cluster of this concept; `abstraction`: a
    concept over it; `similar`: their centres are close"""
    weight: float
    """of `co_occurs` how often, of `similar` the cosine, else 1"""


class NodePage(Listed[Node], kw_only=True):
    """Nodes, the largest first, and how many match in all; of one that was asked for by its id what it has, too."""

    nodes: list[Node]
    """the largest first"""
    total: int
    """how many match in all"""
    members: list[NodeMember] = []
    """of the node asked for: its memories, nearest to the centre first"""
    neighbours: list[Neighbour] = []
    """of the node asked for: nodes beside it, by relation, the heaviest first"""


class Topic(Struct, kw_only=True):
    """A community of nodes of one namespace."""

    id: str
    """that of the node nearest to its middle"""
    namespace: str
    """of all its nodes"""
    label: str
    """up to three distinctive terms that stand in half of its memories; empty: there are none"""
    about: str = ""
    """the beginning of the memory nearest to its middle"""
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


class Rebuilt(Struct, kw_only=True):
    """What the graph within reach is now, or with `dry_run` would be, and how it differs from the one before."""

    dry_run: bool
    """nothing was changed"""
    nodes: int = 0
    """clusters and concepts"""
    concepts: int = 0
    """concepts among them"""
    topics: int | None = None
    """communities of nodes; null with `dry_run`: they are found once the nodes are written"""
    added: int = 0
    """nodes that are new"""
    changed: int = 0
    """nodes with other members or another label"""
    removed: int = 0
    """nodes that are no longer there"""


@rpc("within", reads=True, page=True)
class GraphNodes(Scoped[NodePage], kw_only=True, frozen=True):
    """List the nodes of the graph, the largest first, or show one with its members and its neighbours.

    The graph is made each night and by `graph_rebuild`; memories that came since are in no node.
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
    """how many to leave out first"""


@rpc("within", reads=True, page=True)
class GraphTopics(Scoped[TopicList], kw_only=True, frozen=True):
    """List the topics: communities of nodes that are alike or were retrieved together."""


@rpc("owner", grows=True, lane="bulk", page=False)
class GraphRebuild(Scoped[Rebuilt], kw_only=True, frozen=True):
    """Make the graph of the namespaces within reach anew, as the job `cluster` does each night.

    Clusters, merging of those that are alike, concepts over clusters, edges, topics and labels.
    """

    dry_run: bool = False
    """count what would change and change nothing"""
