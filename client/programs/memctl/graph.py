"""graph nodes, topics, rebuild: the topic graph of L2 on the terminal."""

import re
from argparse import ArgumentParser, Namespace

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.output import paint
from memoryd.client.programs.memctl.text_table import count_text, format_fields, format_table, to_one_line
from memoryd.client.protocol import topics as calls
from memoryd.client.times import iso

RELATIONS = {
    "co_occurs": "returned together (searches)",
    "similar": "similar (cosine)",
    "abstracted_from": "concept of",
    "abstraction": "concept over it",
}
_ID = re.compile("(concept-)?[0-9a-f]{8,32}")
_EMPTY = "No nodes: none matches, or the graph was not made yet (each night, and by `memctl graph rebuild`)."


# nodes ---------------------------------------------------------------------------------------------------------------


def _declare_nodes(parser: ArgumentParser) -> None:
    about = "the id of a node: show its memories and neighbours; or words that the label or a memory must have"
    parser.add_argument("query", nargs="*", metavar="ID | WORD", help=about)
    parser.add_argument("--topic", metavar="ID", help="only nodes of this topic")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="how many (default: 20)")
    add_reach(parser)


def _list_nodes(args: Namespace) -> None:
    query = " ".join(args.query)
    if _ID.fullmatch(query):
        show_result(args, methods.graph_nodes(node=query), _detail_text)
    else:
        show_result(
            args, methods.graph_nodes(query, args.topic, limit=args.limit), _nodes_text, lambda page: page.nodes
        )


def _nodes_text(page: calls.NodePage) -> str:
    if not page.nodes:
        return _EMPTY
    spaces = any(node.namespace for node in page.nodes)
    headers = ["NODE", "SIZE", "TOPIC", *(["NAMESPACE"] if spaces else []), "ABOUT"]
    rows = [
        [
            _shorten_id(node.id),
            count_text(node.size, "node") if node.kind == "concept" else f"{node.size}",
            _shorten_id(node.topic) if node.topic else "–",
            *([node.namespace] if spaces else []),
            _name(node),
        ]
        for node in page.nodes
    ]
    shown = f"{len(page.nodes)} of {count_text(page.total, 'node')}"
    return f"{format_table(headers, rows, right=(1,))}\n{paint(shown, 'dim')}"


def _name(one: calls.Node | calls.Neighbour | calls.Topic) -> str:
    """Return the label of a node or topic, else the beginning of the memory in its middle in quotation marks."""
    return to_one_line(one.label) or f'"{to_one_line(one.about)}"'


def _shorten_id(id: str) -> str:
    concept, _, digits = id.rpartition("-")
    return f"{concept}-{digits[:8]}" if concept else digits[:8]


def _detail_text(page: calls.NodePage) -> str:
    [node] = page.nodes
    about = [
        ("node", f"{node.id}, {node.kind}"),
        ("label", to_one_line(node.label) or "none"),
        ("named by", node.named_by if node.label else ""),
        ("about", to_one_line(node.about)),
        ("namespace", node.namespace or "/"),
        ("topic", node.topic or "none"),
        ("size", count_text(node.size, "memory" if node.kind == "cluster" else "node")),
    ]
    parts = [format_fields([(name, value) for name, value in about if value], indent="")]
    if page.members:
        rows = [[m.id[:8], iso(m.created_at) or "", _format_cosine(m.similarity), m.preview] for m in page.members]
        parts.append(format_table(["ID", "CREATED", "COSINE", "CONTENT"], rows, right=(2,)))
    if page.neighbours:
        parts.append(_neighbours_text(page.neighbours))
    return "\n\n".join(parts)


def _neighbours_text(neighbours: list[calls.Neighbour]) -> str:
    rows = []
    for relation, words in RELATIONS.items():
        mine = [neighbour for neighbour in neighbours if neighbour.relation == relation]
        rows += [[words, f"{n.weight:g}", _shorten_id(n.node), _name(n)] for n in mine]
    return format_table(["RELATION", "WEIGHT", "NODE", "ABOUT"], rows, right=(1,))


def _format_cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


# topics --------------------------------------------------------------------------------------------------------------


def _list_topics(args: Namespace) -> None:
    show_result(args, methods.graph_topics(), _topics_text, lambda found: found.topics)


def _topics_text(found: calls.TopicList) -> str:
    if not found.topics:
        return "No topics." + (f" {count_text(found.alone, 'node')} without one." if found.alone else "")
    spaces = any(topic.namespace for topic in found.topics)
    headers = ["TOPIC", "NODES", "MEMORIES", *(["NAMESPACE"] if spaces else []), "ABOUT"]
    rows = [
        [_shorten_id(t.id), f"{t.nodes}", f"{t.memories}", *([t.namespace] if spaces else []), _name(t)]
        for t in found.topics
    ]
    alone = f"; {count_text(found.alone, 'node')} in none" if found.alone else ""
    shown = f"{count_text(len(found.topics), 'topic')}{alone}"
    return f"{format_table(headers, rows, right=(1, 2))}\n{paint(shown, 'dim')}"


# rebuild -------------------------------------------------------------------------------------------------------------


def _declare_rebuild(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would change and change nothing")
    add_reach(parser)


def _rebuild(args: Namespace) -> None:
    show_result(args, methods.graph_rebuild(dry_run=args.dry_run), _rebuilt_text)


def _rebuilt_text(made: calls.Rebuilt) -> str:
    topics = [] if made.topics is None else [count_text(made.topics, "topic")]
    concepts = f"{made.concepts:,} of them concepts"
    has = ", ".join([count_text(made.nodes, "node"), concepts, *topics])
    verb = "would have" if made.dry_run else "has"
    return f"The graph {verb} {has}: {made.added:,} added, {made.changed:,} changed, {made.removed:,} removed."


COMMANDS = {
    "graph nodes": Command(
        _declare_nodes,
        _list_nodes,
        "  memctl graph nodes --limit 50\n"
        "  memctl graph nodes deploy friday\n"
        "  memctl graph nodes 3f2a91bc\n"
        "  memctl graph nodes --topic 3f2a91bc --namespace acme",
    ),
    "graph topics": Command(add_reach, _list_topics, "  memctl graph topics\n  memctl graph topics --reach all"),
    "graph rebuild": Command(
        _declare_rebuild, _rebuild, "  memctl graph rebuild --dry-run\n  memctl graph rebuild --namespace acme"
    ),
}
