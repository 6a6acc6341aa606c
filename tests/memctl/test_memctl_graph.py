"""memctl graph: what it prints, and what its exports are: well-formed, complete, alike each time, open in a browser."""

import json
import math
import re
import shutil
import stat
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl

from each import each
from memoryd.client import protocol
from memoryd.client.errors import NotFound
from memoryd.client.programs.topics.graph_data import ExportedGraph
from memoryd.client.programs.topics.graph_export import format_graphml, format_html
from memoryd.client.programs.topics.graph_layout import lay_out

NASTY = 'say "hi" & <b>bold</b> </script> back\\slash \x00 \u2028 naïve 猫'
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")


def node(id: int, label: str = "deploy, friday", **fields: Any) -> protocol.Node:
    given = {"namespace": "acme", "kind": "cluster", "size": 3, "created_at": 1774967400.0, "updated_at": 1774967400.0}
    return protocol.Node(id=id, label=label, **{**given, **fields})


TOPICS = [protocol.Topic(id=4, namespace="acme", label=NASTY, nodes=2, memories=5)]
NODES = [
    protocol.ExportedNode(
        node=node(1, NASTY, topic=4), members=["We deploy on Friday", NASTY], similar=[(2, 0.61), (9, 0.5)]
    ),
    protocol.ExportedNode(node=node(2, "herons", topic=4, size=2), members=["Herons eat fish"], similar=[(1, 0.61)]),
    protocol.ExportedNode(node=node(3, "piano", size=1), members=["The piano needs tuning"]),
    protocol.ExportedNode(node=node(8, "both", kind="concept", size=2)),
]
EDGES = [
    protocol.Edge(origin=1, target=2, kind="co_occurs", weight=7.0),
    protocol.Edge(origin=8, target=1, kind="abstracted_from", weight=1.0),
    protocol.Edge(origin=8, target=2, kind="abstracted_from", weight=1.0),
    protocol.Edge(origin=2, target=1, kind="derived_from", weight=2.0),
]
GRAPH = ExportedGraph(NODES, EDGES, TOPICS, 4)


# What is printed -----------------------------------------------------------------------------------------------------


def test_nodes_are_a_table_that_says_what_waits(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphNodes] = protocol.NodePage(nodes=[node(12, topic=3)], total=40, waiting=2)
    done = memctl("graph", "nodes", "friday", "deploy", "--topic", "3", "--limit", "1", "--namespace", "acme")
    assert "12  cluster     3      3" in done.out
    assert "deploy, friday" in done.out
    assert "1 of 40 nodes. 2 memories of L2 not yet in a node" in done.out
    assert fake.calls[-1] == protocol.GraphNodes(
        query="friday deploy", topic=3, limit=1, namespace="acme", reach="visible"
    )
    assert memctl("graph", "nodes", "--json").json[0]["updated_at"] == "2026-03-31T14:30:00Z"


def test_graph_alone_lists_nodes_and_an_empty_graph_says_so(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphNodes] = protocol.NodePage(nodes=[], total=0)
    assert memctl("graph").out == "No nodes: none matches, or no memory is in L2 yet.\n"


def test_edges_are_shown_with_the_labels_of_both_ends(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphEdges] = protocol.EdgePage(
        edges=EDGES[:1], total=1, labels=[(1, "deploy"), (2, "herons")]
    )
    out = memctl("graph", "edges", "--kind", "co_occurs").out
    assert re.search(r"co_occurs +7 +1 deploy +2 herons", out)
    fake.replies[protocol.GraphEdges] = protocol.EdgePage(edges=[], total=0)
    assert memctl("graph", "edges").out == "No edges.\n"


