"""memctl graph: what it prints and asks."""

import re
from typing import Any

from fake_daemon import FakeDaemon, Memctl

from memoryd.client import protocol
from memoryd.client.errors import NotFound

ID = "3f2a91bc" * 4
NASTY = 'say "hi" \x1b[31m & \u2028 naïve 猫'


def node(id: str = ID, label: str = "deploy, friday", **fields: Any) -> protocol.Node:
    given = {"namespace": "acme", "kind": "cluster", "size": 3, "about": "We deploy on Friday"}
    return protocol.Node(id=id, label=label, **{**given, **fields})


def test_nodes_are_a_table_with_labels_or_what_they_are_about(memctl: Memctl, fake: FakeDaemon) -> None:
    concept = node(f"concept-{ID}", "", kind="concept", size=4, about=NASTY)
    fake.replies[protocol.GraphNodes] = protocol.NodePage(nodes=[node(topic=ID), concept], total=40)
    done = memctl("graph", "nodes", "friday", "deploy", "--topic", "3f2a", "--limit", "1", "--namespace", "acme")
    assert re.search(r"3f2a91bc +3 +3f2a91bc +acme +deploy, friday", done.out)
    assert re.search(r'concept-3f2a91bc +4 nodes +– +acme +"say "hi"', done.out)
    assert "\x1b[31m" not in done.out
    assert "2 of 40 nodes" in done.out
    assert fake.calls[-1] == protocol.GraphNodes(
        query="friday deploy", topic="3f2a", limit=1, namespace="acme", reach="visible"
    )
    assert memctl("graph", "nodes", "--json").json[0]["id"] == ID


def test_graph_alone_lists_nodes_and_an_empty_graph_says_so(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphNodes] = protocol.NodePage(nodes=[], total=0)
    assert "memctl graph rebuild" in memctl("graph").out


def test_a_node_is_shown_with_members_and_neighbours(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphNodes] = protocol.NodePage(
        nodes=[node(topic=ID)],
        total=1,
        members=[
            protocol.NodeMember(id="ab" * 16, preview="We deploy on Friday", created_at=1774967400.0, similarity=0.91)
        ],
        neighbours=[
            protocol.Neighbour(node="cd" * 16, label="herons", relation="similar", weight=0.61),
            protocol.Neighbour(node="ef" * 16, label="", about="the piano", relation="co_occurs", weight=4.0),
        ],
    )
    out = memctl("graph", "nodes", ID[:8]).out
    assert fake.calls[-1] == protocol.GraphNodes(node=ID[:8], reach="all")
    assert re.search(r"abababab +2026-03-31T14:30:00Z +0.91 +We deploy on Friday", out)
    assert re.search(r'returned together \(searches\) +4 +efefefef +"the piano"', out)
    assert out.index("returned together") < out.index("similar (cosine)")
    assert memctl("graph", "nodes", f"concept-{ID[:8]}").code == 0
    fake.replies[protocol.GraphNodes] = NotFound("No node has an id that begins with 00000000.")
    assert memctl("graph", "nodes", "00000000").err == "memctl: No node has an id that begins with 00000000.\n"


def test_topics_are_listed(memctl: Memctl, fake: FakeDaemon) -> None:
    topics = [protocol.Topic(id=ID, namespace="acme", label="", about=NASTY, nodes=2, memories=5)]
    fake.replies[protocol.GraphTopics] = protocol.TopicList(topics=topics, alone=3)
    out = memctl("graph", "topics").out
    assert re.search(r'3f2a91bc +2 +5 +acme +"say "hi"', out)
    assert "1 topic; 3 nodes in none" in out
    fake.replies[protocol.GraphTopics] = protocol.TopicList(topics=[], alone=3)
    assert memctl("graph", "topics").out == "No topics. 3 nodes without one.\n"


def test_a_rebuild_says_what_changed_or_would(memctl: Memctl, fake: FakeDaemon) -> None:
    made = {"nodes": 1200, "concepts": 20, "added": 5, "changed": 1, "removed": 2}
    fake.replies[protocol.GraphRebuild] = protocol.Rebuilt(dry_run=False, topics=7, **made)
    assert memctl("graph", "rebuild").out == (
        "The graph has 1,200 nodes, 20 of them concepts, 7 topics: 5 added, 1 changed, 2 removed.\n"
    )
    fake.replies[protocol.GraphRebuild] = protocol.Rebuilt(dry_run=True, **made)
    assert (
        "The graph would have 1,200 nodes, 20 of them concepts: 5 added"
        in memctl("graph", "rebuild", "--dry-run", "--namespace", "acme").out
    )
    assert fake.calls[-1] == protocol.GraphRebuild(dry_run=True, namespace="acme", reach="visible")
