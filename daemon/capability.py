"""Capabilities: what the daemon can do beside keeping and finding memories, each in a folder that can be taken out.

The capability `topics` is the folder `daemon/topics`; its module `capability.py` holds one value, `CAPABILITY`, which
lists all that it brings to the kernel. The kernel imports no capability:
where it has room for one it asks `installed()`. One whose folder is not there is left out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

from memoryd.client.capabilities import CAPABILITIES


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
    """SQL that makes its tables, indexes and triggers"""
    derived: Collection[str] = ()
    """those of its tables that can be made again from the others: a rescue does not copy them, it calls `clear`"""
    find_problems: Callable[[Any], list[str]] = lambda connection: []
    """(connection) → a line for each thing that is wrong with its tables, for `verify`"""
    clear: Callable[[Any], None] = lambda connection: None
    """(connection): start what is derived again, after a repair that found problems, and after a rescue"""
    erase: Callable[[Any, Sequence[int]], None] = lambda connection, rows: None
    """(connection, rows of memories): erase what was derived from these, which are about to be erased"""
    forget: Callable[[Any], None] = lambda core: None
    """(core): forget in RAM what was read of the tables: something was erased or repaired"""
    note_searches: Callable[[Any, Sequence[Iterable[int]]], None] = lambda connection, searches: None
    """(connection, for each search the rows of its relevant hits): searches were answered"""
    report_tiers: Callable[[Any, str], Mapping[str, int]] = lambda connection, visible: {}
    """(connection, SQL condition of visible rows) → fields of `TierReport`"""
    idle: Callable[[Any], Sequence[Idle]] = lambda core: ()
    """(core) → what the extraction worker does while no conversation waits"""
    jobs: Mapping[str, Any] = field(default_factory=dict)
    """jobs by name, each a `Row` of `jobs/table`"""
    stages: Mapping[str, Callable[[Any, Any], None]] = field(default_factory=dict)
    """stages of a search, each by the name of the stage that it follows"""


@cache
def installed() -> tuple[Capability, ...]:
    """Return the capabilities whose folder is there, in the order of `CAPABILITIES`. Do not call it while importing."""
    return tuple(import_module(name).CAPABILITY for name in map(_module_of, CAPABILITIES) if _exists(name))


def _module_of(capability: str) -> str:
    return f"memoryd.daemon.{capability}.capability"


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not there either
        return False
