"""Reading the graph by calls: lists, one node, topics; everybody within their reach only."""

from typing import Any

import pytest

from graphs import make_graph, near, query, remember, search_together
from memoryd.client.errors import NotFound
from memoryd.client.protocol.topics import GraphNodes, GraphTopics, Node
from memoryd.daemon.core.core import Core
from workbench import LIMIT_S, ask, delete

SUBJECTS = (
    ("deploy the billing service on Friday", "deploy the billing service on Monday", "deploy billing again"),
    ("herons eat fish in the pond", "herons eat frogs in the pond", "herons sleep in the pond"),
    ("the piano needs tuning this spring",),
)


@pytest.fixture
def filled(core: Core) -> Core:
    """Two subjects of three memories and one alone, in one namespace, another subject in an inner one."""
    rows = []
    for place, texts in enumerate(SUBJECTS):
        rows += remember(core, texts, "acme", [near(place, 0.95, 10 + n) for n in range(len(texts))])
    inner, _ = remember(core, ["a secret of alpha", "another secret of alpha"], "acme/alpha", [near(0)] * 2)
    search_together(core, rows[0], rows[3], times=2)
    search_together(core, rows[0], inner)
    make_graph(core)
    return core


def labels(page: Any) -> list[str]:
    return [node.label or node.about for node in page]


def show(core: Core, node: Node, namespace: str = "") -> Any:
    return ask(core, GraphNodes(node=node.id, namespace=namespace))


def test_nodes_are_listed_by_size_with_their_terms_or_what_they_are_about(filled: Core) -> None:
    page = ask(filled, GraphNodes(namespace="acme"))
    assert [node.size for node in page] == [3, 3, 1]
    assert page.total == 3
    assert set(labels(page)[0].split(", ")) >= {"billing", "deploy"}
    assert "pond" in labels(page)[1]
    assert (page.nodes[2].label, page.nodes[2].about) == ("", "the piano needs tuning this spring")
    assert len(ask(filled, GraphNodes(limit=2, offset=3)).nodes) == 1


def test_nodes_are_found_by_words_of_their_memories_and_labels(filled: Core) -> None:
    def found(query: str) -> list[str]:
        return labels(ask(filled, GraphNodes(query=query, namespace="acme")))

    assert found("frogs") == found("herons")
    assert len(found("monday billing")) == 1
    assert found("billing pond") == []
    assert found("%") == found('"') == found("unheard-of") == []


def test_a_caller_sees_the_nodes_within_reach_only(filled: Core) -> None:
    assert ask(filled, GraphNodes(namespace="acme")).total == 3
    assert ask(filled, GraphNodes(namespace="acme/alpha")).total == 4
    assert ask(filled, GraphNodes(namespace="acme/alpha", reach="exact")).total == 1
    assert ask(filled, GraphNodes(namespace="acme/beta", reach="exact")).total == 0
    [secret] = ask(filled, GraphNodes(namespace="acme/alpha", reach="exact"))
    with pytest.raises(NotFound, match=f"No node has an id that begins with {secret.id}"):
        show(filled, secret, "acme")
    assert show(filled, secret, "acme/alpha").nodes == [secret]


def test_a_node_shows_its_members_the_most_central_first_and_the_nodes_beside_it(filled: Core) -> None:
    first, second = ask(filled, GraphNodes(namespace="acme")).nodes[:2]
    shown = show(filled, first)
    similarities = [member.similarity for member in shown.members]
    assert len(similarities) == 3
    assert similarities == sorted(similarities, reverse=True)
    assert {member.preview for member in shown.members} == set(SUBJECTS[0])
    assert ask(filled, GraphNodes(node=first.id[:8])) == shown
    assert [(n.relation, n.weight) for n in shown.neighbours] == [("co_occurs", 2.0), ("co_occurs", 1.0)]
    within = show(filled, first, "acme").neighbours
    assert [(n.node, n.label) for n in within] == [(second.id, second.label)]


def test_a_node_shows_what_is_similar_and_the_concept_over_it(core: Core) -> None:
    texts = [f"the river floods field {number}" for number in range(3)]
    rows = remember(core, texts, given=[near(0, 0.8, turn) for turn in (1, 2, 3)])  # cosine 0.64: not of one node
    core.embedding.refresh(rows)
    make_graph(core)
    concept, first, *_ = ask(core, GraphNodes())
    assert (concept.kind, concept.size) == ("concept", 3)
    assert [n.relation for n in show(core, concept).neighbours] == ["abstracted_from"] * 3
    beside = show(core, first).neighbours
    assert [n.relation for n in beside] == ["abstraction", "similar", "similar"]
    assert [n.weight for n in beside[1:]] == pytest.approx([0.64, 0.64], abs=1e-3)


def test_topics_are_listed_with_their_nodes(core: Core) -> None:
    rows = remember(core, [f"note {number}" for number in range(9)], given=[near(number) for number in range(9)])
    for group in (rows[:4], rows[4:8]):
        search_together(core, *group)
    make_graph(core)
    found = ask(core, GraphTopics())
    assert [(topic.nodes, topic.memories, topic.label) for topic in found] == [(4, 4, "note")] * 2
    assert found.alone == 1
    first = ask(core, GraphNodes(topic=found.topics[0].id[:8]))
    assert {node.topic for node in first} == {found.topics[0].id}
    assert found.topics[0].about in {node.about for node in first}


def test_what_left_its_node_since_is_not_shown(filled: Core) -> None:
    first, *_ = ask(filled, GraphNodes(namespace="acme"))
    [(middle, one)] = query(
        filled, "SELECT min(m.id), max(m.id) FROM memories m JOIN members ON memory = row WHERE node ="
        " (SELECT id FROM nodes WHERE name = ?)", first.id
    )  # fmt: skip
    move = "UPDATE memories SET namespace = (SELECT id FROM namespaces WHERE name = 'acme/alpha') WHERE id = ?"
    filled.store.write(lambda t: t.connection.execute(move, (one,))).result(LIMIT_S)
    delete(filled, middle)
    shown = show(filled, first)
    assert len(shown.members) == 1
    assert not {middle, one} & {member.id for member in shown.members}
    assert shown.nodes[0].about == ("" if first.id in (middle, one) else first.about)
