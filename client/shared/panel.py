"""What sharing with other machines brings to the view Health of the page."""

import asyncio
from typing import Any

from memoryd.client.memctl.table import count_text
from memoryd.client.protocol import SharedRoot
from memoryd.client.shared.calls import GetSharing, ListConflicts, SharedConflict
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.web.reports import parts


async def read_panel(client: AsyncClient) -> parts.Part:
    """Return the panel of all roots and their conflicts, None where nothing is shared."""
    sharing, conflicts = await asyncio.gather(client.call(GetSharing()), client.call(ListConflicts()))
    if not sharing.roots:
        return None
    roots = parts.list_items(map(_show_root, sharing))
    return parts.panel("Shared with other machines", roots, *map(_show_conflict, conflicts))


def _show_root(root: SharedRoot) -> parts.Part:
    held = f"{count_text(root.memories, 'memory')}, {root.waiting:,} wait, {root.conflicts:,} in conflict"
    name = ["b", parts.place(root.root)]
    return ["span", name, " ", parts.state(root.state, "ready"), " ", root.error, ["br"], ["span.dim", held]]


def _show_conflict(conflict: SharedConflict) -> parts.Part:
    """Return two versions of a memory, the first to reach the server and the other one, and what can be kept."""
    first, other = conflict.memory, conflict.other
    who = f"{conflict.author or 'this machine'}{conflict.machine and f' on {conflict.machine}'}"
    kept: dict[str, dict[str, Any]] = {"Keep the first": {"id": first.id}, "Keep the second": {"id": other.id}}
    choices = {**kept, "Keep both": {"id": first.id, "both": True}}
    acts = (parts.act(text, "Resolved the conflict", "resolve_conflict", fields) for text, fields in choices.items())
    versions = parts.link(first.id, first.content), ["br"], f"and, by {who}, ", parts.link(other.id, other.content)
    return ["div.hit", parts.badge("conflict", "warn"), " ", *versions, ["div.acts", *acts]]