def test_a_node_is_shown_with_members_and_neighbours(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphNode] = protocol.NodeDetail(
        node=node(1, topic=4),
        topic="releases",
        members=[
            protocol.NodeMember(id="ab" * 16, preview="We deploy on Friday", created_at=1774967400.0, similarity=0.91)
        ],
        neighbours=[
            protocol.Neighbour(node=2, label="herons", relation="similar", weight=0.61),
            protocol.Neighbour(node=3, label="piano", relation="co_occurs", weight=4.0),
        ],
    )
    out = memctl("graph", "show", "1").out
    assert "4 releases" in out
    assert re.search(r"abababab +2026-03-31T14:30:00Z +0.91 +We deploy on Friday", out)
    assert out.index("retrieved together") < out.index("similar (cosine)")
    fake.replies[protocol.GraphNode] = NotFound("There is no node 9.")
    assert memctl("graph", "show", "node 9").err == "memctl: There is no node 9.\n"
    assert memctl("graph", "show", "abc").code == 2


def test_topics_are_listed_and_found_anew(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphTopics] = protocol.TopicList(topics=TOPICS, alone=3)
    step = protocol.PlannedStep(action="topic", target="topic 4", reason="2 nodes: deploy")
    fake.replies[protocol.GraphRegroup] = protocol.GraphChange(
        dry_run=True, counts={"topics": 1}, total=1, steps=[step]
    )
    assert "1 topic; 3 nodes in none" in memctl("graph", "topics").out
    assert "Would do: topics 1" in memctl("graph", "topics", "--recompute", "--dry-run").out
    assert [type(call) for call in fake.calls] == [protocol.GraphTopics, protocol.GraphRegroup]
    memctl("graph", "topics", "--recompute")
    assert [type(call) for call in fake.calls[2:]] == [protocol.GraphRegroup, protocol.GraphTopics]
    assert memctl("graph", "topics", "--dry-run").code == 2


@pytest.mark.parametrize(("command", "call"), [("dedupe", protocol.GraphDedupe), ("abstract", protocol.GraphAbstract)])
def test_changes_are_told_step_by_step(memctl: Memctl, fake: FakeDaemon, command: str, call: Any) -> None:
    steps = [protocol.PlannedStep(action="merge", target=f"node {n}", reason="cosine 0.95") for n in range(60)]
    fake.replies[call] = protocol.GraphChange(dry_run=False, counts={"merged": 1200}, total=1200, steps=steps)
    out = memctl("graph", command, "--threshold", "0.9").out
    assert "node 39" in out
    assert "… and 1,160 more steps" in out
    assert out.endswith("Done: merged 1,200\n")
    assert fake.calls[-1] == call(threshold=0.9, reach="all")
    fake.replies[call] = protocol.GraphChange(dry_run=False)
    assert memctl("graph", command).code == 0


def test_an_export_asks_part_by_part_and_keeps_the_largest(memctl: Memctl, fake: FakeDaemon, folder: Path) -> None:
    parts = iter(
        [
            protocol.GraphPart(nodes=NODES[:2], edges=EDGES[:1], next=2),
            protocol.GraphPart(nodes=NODES[2:], edges=EDGES[1:]),
        ]
    )
    fake.replies[protocol.GraphTopics] = protocol.TopicList(topics=TOPICS)
    fake.replies[protocol.GraphExport] = lambda: next(parts)
    (folder / "g.html.part").symlink_to(folder / "elsewhere")  # what another user put there
    done = memctl("graph", "export", "-o", str(folder / "g.html"), "--limit", "2")
    assert done.err == f"{folder / 'g.html'}: 2 nodes of 4, the largest, 2 edges.\n"
    assert stat.S_IMODE((folder / "g.html").stat().st_mode) == 0o600
    assert not (folder / "elsewhere").exists()
    assert [call.after for call in fake.calls if isinstance(call, protocol.GraphExport)] == [0, 2]


def test_an_export_to_standard_output_is_the_document_alone(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GraphTopics] = protocol.TopicList(topics=TOPICS)
    fake.replies[protocol.GraphExport] = protocol.GraphPart(nodes=NODES, edges=EDGES)
    for form, begin in (("graphml", "<?xml"), ("html", "<!doctype html>")):
        done = memctl("graph", "export", "--format", form)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(begin)
    assert len(memctl("graph", "export", "--json").json["nodes"]) == 4
    assert memctl("graph", "export", "-o", "/nowhere/at/all.html").code == 1


# GraphML -------------------------------------------------------------------------------------------------------------


