"""What clients write and read under one key at once is what some order of these calls gives, one after the other."""

import random
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pytest

from memoryd.client import Client, NotFound
from memoryd.client.protocol import Delete, Get, NewMemory, Put

if TYPE_CHECKING:
    from conftest import Daemon

CLIENTS = 5


class Call(NamedTuple):
    """One call: when it was made and answered, what it wrote (None: it read) and what was there, as far as it says."""

    began: float
    ended: float
    kind: str
    value: str | None  # written, or read; None: nothing was there


def find_order(calls: Sequence[Call]) -> bool:
    """Return whether there is an order of calls that agrees with their times and with what each returned.

    The search of Wing and Gong: whatever began before all that are left have ended may be next.
    """
    seen: set[tuple[int, str | None]] = set()
    waiting: list[tuple[int, str | None]] = [(0, None)]
    everything = (1 << len(calls)) - 1
    while waiting:
        done, present = waiting.pop()
        if done == everything:
            return True
        left = [at for at in range(len(calls)) if not done >> at & 1]
        first_end = min(calls[at].ended for at in left)
        for at in left:
            call = calls[at]
            if call.began > first_end:
                continue
            after = apply(call, present)
            if after is not False and (state := (done | 1 << at, after)) not in seen:
                seen.add(state)
                waiting.append(state)
    return False


def apply(call: Call, present: str | None) -> "str | bool | None":
    """Return what is there after a call, False when it cannot have been made here."""
    if call.kind == "get":
        return present if call.value == present else False
    if call.kind == "put":
        return call.value
    if call.kind == "missed":  # a deletion of what was not there
        return None if present is None else False
    if present is None:
        return False
    return None


def work(client: Client, dice: random.Random, calls: list[Call], number: int, size: int) -> None:
    for step in range(size):
        kind = dice.choice(("put", "put", "put", "get", "get", "get", "delete", "delete"))
        value: str | None = f"value {number}.{step}"
        began = time.monotonic()
        try:
            if kind == "put":
                client.call(Put(key="one", memory=NewMemory(content=str(value))))
            elif kind == "get":
                value = client.call(Get(key="one")).content
            else:
                client.call(Delete(keys=["one"]))
        except NotFound:
            kind, value = ("get", None) if kind == "get" else ("missed", None)
        calls.append(Call(began, time.monotonic(), kind, value))


def record(daemon: "Daemon", seed: int, size: int) -> list[Call]:
    """Return the history of some clients that use one key at once."""
    with daemon.client() as client:
        if client.list(limit=1).total:
            client.call(Delete(keys=["one"]))
    histories: list[list[Call]] = [[] for _ in range(CLIENTS)]
    clients = [daemon.client() for _ in histories]
    threads = [
        threading.Thread(target=work, args=(client, random.Random(f"{seed} {number}"), histories[number], number, size))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return [call for history in histories for call in history]


def check(daemon: "Daemon", rounds: int) -> int:
    number = 0
    for seed in range(rounds):
        calls = record(daemon, seed, 12)
        assert len(calls) == CLIENTS * 12
        assert find_order(calls), calls
        number += len(calls)
        with daemon.client() as client:
            if not client.list(limit=1).total:
                client.call(Put(key="one", memory=NewMemory(content="there")))
    return number


def test_calls_at_once_have_an_order(daemon: "Daemon") -> None:
    assert check(daemon, 3) == 180


@pytest.mark.stress
@pytest.mark.timeout(1200)
def test_many_calls_at_once_have_an_order(daemon: "Daemon") -> None:
    print(f"{check(daemon, 300)} calls in 300 histories")


def test_a_history_without_an_order_is_found() -> None:
    stale = [Call(0, 1, "put", "a"), Call(2, 3, "put", "b"), Call(4, 5, "get", "a")]
    lost = [Call(0, 1, "put", "a"), Call(2, 3, "get", None)]
    at_once = [Call(0, 5, "put", "a"), Call(1, 4, "put", "b"), Call(2, 6, "get", "a"), Call(7, 8, "get", "b")]
    assert [find_order(calls) for calls in (stale, lost, at_once)] == [False, False, True]
