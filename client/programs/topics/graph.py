"""graph nodes, edges, show, topics, dedupe, abstract: the topic graph of L2 on the terminal."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import get_args

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import Usage, add_reach, parse_limit, parse_offset, parse_share
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import apply_options, client_for, show_result
from memoryd.client.programs.memctl.output import columns, paint, print_note, show
from memoryd.client.programs.memctl.table import count_text, format_fields, format_table, shorten, to_one_line
from memoryd.client.protocol import topics as calls
from memoryd.client.protocol.topics import EdgeKind, NodeKind, NodeSort
from memoryd.client.times import iso

SHOWN_STEPS = 40
RELATIONS = {
    "co_occurs": "retrieved together (times)",
    "similar": "similar (cosine)",
    "abstracted_from": "abstracts",
    "abstraction": "concept over it",
    "derived_from": "split off from (memories)",
    "derived": "split off from it (memories)",
}


# nodes ---------------------------------------------------------------------------------------------------------------


def _declare_nodes(parser: ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="WORD", help="only nodes whose label or a memory has all words")
    parser.add_argument("--topic", type=parse_number, metavar="N", help="only nodes of this topic")
    parser.add_argument("--kind", choices=get_args(NodeKind), help="clusters of memories, or concepts over clusters")
    parser.add_argument("--sort", choices=get_args(NodeSort), default="size", help="by what (default: size)")
    _add_page(parser)


def _list_nodes(args: Namespace) -> None:
    names = ("topic", "kind", "sort", "limit", "offset")
    call = methods.graph_nodes(" ".join(args.query), **{name: getattr(args, name) for name in names})
    show_result(args, call, _nodes_text, lambda page: page.nodes)


def _nodes_text(page: calls.NodePage) -> str:
    if not page.nodes:
        first = (
            "No nodes: none matches, or no memory is in L2 yet."
            if not page.total
            else f"There are no more than {page.total}."
        )
        return f"{first}{_waiting_text(page.waiting)}"
    spaces = any(node.namespace for node in page.nodes)
    named = any(node.named_by != "rules" for node in page.nodes)
    options = [*(["NAMESPACE"] if spaces else []), *(["NAMED BY"] if named else [])]
    headers = ["NODE", "KIND", "SIZE", "TOPIC", "UPDATED", *options, "LABEL"]
    rows = []
    for n in page.nodes:
        topic = "–" if n.topic is None else f"{n.topic}"
        extra = [*([n.namespace] if spaces else []), *([n.named_by] if named else [])]
        rows.append([f"{n.id}", n.kind, f"{n.size}", topic, iso(n.updated_at) or "", *extra, n.label])
    shown = f"{len(page.nodes)} of {count_text(page.total, 'node')}.{_waiting_text(page.waiting)}"
    return f"{format_table(headers, rows, right=(0, 2, 3))}\n{paint(shown, 'dim')}"


def _waiting_text(waiting: int) -> str:
    return f" {count_text(waiting, 'memory')} of L2 not yet in a node (`memctl jobs run cluster`)." if waiting else ""


# edges ---------------------------------------------------------------------------------------------------------------


def _declare_edges(parser: ArgumentParser) -> None:
    parser.add_argument("--kind", choices=get_args(EdgeKind), help="only this kind")
    parser.add_argument("--node", type=parse_number, metavar="N", help="only edges of this node")
    _add_page(parser)


def _list_edges(args: Namespace) -> None:
    call = methods.graph_edges(**{name: getattr(args, name) for name in ("kind", "node", "limit", "offset")})
    show_result(args, call, _edges_text, lambda page: page.edges)


def _edges_text(page: calls.EdgePage) -> str:
    if not page.edges:
        return "No edges." if not page.total else f"No more: there are {page.total}."
    room = max(16, (columns() - 32) // 2)
    labels = dict(page.labels)

    def format_node(node: int) -> str:
        return shorten(to_one_line(f"{node} {labels.get(node, '')}"), room)

    rows = [[edge.kind, f"{edge.weight:g}", format_node(edge.origin), format_node(edge.target)] for edge in page.edges]
    text = format_table(["KIND", "WEIGHT", "FROM", "TO"], rows, right=(1,))
    shown = f"{len(page.edges)} of {count_text(page.total, 'edge')}"
    return f"{text}\n{paint(shown, 'dim')}"


# show ----------------------------------------------------------------------------------------------------------------


def _declare_show(parser: ArgumentParser) -> None:
    parser.add_argument("node", type=parse_number, metavar="NODE", help="its number, as `memctl graph nodes` shows it")
    add_reach(parser)


def _show(args: Namespace) -> None:
    show_result(args, calls.GraphNode(node=args.node), _detail_text)


def _detail_text(detail: calls.NodeDetail) -> str:
    node = detail.node
    about = [
        ("node", f"{node.id}, {node.kind}"),
        ("label", to_one_line(node.label)),
        ("named by", node.named_by),
        ("namespace", node.namespace or "/"),
        ("topic", "none" if node.topic is None else f"{node.topic} {to_one_line(detail.topic)}"),
        ("size", count_text(node.size, "memory" if node.kind == "cluster" else "node")),
        ("updated", iso(node.updated_at) or ""),
    ]
    parts = [format_fields(about, indent="")]
    if detail.members:
        rows = [[m.id[:8], iso(m.created_at) or "", _format_cosine(m.similarity), m.preview] for m in detail.members]
        parts.append(format_table(["ID", "CREATED", "COSINE", "CONTENT"], rows, right=(2,)))
    if detail.neighbours:
        parts.append(_neighbours_text(detail.neighbours))
    return "\n\n".join(parts)


def _neighbours_text(neighbours: list[calls.Neighbour]) -> str:
    rows = []
    for relation, words in RELATIONS.items():
        mine = [neighbour for neighbour in neighbours if neighbour.relation == relation]
        for place, neighbour in enumerate(mine):
            rows.append(["" if place else words, f"{neighbour.weight:g}", f"{neighbour.node}", neighbour.label])
    return format_table(["NEIGHBOURS", "WEIGHT", "NODE", "LABEL"], rows, right=(1, 2))


def _format_cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


# topics --------------------------------------------------------------------------------------------------------------


def _declare_topics(parser: ArgumentParser) -> None:
    parser.add_argument("--recompute", action="store_true", help="find them again first")
    parser.add_argument("--dry-run", action="store_true", help="with --recompute: say what would change")
    add_reach(parser)


def _list_topics(args: Namespace) -> None:
    if args.dry_run and not args.recompute:
        raise Usage("--dry-run needs --recompute; listing changes nothing.")
    with client_for(args) as client:
        if args.recompute:
            changed = client.call(apply_options(args, methods.graph_regroup(dry_run=args.dry_run)))
            if args.dry_run:
                return show(args, changed, lambda: change_text(changed, "The topics are as they would be found."))
            print_note(change_text(changed, "The topics stay as they were.", steps=False))
        found = client.call(apply_options(args, calls.GraphTopics()))
    return show(args, found.topics, lambda: _topics_text(found))


def _topics_text(found: calls.TopicList) -> str:
    if not found.topics:
        return "No topics." + (f" {count_text(found.alone, 'node')} without one." if found.alone else "")
    spaces = any(topic.namespace for topic in found.topics)
    headers = ["TOPIC", "NODES", "MEMORIES", *(["NAMESPACE"] if spaces else []), "LABEL"]
    rows = [
        [f"{t.id}", f"{t.nodes}", f"{t.memories}", *([t.namespace] if spaces else []), t.label] for t in found.topics
    ]
    alone = f"; {count_text(found.alone, 'node')} in none" if found.alone else ""
    shown = f"{count_text(len(found.topics), 'topic')}{alone}"
    return f"{format_table(headers, rows, right=(0, 1, 2))}\n{paint(shown, 'dim')}"


# dedupe, abstract ----------------------------------------------------------------------------------------------------


def _declare_change(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--threshold", type=parse_share, metavar="X", help="how much alike, as a cosine (default: the model's own)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and change nothing")
    add_reach(parser)


def _dedupe(args: Namespace) -> None:
    call = methods.graph_dedupe(args.threshold, dry_run=args.dry_run)
    show_result(args, call, lambda changed: change_text(changed, "No two nodes are alike enough to be merged."))


def _abstract(args: Namespace) -> None:
    call = methods.graph_abstract(args.threshold, dry_run=args.dry_run)
    show_result(args, call, lambda changed: change_text(changed, "The concepts stay as they were."))


def change_text(changed: calls.GraphChange, nothing: str, *, steps: bool = True) -> str:
    """Return what was done, or would be: the steps and how many of each kind."""
    if not changed.total:
        return nothing
    lines = []
    if steps:
        shown = changed.steps[:SHOWN_STEPS]
        lines.append(format_table(["ACTION", "TARGET", "REASON"], [[s.action, s.target, s.reason] for s in shown]))
        if changed.total > len(shown):
            lines.append(paint(f"… and {changed.total - len(shown):,} more steps", "dim"))
    counts = ", ".join(f"{name} {number:,}" for name, number in changed.counts.items())
    lines.append(f"{'Would do' if changed.dry_run else 'Done'}: {counts}")
    return "\n".join(lines)


def parse_number(text: str) -> int:
    """Return a number of a node or topic; `12` and `node 12` are the same."""
    digits = text.removeprefix("node ").removeprefix("topic ")
    if not digits.isdecimal() or len(digits) > 18:
        raise ArgumentTypeError(f"{text!r} is not the number of a node or topic")
    return int(digits)


def _add_page(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="how many (default: 20)")
    parser.add_argument("--offset", type=parse_offset, default=0, metavar="N", help="leave out the first N")
    add_reach(parser)


COMMANDS = {
    "graph nodes": Command(
        _declare_nodes,
        _list_nodes,
        "  memctl graph nodes --limit 50\n"
        "  memctl graph nodes deploy friday\n"
        "  memctl graph nodes --topic 3 --namespace acme",
    ),
    "graph edges": Command(
        _declare_edges, _list_edges, "  memctl graph edges --kind co_occurs\n  memctl graph edges --node 12 --json"
    ),
    "graph show": Command(_declare_show, _show, "  memctl graph show 12"),
    "graph topics": Command(
        _declare_topics, _list_topics, "  memctl graph topics\n  memctl graph topics --recompute --dry-run"
    ),
    "graph dedupe": Command(
        _declare_change, _dedupe, "  memctl graph dedupe --dry-run\n  memctl graph dedupe --threshold 0.9"
    ),
    "graph abstract": Command(_declare_change, _abstract, "  memctl graph abstract --dry-run"),
}