def test_graphml_is_read_by_networkx_with_every_node_and_edge(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    path = tmp_path / "graph.graphml"
    path.write_text("".join(format_graphml(GRAPH)), encoding="utf-8")
    read = networkx.read_graphml(path, force_multigraph=True)
    assert set(read.nodes) == {"n1", "n2", "n3", "n8"}
    assert read.nodes["n1"]["label"] == NASTY.replace("\x00", " ")
    assert (read.nodes["n1"]["topic"], read.nodes["n3"]["topic"], read.nodes["n2"]["size"]) == (4, 0, 2)
    relations = sorted((a, b, data["relation"], data["weight"]) for a, b, data in read.edges(data=True))
    assert relations == [
        ("n1", "n2", "co_occurs", 7.0),
        ("n1", "n2", "similar", 0.61),
        ("n2", "n1", "derived_from", 2.0),
        ("n8", "n1", "abstracted_from", 1.0),
        ("n8", "n2", "abstracted_from", 1.0),
    ]


@each("graph", [ExportedGraph([], [], [], 0), ExportedGraph(NODES[:1], [], [], 1), GRAPH])
def test_graphml_is_well_formed_whatever_the_size(graph: ExportedGraph) -> None:
    root = ElementTree.fromstring("".join(format_graphml(graph)))
    assert len(root.findall(".//{*}node")) == len(graph.nodes)


# The page ------------------------------------------------------------------------------------------------------------


def test_the_same_graph_gives_the_same_picture_in_which_no_node_covers_another() -> None:
    many = [protocol.ExportedNode(node=node(n, size=1 + n % 20, topic=1 + n % 7)) for n in range(1, 300)]
    topics = [protocol.Topic(id=n, namespace="", label=f"t{n}", nodes=40, memories=90) for n in range(1, 8)]
    picture = lay_out(ExportedGraph(many, [], topics, 299))
    assert picture == lay_out(ExportedGraph(many, [], topics, 299))
    nodes = picture["nodes"]
    covered = [
        (a["id"], b["id"])
        for a in nodes
        for b in nodes
        if a["id"] < b["id"] and math.dist((a["x"], a["y"]), (b["x"], b["y"])) < max(a["r"], b["r"])
    ]
    assert covered == []
    discs = [(disc["x"], disc["y"], disc["r"]) for disc in picture["topics"]]
    assert all(math.dist(a[:2], b[:2]) >= a[2] + b[2] for a in discs for b in discs if a != b)


@each("graph", [ExportedGraph([], [], [], 0), ExportedGraph(NODES[2:3], [], [], 1), GRAPH])
def test_the_page_holds_the_graph_and_nothing_from_elsewhere(graph: ExportedGraph) -> None:
    page = "".join(format_html(graph))
    data = re.search(r"const graph = (.*);\n", page)
    assert data
    assert [item["id"] for item in json.loads(data[1])["nodes"]] == [item.node.id for item in graph.nodes]
    assert page.count("</script>") == 1
    assert "<" not in data[1]  # `<!--<script` in a text would have the script never end
    assert not re.search(r"https?://|\bsrc=|@import|\burl\(", page.replace(data[0], ""))


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
def test_a_browser_opens_the_page_draws_it_and_searches_in_it(tmp_path: Path) -> None:
    path = tmp_path / "graph.html"
    path.write_text("".join(format_html(GRAPH)), encoding="utf-8")
    page = _dumped(f"file://{path}#q=fish&node=1&theme=dark", tmp_path)
    assert 'data-ready="yes"' in page
    assert 'data-drawn="4"' in page
    assert 'data-theme="dark"' in page
    assert "<h2>1 found</h2>" in page
    assert 'say "hi" &amp; &lt;b&gt;bold&lt;/b&gt;' in page  # shown as text, not as markup
    assert "We deploy on Friday" in page
    legend = _dumped(f"file://{path}", tmp_path)
    assert "Topics, memories in them" in legend
    assert "<em>5</em>" in legend


def _dumped(address: str, folder: Path) -> str:
    """Return the page as a browser has it after it ran."""
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run([*command, "--timeout=4000", "--dump-dom", address], capture_output=True, timeout=90)
    return done.stdout.decode()
