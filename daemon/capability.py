"""Capabilities: what the daemon can do beside keeping and finding memories, each in a folder that can be taken out.

The capability `topics` is the folder `daemon/topics`; its module `capability.py` holds one value, `CAPABILITY`, which
lists all that it brings to the kernel. The kernel imports no capability: where it has room for one it asks
`installed()`. One whose folder is not there is left out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from memoryd.client.capabilities import CAPABILITIES, list_modules


class Idle(Protocol):
    """What the extraction worker does while no conversation waits: small steps, on its thread."""

    def step(self) -> bool:
        """Do one step; return whether there was anything to do."""

    def wait_s(self) -> float | None:
        """Return the seconds until there may be something to do; None: until the worker is woken."""


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What one capability brings. Connections are those of the store; `core` is the daemon's core.

    Each function has a default that does nothing.
    """

    handlers: Collection[ModuleType] = ()
    """modules whose functions with `@handles` answer its calls"""
    tables: str = ""
    """SQL that makes its tables, indexes and triggers. What a trigger refuses is told to the caller in its words"""
    at_start: Collection[str] = ()
    """those of its tables that are read when the daemon starts: damage is repaired before"""
    derived: Collection[str] = ()
    """those of its tables that can be made again from the others: a rescue does not copy them, it calls `clear`"""
    find_problems: Callable[[Any], list[str]] = lambda connection: []
    """(connection) → a line for each thing that is wrong with its tables, for `verify`"""
    clear: Callable[[Any], None] = lambda connection: None
    """(connection): start what is derived again, after a repair that found problems, and after a rescue"""
    resume: Callable[[Any], None] = lambda connection: None
    """(connection): it was taken out and is put back. What it kept may hold words of memories that were erased
    meanwhile; these go. `clear` is called next"""
    erase: Callable[[Any, Sequence[str], Sequence[int]], None] = lambda connection, ids, rows: None
    """(connection, ids of memories and turns, rows of those that are stored): these are about to be erased"""
    named: Collection[tuple[str, str, str]] = ()
    """names in its tables that people gave: what is called so, the table, the name as an SQL expression. `erase` lists
    those that hold a text, and takes the rows whose name is not in use any more out of copies of the database"""
    forget: Callable[[Any], None] = lambda core: None
    """(core): forget in RAM what was read of the tables: something was erased or repaired"""
    show: Callable[[Any, Any, Any, str], None] = lambda connection, row, memory, reached: None
    """(connection, row, `Memory` made of it, SQL condition of visible rows): add to a memory that is read by its id"""
    in_force: str = ""
    """SQL: a value for each thing in its tables that acts by itself, as watching a folder"""
    disarm: Callable[[Any, Collection[Any]], Mapping[str, Any]] = lambda connection, in_force: {}
    """(connection of a restored copy, values of `in_force` in the former database): have nothing act that did not act
    there → fields of the `Report` of the restore"""
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
def installed() -> tuple[Capability, ...]:
    """Return the capabilities whose folder is there, in the order of `CAPABILITIES`. Do not call it while importing."""
    return tuple(import_module(name).CAPABILITY for name in list_modules("daemon", "capability").values())


def installed_by_name() -> dict[str, Capability]:
    """Return the capabilities whose folder is there, by name."""
    return dict(zip(list_modules("daemon", "capability"), installed(), strict=True))


def list_absent_tables() -> dict[str, tuple[str, ...]]:
    """Return the names of the tables of each capability that has any and is not there."""
    there = list_modules("daemon", "capability")
    return {name: entry.tables for name, entry in CAPABILITIES.items() if entry.tables and name not in there}
