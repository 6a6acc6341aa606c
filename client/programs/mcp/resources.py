"""Resources, which a host can attach without a tool call: a summary of the project, or one memory."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from memoryd.client import calls
from memoryd.client.errors import Invalid
from memoryd.client.programs.mcp import schemas
from memoryd.client.programs.mcp.answers import ToolResult, fit_answer, frame_lines, memory_line, show_memories
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.mcp.tools import TOOLS

SCHEME = "memory"
BUDGET = 1500  # tokens
_CONSIDERED = 60
_TIERS = ("L1", "L2")  # without the files of workspaces, which a host reads itself


class Shelf(NamedTuple):
    """A kind of resource: its description for hosts, and the function that reads it, whose argument is `part`."""

    title: str
    description: str
    read: Callable[[ProjectSession, str], Awaitable[str]]
    part: str = ""  # the variable at the end of a template's address; empty for a single resource


async def _read_summary(session: ProjectSession, _: str) -> str:
    listed = await session.call(calls.list_(limit=_CONSIDERED, sort="importance", tier=_TIERS))
    best = sorted(listed.memories, key=lambda memory: (not memory.pinned, -memory.importance, -memory.created_at))
    shown = show_memories(best, BUDGET, session.namespace)

    def make_answer(items: Sequence[schemas.FoundMemory]) -> ToolResult:
        return ToolResult(frame_lines(_group_lines(items)) if items else "Nothing is remembered here.\n")

    return fit_answer(shown, BUDGET, make_answer).text


def _group_lines(items: Sequence[schemas.FoundMemory]) -> list[str]:
    kinds = dict.fromkeys(item.kind for item in items)
    return [row for kind in kinds for row in (f"{kind}:", *(memory_line(item) for item in items if item.kind == kind))]


async def _read_memory(session: ProjectSession, id: str) -> str:
    return (await TOOLS["memory_get"].run(session, schemas.parse_arguments(schemas.GetMany, {"ids": [id]}))).text


SHELVES = {
    "summary": Shelf(
        "What is remembered here",
        "The most important memories of this project, by kind, like a MEMORY.md.",
        _read_summary,
    ),
    "memory/": Shelf("One memory", "A memory in full, by its id or its first digits.", _read_memory, "{id}"),
}


def uri(name: str) -> str:
    """Return the address of a kind of resource, or its template."""
    return f"{SCHEME}://{name}{SHELVES[name].part}"


async def read(session: ProjectSession, address: str) -> str:
    """Return the text at an address; raise `Invalid` if the address is unknown."""
    parts = urlsplit(address)
    rest = unquote(parts.path.removeprefix("/"))
    shelf = SHELVES.get(f"{parts.netloc}/" if rest else parts.netloc)
    if parts.scheme != SCHEME or shelf is None or bool(rest) != bool(shelf.part):
        raise Invalid(f"There is no resource {address[:200]}; there are {', '.join(map(uri, SHELVES))}.")
    return await shelf.read(session, rest)
