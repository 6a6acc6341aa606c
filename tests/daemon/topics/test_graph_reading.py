"""Reading and changing the graph by calls: lists, one node, topics, export; everybody within their reach only."""

from typing import Any

import pytest

from graphs import carry_out, graph, maintain, near, query, remember
from memoryd.client.errors import NotFound
from memoryd.client.protocol import Verify
from memoryd.client.protocol.topics import (
    GraphAbstract,
    GraphDedupe,
    GraphEdges,
    GraphExport,
    GraphNode,
    GraphNodes,
    GraphRegroup,
    GraphTopics,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.topics import clustering
from memoryd.daemon.topics.tables.graph import strengthen
from workbench import ask

SUBJECTS = (
    ("deploy the billing service on Friday", "deploy the billing service on Monday", "deploy billing again"),
    ("herons eat fish in the pond", "herons eat frogs in the pond", "herons sleep in the pond"),
    ("the piano needs tuning this spring",),
)


@pytest.fixture
def filled(core: Core) -> Core:
    """Two subjects of three memories and one alone, in one namespace, another subject in an inner one."""
    for place, texts in enumerate(SUBJECTS):
        remember(core, texts, "acme", [near(place, 0.95, 10 + n) for n in range(len(texts))])
    remember(core, ["a secret of alpha", "another secret of alpha"], "acme/alpha", [near(0)] * 2)
    maintain(core)
    return core


def co_occur(core: Core, *pairs: tuple[int, int]) -> None:
    core.store.write(lambda transaction: strengthen(transaction.connection, pairs)).result(30)


def labels(page: Any) -> list[str]:
    return [node.label for node in page]


def test_nodes_are_listed_by_size_with_their_terms(filled: Core) -> None:
    page = ask(filled, GraphNodes(namespace="acme"))
    assert [node.size for node in page] == [3, 3, 1]
    assert page.total == 3
    assert set(labels(page)[0].split(", ")) >= {"billing", "deploy"}
    assert "pond" in labels(page)[1]
    assert labels(page)[2] == "the piano needs tuning this spring"


def test_nodes_are_found_by_words_of_their_memories_and_labels(filled: Core) -> None:
    def found(query: str) -> list[str]:
        return labels(ask(filled, GraphNodes(query=query, namespace="acme")))

    assert found("frogs") == found("herons")
    assert len(found("monday billing")) == 1
    assert found("billing pond") == []
    assert found("%") == found('"') == found("unheard-of") == []


def test_nodes_are_listed_by_kind_topic_and_page(filled: Core) -> None:
    everything = ask(filled, GraphNodes()).nodes
    assert ask(filled, GraphNodes(kind="concept")).total == 0
    assert len(ask(filled, GraphNodes(limit=2, offset=2)).nodes) == 2
    assert ask(filled, GraphNodes(topic=99)).total == 0
    assert [node.label for node in everything] != sorted(node.label for node in everything)
    by_label = ask(filled, GraphNodes(sort="label")).nodes
    assert [node.label for node in by_label] == sorted(node.label for node in by_label)


def test_a_caller_sees_the_nodes_within_reach_only(filled: Core) -> None:
    assert ask(filled, GraphNodes(namespace="acme")).total == 3
    assert ask(filled, GraphNodes(namespace="acme/alpha")).total == 4
    assert ask(filled, GraphNodes(namespace="acme/alpha", reach="exact")).total == 1
    assert ask(filled, GraphNodes(namespace="acme/beta", reach="exact")).total == 0
    [secret] = ask(filled, GraphNodes(namespace="acme/alpha", reach="exact"))
    with pytest.raises(NotFound, match=f"no node {secret.id}"):
        ask(filled, GraphNode(node=secret.id, namespace="acme"))
    assert ask(filled, GraphNode(node=secret.id, namespace="acme/alpha")).node == secret


def test_what_waits_for_a_node_is_counted_within_reach(filled: Core) -> None:
    remember(filled, ["not clustered yet"], "acme/alpha", [near(5)])
    assert ask(filled, GraphNodes(namespace="acme")).waiting == 0
    assert ask(filled, GraphNodes(namespace="acme/alpha")).waiting == 1
    assert ask(filled, GraphNodes()).waiting == 1


def test_an_edge_is_shown_where_both_its_ends_are_within_reach(filled: Core) -> None:
    outer = [node.id for node in ask(filled, GraphNodes(namespace="acme"))]
    [inner] = [node.id for node in ask(filled, GraphNodes(namespace="acme/alpha", reach="exact"))]
    co_occur(filled, (outer[0], outer[1]), (outer[1], outer[0]), (inner, outer[0]))
    page = ask(filled, GraphEdges(namespace="acme"))
    assert [(edge.kind, edge.weight) for edge in page] == [("co_occurs", 2.0)]
    assert dict(page.labels).keys() == set(outer[:2])
    assert ask(filled, GraphEdges(namespace="acme/alpha")).total == 2
    assert ask(filled, GraphEdges(node=inner)).total == 1
    assert ask(filled, GraphEdges(kind="derived_from")).total == 0
    detail = ask(filled, GraphNode(node=outer[0], namespace="acme"))
    assert [n.node for n in detail.neighbours if n.relation == "co_occurs"] == [outer[1]]


def test_a_node_shows_its_members_the_most_central_first(filled: Core) -> None:
    first = ask(filled, GraphNodes(namespace="acme")).nodes[0]
    detail = ask(filled, GraphNode(node=first.id))
    similarities = [member.similarity for member in detail.members]
    assert len(similarities) == 3
    assert similarities == sorted(similarities, reverse=True)
    assert {member.preview for member in detail.members} == set(SUBJECTS[0])


@pytest.mark.parametrize("number", [0, 12345])
def test_a_node_that_does_not_exist_is_not_found(core: Core, number: int) -> None:
    with pytest.raises(NotFound):
        ask(core, GraphNode(node=number))


def test_topics_are_communities_of_what_was_retrieved_together(core: Core) -> None:
    remember(core, [f"note {number}" for number in range(12)], given=[near(number) for number in range(12)])
    maintain(core)
    assert ask(core, GraphTopics()).topics == []
    assert ask(core, GraphTopics()).alone == 12
    nodes = [node.id for node in ask(core, GraphNodes(sort="label"))]
    for group in (nodes[:4], nodes[4:8]):
        co_occur(core, *[(a, b) for a in group for b in group if a < b])
    done = ask(core, GraphRegroup())
    assert (done.dry_run, done.counts) == (False, {"topics": 2})
    found = ask(core, GraphTopics())
    assert [(topic.nodes, topic.memories) for topic in found] == [(4, 4), (4, 4)]
    assert found.alone == 4
    in_first = ask(core, GraphNodes(topic=found.topics[0].id))
    assert {node.id for node in in_first} in ({*nodes[:4]}, {*nodes[4:8]})


def test_topics_keep_their_numbers_and_finding_them_again_changes_nothing(core: Core) -> None:
    remember(core, [f"note {number}" for number in range(9)], given=[near(number) for number in range(9)])
    maintain(core)
    nodes = [node.id for node in ask(core, GraphNodes(sort="label"))]
    for group in (nodes[:4], nodes[4:8]):
        co_occur(core, *[(a, b) for a in group for b in group if a < b])
    ask(core, GraphRegroup())
    before = {topic.id: topic.label for topic in ask(core, GraphTopics())}
    assert ask(core, GraphRegroup()).total == 0
    co_occur(core, *[(nodes[8], node) for node in nodes[4:8]])
    planned = ask(core, GraphRegroup(dry_run=True))
    assert planned.total == 1
    assert len(ask(core, GraphNodes(topic=max(before))).nodes) == 4
    ask(core, GraphRegroup())
    assert {topic.id for topic in ask(core, GraphTopics())} == set(before)
    assert max(topic.nodes for topic in ask(core, GraphTopics())) == 5


def test_topics_of_two_namespaces_in_one_plan_have_numbers_of_their_own(core: Core) -> None:
    for place in ("a", "b"):
        rows = [f"{place} says {word}" for word in ("one", "two", "three")]
        remember(core, rows, place, [near(0, 0.6, turn) for turn in (1, 2, 3)])  # related, not of one node
    maintain(core)
    found = ask(core, GraphTopics()).topics
    assert sorted(topic.namespace for topic in found) == ["a", "b"]
    assert len({topic.id for topic in found}) == 2


def test_dedupe_merges_from_a_given_cosine_on_and_a_dry_run_only_says_so(core: Core) -> None:
    remember(core, ["red fish", "red fish here", "blue whale"], given=[near(0, 0.8, 1), near(0, 0.8, 2), near(5)])
    maintain(core)
    before = graph(core)
    assert ask(core, GraphDedupe()).total == 0
    planned = ask(core, GraphDedupe(threshold=0.6, dry_run=True))
    assert planned.counts == {"merged": 1, "named": 1}
    assert graph(core) == before
    done = ask(core, GraphDedupe(threshold=0.6))
    assert (done.counts, done.steps) == (planned.counts, planned.steps)
    assert [node.size for node in ask(core, GraphNodes())] == [2, 1]
    assert ask(core, GraphDedupe(threshold=0.6)).total == 0


def test_dedupe_touches_nothing_beyond_reach(core: Core) -> None:
    for place in ("a", "b"):
        remember(core, [f"{place} one", f"{place} two"], place, [near(0, 0.8, 1), near(0, 0.8, 2)])
    maintain(core)
    ask(core, GraphDedupe(threshold=0.6, namespace="a", reach="exact"))
    assert ask(core, GraphNodes(namespace="a", reach="exact")).total == 1
    assert ask(core, GraphNodes(namespace="b", reach="exact")).total == 2


def test_clusters_that_are_alike_get_a_concept_and_doing_it_again_changes_nothing(core: Core) -> None:
    texts = [f"the river floods field {number}" for number in range(3)]
    remember(core, texts, given=[near(0, 0.8, turn) for turn in (1, 2, 3)])  # cosine 0.64: related, not of one node
    remember(core, ["something else"], given=[near(9)])
    maintain(core)
    [concept] = ask(core, GraphNodes(kind="concept"))
    assert concept.size == 3
    assert "river" in concept.label
    detail = ask(core, GraphNode(node=concept.id))
    assert [n.relation for n in detail.neighbours] == ["abstracted_from"] * 3
    assert ask(core, GraphAbstract()).total == 0
    below = ask(core, GraphNode(node=detail.neighbours[0].node))
    assert "abstraction" in {n.relation for n in below.neighbours}


def test_a_concept_goes_when_its_clusters_are_no_longer_alike(core: Core) -> None:
    remember(core, ["one", "two", "three"], given=[near(0, 0.8, turn) for turn in (1, 2, 3)])
    maintain(core)
    assert ask(core, GraphAbstract(threshold=0.9)).counts == {"dropped": 1}
    assert ask(core, GraphNodes(kind="concept")).total == 0


def test_an_export_in_parts_holds_every_node_and_edge_once(filled: Core) -> None:
    nodes = [node.id for node in ask(filled, GraphNodes())]
    co_occur(filled, *[(a, b) for a in nodes for b in nodes if a < b])
    seen, edges, after = [], 0, 0
    while after is not None:
        part = ask(filled, GraphExport(after=after, limit=3, preview=10))
        seen += part.nodes
        edges += len(part.edges)
        after = part.next
    assert sorted(item.node.id for item in seen) == sorted(nodes)
    assert edges == 6
    assert all(len(text) <= 10 for item in seen for text in item.members)
    assert sum(len(item.members) for item in seen) == 9
    inside = ask(filled, GraphExport(namespace="acme"))
    assert len(inside.nodes) == 3
    assert len(inside.edges) == 3


def test_the_empty_graph_has_nothing_to_show(core: Core) -> None:
    assert ask(core, GraphNodes()).nodes == []
    assert ask(core, GraphEdges()).edges == []
    assert ask(core, GraphTopics()).topics == []
    assert ask(core, GraphExport()).nodes == []
    for change in (clustering.dedupe, clustering.abstract, clustering.regroup):
        call = {"dedupe": GraphDedupe, "abstract": GraphAbstract, "regroup": GraphRegroup}[change.__name__]()
        assert change(core, call).total == 0


BREAKAGES = {
    "neither in a node": "DELETE FROM backlog",
    "other members than": "UPDATE nodes SET size = size + 1",
    "not the mean": "UPDATE nodes SET centroid = zeroblob(256)",
    "wrong way round": "INSERT INTO edges SELECT max(id), min(id), 'co_occurs', 1 FROM nodes",
    "another namespace": "UPDATE nodes SET namespace = (SELECT max(id) FROM namespaces)",
    "wait for a node as well": "INSERT INTO backlog SELECT memory FROM members",
}


@pytest.mark.parametrize("fault", BREAKAGES)
def test_verify_tells_what_is_wrong_with_the_graph_and_repair_starts_it_anew(
    daemon: Any, filled: Core, fault: str
) -> None:
    remember(filled, ["waits for a node"], "acme", [near(7)])
    with daemon.client() as client:
        assert client.call(Verify()).problems == []
        filled.store.write(lambda t: t.connection.execute(BREAKAGES[fault])).result(30)
        assert any(fault in problem for problem in client.call(Verify()).problems)
        assert client.call(Verify(repair=True)).problems == []
    assert query(filled, "SELECT count(*) FROM backlog") == [(10,)]
    counts = carry_out(filled, clustering.plan(filled, 0.0))
    assert counts["founded"] >= 4
    assert ask(filled, GraphNodes()).waiting == 0
