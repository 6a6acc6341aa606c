"""What topics bring to the page of `memctl web`: a node, and the map of all nodes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.memctl.table import count_text
from memoryd.client.topics import graph_data
from memoryd.client.topics.calls import GraphNode, NodeMember
from memoryd.client.topics.graph_layout import lay_out
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.web.reports import parts

MAX_NODES = 10_000  # above that a map says nothing: topics are listed
_PREVIEW = 80  # characters of a memory
_NEIGHBOURS = 30


async def read_map(client: AsyncClient, query: Mapping[str, str]) -> Any:
    """Return the largest nodes with their places on a plane, the edges, the topics."""
    reading = graph_data.read(_PREVIEW, MAX_NODES)
    reply: Any = None
    while True:
        try:
            call = reading.send(reply)
        except StopIteration as end:
            return await asyncio.to_thread(lay_out, end.value)
        reply = await client.call(msgspec.structs.replace(call, reach="all"))


async def read_node(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return a node of the graph: the memories in it, and what is beside it."""
    id = query.get("id", "")
    if not id.isdecimal():
        raise Invalid(f"{id!r} is not the number of a node.")
    found = await client.call(GraphNode(node=int(id), reach="all"))
    node, beside = found.node, found.neighbours[:_NEIGHBOURS]
    where = parts.place(node.namespace), found.topic and f"topic: {found.topic}", f"named by {node.named_by}"
    lines = (parts.line(one.relation.replace("_", " "), f"{one.weight:.2f}", one.label) for one in beside)
    return [
        "div",
        ["h2", node.label],
        parts.line(f"node {node.id}", *where),
        parts.section(count_text(len(found.members), "memory"), parts.list_items(map(_show_member, found.members))),
        parts.section("Beside it", parts.list_items(lines)) if beside else None,
    ]


def _show_member(one: NodeMember) -> parts.Part:
    score = "" if one.similarity is None else f"{one.similarity:.2f}"
    return ["p.hit", ["span.score", score], parts.link(one.id, one.preview)]


REPORTS = {"map": read_map, "node": read_node}
