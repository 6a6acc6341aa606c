"""graph export: the graph within reach as GraphML, or as one HTML page that needs no network."""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.arguments import accept_whole, add_reach
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.output import print_note, say_bytes, say_json
from memoryd.client.programs.memctl.table import count_text
from memoryd.client.programs.topics.graph_data import ExportedGraph, all_edges, fetch
from memoryd.client.programs.topics.graph_layout import lay_out

SHOWN_NODES = 5000  # in a page, unless --limit says otherwise
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=list(FORMATS), default="html", help="html: one page to look at; graphml: for tools"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    parser.add_argument(
        "--limit", type=accept_whole(1), metavar="N", help=f"only the N largest nodes (default of html: {SHOWN_NODES})"
    )
    parser.add_argument(
        "--preview",
        type=accept_whole(0, 200),
        default=160,
        metavar="N",
        help="characters of each memory (default: 160)",
    )
    add_reach(parser)


def _export(args: Namespace) -> None:
    limit = args.limit if args.limit is not None else SHOWN_NODES if args.format == "html" else None
    graph = fetch(args, limit)
    if args.json:
        return say_json({"nodes": graph.nodes, "edges": graph.edges, "topics": graph.topics, "total": graph.total})
    text = "".join(FORMATS[args.format](graph))
    if args.output in (None, "-"):
        return say_bytes(text.encode())
    write_private(Path(args.output), text)
    shown = "" if len(graph.nodes) == graph.total else f" of {graph.total:,}, the largest"
    nodes, edges = count_text(len(graph.nodes), "node"), count_text(len(graph.edges), "edge")
    return print_note(f"{args.output}: {nodes}{shown}, {edges}.")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, as it holds memories; replace one that is there."""
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)  # else somebody else's file or link of that name would be written
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except OSError as error:
        raise MemorydError(f"{path} cannot be written: {error.strerror}.") from None


# GraphML -------------------------------------------------------------------------------------------------------------

_KEYS = (
    ("label", "node", "string"),
    ("kind", "node", "string"),
    ("size", "node", "int"),
    ("namespace", "node", "string"),
    ("topic", "node", "int"),
    ("topic_label", "node", "string"),
    ("relation", "edge", "string"),
    ("weight", "edge", "double"),
)


def format_graphml(graph: ExportedGraph) -> Iterator[str]:
    """Yield GraphML; `co_occurs` and `similar` have no direction, whatever way they are written."""
    labels = {topic.id: topic.label for topic in graph.topics}
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, on, kind in _KEYS:
        yield f'  <key id="{name}" for="{on}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '  <graph id="memoryd" edgedefault="directed">\n'
    for item in graph.nodes:
        node = item.node
        data: dict[str, Any] = {
            "label": node.label,
            "kind": node.kind,
            "size": node.size,
            "namespace": node.namespace,
            "topic": node.topic or 0,
            "topic_label": labels.get(node.topic or 0, ""),
        }
        yield f'    <node id="n{node.id}">{_format_data(data)}</node>\n'
    for place, (origin, target, relation, weight) in enumerate(all_edges(graph)):
        data = {"relation": relation, "weight": f"{weight:.6g}"}
        yield f'    <edge id="e{place}" source="n{origin}" target="n{target}">{_format_data(data)}</edge>\n'
    yield "  </graph>\n</graphml>\n"


def _format_data(values: dict[str, Any]) -> str:
    return "".join(
        f"<data key={quoteattr(key)}>{escape(_NOT_XML.sub(' ', str(value)))}</data>" for key, value in values.items()
    )


# HTML ----------------------------------------------------------------------------------------------------------------


def format_html(graph: ExportedGraph) -> Iterator[str]:
    """Yield the page: the template with the graph and its layout as JSON in it."""
    here = Path(__file__)
    # The page of `memctl web` draws the same map, as a module.
    drawing = here.with_name("static").joinpath("map.js").read_text(encoding="utf-8")
    page = here.with_name("graph.html").read_text(encoding="utf-8")
    before, after = page.replace("/*MAP*/", drawing.replace("export function", "function")).split("/*DATA*/null")
    yield before
    # `</script` would end the script, `<!--<script` have it never end; in JSON `<` is within a text alone.
    yield msgspec.json.encode(lay_out(graph)).decode().replace("<", "\\u003c")
    yield after


FORMATS = {"graphml": format_graphml, "html": format_html}

COMMANDS = {
    "graph export": Command(
        _declare,
        _export,
        "  memctl graph export -o graph.html\n  memctl graph export --format graphml -o graph.graphml",
    )
}
