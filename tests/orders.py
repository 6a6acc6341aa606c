"""Histories of many clients, and whether some order of their calls, one after the other, explains what each got.

Memories are independent of each other, so each has a search of its own: that of Wing and Gong, with a note of the
states that were tried. A call that broke off with the daemon was made before the daemon's death, or never.
"""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from memoryd.client import Client, Conflict, NotFound, Unavailable
from memoryd.client.protocol import Delete, Get, KeyedEntry, NewMemory, Put, Update

KINDS = ("write", "write", "update", "update", "get", "get", "get", "delete")


class Call(NamedTuple):
    """One call on one memory: `value` is what it wrote or read, None when nothing was there.

    `outcome` is `done`, `refused` (the memory was there already, or was not) or `broken`: nobody knows.
    """

    began: float
    ended: float
    kind: str
    value: str | None = None
    outcome: str = "done"


def find_order(calls: Sequence[Call]) -> bool:
    """Return whether an order of the calls on one memory agrees with their times and with what each returned.

    Whatever began before all that are left have ended may be next.
    """
    calls = sorted(call for call in calls if (call.kind, call.outcome) != ("get", "broken"))
    waiting: list[tuple[int, str | None]] = [(0, None)]
    seen = set(waiting)
    everything = (1 << len(calls)) - 1
    while waiting:
        done, present = waiting.pop()
        if done == everything:
            return True
        first_end = float("inf")
        first = (~done & done + 1).bit_length() - 1  # all before it are done
        for at in range(first, len(calls)):
            if calls[at].began > first_end:
                break
            if not done >> at & 1:
                first_end = min(first_end, calls[at].ended)
                new = [(done | 1 << at, after) for after in apply(calls[at], present)]
                waiting += [state for state in new if state not in seen]
                seen.update(new)
    return False


def apply(call: Call, present: str | None) -> Iterable[str | None]:
    """Return what may be there after a call: nothing at all when it cannot have been made here."""
    kind = call.kind
    if kind == "get":
        return [present] if call.value == present else []
    fits = kind == "put" or (present is None) == (kind == "add")
    if call.outcome == "refused":
        return [] if fits else [present]
    after = None if kind == "delete" else call.value
    if call.outcome == "broken":
        return {present, after} if fits else [present]
    return [after] if fits else []


class Memories:
    """What some clients do to a few memories: one has a key, the others ids."""

    def __init__(self, connect: Callable[[], Client], number: int) -> None:
        self._connect = connect
        self._names = ["key", *(f"{at:032x}" for at in range(1, number))]
        self._calls: dict[str, list[Call]] = defaultdict(list)
        self._lock = threading.Lock()

    def use(self, clients: int, size: int, seed: object) -> int:
        """Let clients make calls until each made so many or lost the daemon; return how many were answered."""
        threads = [
            threading.Thread(target=self._work, args=(random.Random(f"{seed} {number}"), size))
            for number in range(clients)
        ]
        before = self.count()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.count() - before

    def count(self, outcome: str = "") -> int:
        """Return how many calls were made, or how many with this outcome."""
        return sum(not outcome or call.outcome == outcome for calls in self._calls.values() for call in calls)

    def note_death(self) -> None:
        """Note that the daemon is dead and all clients know: what broke off was made before now, or never."""
        now = time.monotonic()
        for calls in self._calls.values():
            calls[:] = [call._replace(ended=min(call.ended, now)) for call in calls]

    def list_without_order(self) -> list[list[Call]]:
        """Return the histories that no order explains."""
        return [calls for calls in self._calls.values() if not find_order(calls)]

    def _work(self, dice: random.Random, size: int) -> None:
        with self._connect() as client:
            for _ in range(size):
                name, kind = dice.choice(self._names), dice.choice(KINDS)
                if name == "key" and kind in ("write", "update"):
                    kind = "put"
                call = _make(client, name, "add" if kind == "write" else kind, f"value {dice.getrandbits(64):x}")
                with self._lock:
                    self._calls[name].append(call)
                if call.outcome == "broken":
                    return


def _make(client: Client, name: str, kind: str, text: str) -> Call:
    value, outcome, began = None if kind == "delete" else text, "done", time.monotonic()
    try:
        if kind == "get":
            value = client.call(Get(key=name) if name == "key" else Get(id=name)).content
        elif kind == "put":
            client.call(Put(entries=[KeyedEntry(key=name, memory=NewMemory(content=text))]))
        elif kind == "add":
            client.add(text, id=name, dedup=False)
        elif kind == "update":
            assert client.call(Update(id=name, content=text)).memory.content == text
        else:
            client.call(Delete(keys=[name]) if name == "key" else Delete(ids=[name]))
    except (NotFound, Conflict):
        value, outcome = (None, "done") if kind == "get" else (value, "refused")
    except Unavailable:
        return Call(began, float("inf"), kind, value, "broken")
    return Call(began, time.monotonic(), kind, value, outcome)
