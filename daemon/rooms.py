"""Rooms: the features of the daemon beside storing and finding memories, each in its own folder.

The module `room.py` of a room defines one value, `ROOM`, with all that the room adds to the kernel. The kernel is all
other packages of the daemon. It imports no room, but calls `list_rooms()`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

_ROOMS = (
    "privacy",
    "context",
    "erasing",
    "conversations",
    "unasked",
    "topics",
    "workspaces",
    "dreams",
    "backfill",
    "upkeep",
    "shared",
)


class Idle(Protocol):
    """Work of a room that the extraction worker does on its thread, in small steps, while no conversation waits."""

    def step(self) -> bool:
        """Do one step; return whether there was anything to do."""

    def wait_s(self) -> float | None:
        """Return the seconds until there may be something to do; None: until the worker is woken."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """The parts of one room. Connections are those of the store; `core` is the daemon's core.

    Each function has a default that does nothing.
    """

    handlers: Collection[ModuleType] = ()
    """modules whose functions with `@handles` answer its calls"""
    clean: Callable[[Any, Any], tuple[Any, Mapping[str, int]]] = lambda core, call: (call, {})
    """(core, call) → the call without what may not be stored, and what was taken out of it, counted by kind"""
    tables: str = ""
    """SQL that makes its tables, indexes and triggers. What a trigger refuses is told to the caller in its words"""
    find_problems: Callable[[Any], list[str]] = lambda connection: []
    """(connection) → a line for each thing that is wrong with its tables, for `verify`"""
    clear: Callable[[Any], None] = lambda connection: None
    """(connection): start what is derived again, after a repair that found problems, and after a rescue"""
    erase: Callable[[Any, Sequence[str], Sequence[int]], None] = lambda connection, ids, rows: None
    """(connection, ids of memories and turns, rows of those that are stored): these are about to be erased"""
    show: Callable[[Any, Any, Any, str], None] = lambda connection, row, memory, reached: None
    find_around: Callable[[Any, Any, Any, int, str], list[Any]] = lambda core, connection, row, count, reached: []
    """(connection, row, `Memory` made of it, SQL condition of visible rows): add to a memory that is read by its id"""
    start: Callable[[Any], None] = lambda core: None
    """(core): begin its work in the background, before the first call is answered"""
    stop: Callable[[Any], None] = lambda core: None
    """(core): end that; calls may still be under way"""
    note_searches: Callable[[Any, Sequence[Iterable[int]]], None] = lambda connection, searches: None
    """(connection, for each search the rows of its relevant hits): searches were answered"""
    report_tiers: Callable[[Any, str], Mapping[str, int]] = lambda connection, visible: {}
    """(connection, SQL condition of visible rows) → fields of `TierReport`"""
    idle: Callable[[Any], Sequence[Idle]] = lambda core: ()
    """(core) → what the extraction worker does while no conversation waits"""
    jobs: Mapping[str, Any] = field(default_factory=dict)
    """jobs by name, each a `JobRow` of `jobs/table`"""
    stages: Mapping[str, Callable[[Any, Any], None]] = field(default_factory=dict)
    """stages of a search, each by the name of the stage that it follows"""


@cache
def list_rooms() -> tuple[Room, ...]:
    """Return all rooms. Do not call it while importing: rooms import the kernel."""
    return tuple(import_module(f"memoryd.daemon.{name}.room").ROOM for name in _ROOMS)
