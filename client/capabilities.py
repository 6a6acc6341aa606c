"""The list of capabilities: parts of memoryd that can be taken out by deleting the folders of their name.

A capability has a folder in `daemon/`, in `client/`, or in both. To add one: its folders, and a row here.
"""

from functools import cache

from msgspec import Struct


class CapabilityEntry(Struct, frozen=True):
    """What is known of a capability that may not be there.

    What it is, the first words of its commands in memctl, the capabilities without which it is not there either, the
    names of its tables: a restore keeps those although it is not there.
    """

    about: str
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


CAPABILITIES: dict[str, CapabilityEntry] = {
    "topics": CapabilityEntry(
        "clusters of memories, edges between them, topics",
        ("graph",),
        tables=("nodes", "members", "backlog", "names", "topics", "edges"),
    ),
    "workspaces": CapabilityEntry(
        "folders of Markdown files that are indexed, watched and written into",
        ("workspace", "flush", "remember", "forget", "diff"),
        tables=("workspaces", "files", "mentions"),
    ),
    "dreams": CapabilityEntry(
        "MEMORY.md of workspaces, and memories of namespaces, put in order",
        ("dream",),
        ("workspaces",),
        ("dreams", "dreamt"),
    ),
    "web": CapabilityEntry("a page in the browser", ("web",)),
    "importing": CapabilityEntry("memories of other systems, by `memctl import --from`"),
    "backfill": CapabilityEntry("past sessions of coding agents, taken in", ("backfill",)),
    "integrations": CapabilityEntry("adapters for LangGraph, the OpenAI Agents SDK and Anthropic's memory tool"),
    "demo": CapabilityEntry("a demonstration", ("demo",)),
}


@cache
def list_modules(side: str, module: str) -> dict[str, str]:
    """Return the full name of a module by capability, for those that have it. `side` is "client" or "daemon"."""
    names = {capability: f"memoryd.{side}.{capability}.{module}" for capability in CAPABILITIES}
    return {
        capability: name
        for capability, name in names.items()
        if _exists(name) and all(_exists(f"memoryd.daemon.{needed}") for needed in CAPABILITIES[capability].needs)
    }


def list_absent() -> list[str]:
    """Return the capabilities that have been taken out."""
    return [
        name for name in CAPABILITIES if not any(_exists(f"memoryd.{side}.{name}") for side in ("daemon", "client"))
    ]


def _exists(module: str) -> bool:
    from importlib.util import find_spec  # 2 ms

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not there either
        return False
