"""What clients write and read at once is what some order of these calls gives, one after the other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.protocol import Get
from memoryd.daemon import registry
from memoryd.daemon.memories import reading
from orders import Call, Memories, apply, find_order
from workbench import Daemon

CLIENTS = 6


def use(daemon: "Daemon", rounds: int, size: int) -> Memories:
    memories = Memories(daemon.client, number=4)
    for seed in range(rounds):
        assert memories.use(CLIENTS, size, seed) == CLIENTS * size
    return memories


def test_calls_at_once_have_an_order(daemon: "Daemon") -> None:
    memories = use(daemon, 1, 40)
    assert memories.list_without_order() == []
    assert memories.count("refused") > 0


@pytest.mark.stress
@pytest.mark.timeout(1200)
def test_many_calls_at_once_have_an_order(daemon: "Daemon") -> None:
    memories = use(daemon, 100, 100)
    assert memories.list_without_order() == []
    print(f"{memories.count()} calls on 4 memories, {memories.count('refused')} of them refused")


def test_reads_of_a_stale_copy_have_no_order(daemon: "Daemon", monkeypatch: pytest.MonkeyPatch) -> None:
    copies: dict[str | None, Any] = {}

    def get(core: Any, call: Get) -> Any:
        return copies.setdefault(call.id or call.key, reading.get(core, call))

    monkeypatch.setitem(registry.HANDLERS, Get, get)
    assert use(daemon, 1, 40).list_without_order()


def test_a_history_without_an_order_is_found() -> None:
    a = Call(0, 1, "add", "a")
    broken = Call(2, 5, "update", "b", "broken")
    wrong = [
        [a, Call(2, 3, "update", "b"), Call(4, 5, "get", "a")],  # stale
        [a, Call(2, 3, "get", None)],  # lost
        [a, Call(2, 3, "add", "b")],  # there already
        [a, Call(2, 3, "delete"), Call(4, 5, "delete")],  # deleted twice
        [a, Call(2, 3, "update", "b", "refused")],
        [a, broken, Call(6, 7, "get", "a"), Call(8, 9, "get", "b")],  # made after the daemon's death
        [a, broken, Call(3, 4, "get", "b"), Call(6, 7, "get", "a")],  # read, then lost with the daemon
        [a, Call(2, 5, "delete", None, "broken"), Call(6, 7, "get", "b")],
    ]
    right = [
        [Call(0, 5, "put", "a"), Call(1, 4, "put", "b"), Call(2, 6, "get", "a"), Call(7, 8, "get", "b")],
        [a, broken, Call(6, 7, "get", "b")],
        [a, broken, Call(6, 7, "get", "a")],
        [a, broken, Call(3, 4, "get", "a"), Call(6, 7, "get", "b")],
        [a, Call(2, 3, "add", "b", "refused"), Call(4, 5, "delete"), Call(6, 7, "update", "c", "refused")],
    ]
    assert [find_order(calls) for calls in (*wrong, *right)] == [False] * len(wrong) + [True] * len(right)


@given(steps=st.lists(st.tuples(st.sampled_from("add put update delete get".split()), st.integers(1, 9)), max_size=8))
def test_calls_made_one_after_the_other_have_an_order(steps: list[tuple[str, int]]) -> None:
    present: str | None = None
    calls: list[Call] = []
    for at, (kind, late) in enumerate(steps):
        call = Call(at - late, at + late, kind, present if kind == "get" else str(at), "done")
        if not (after := list(apply(call, present))):
            call = call._replace(outcome="refused")
        present = after[0] if after else present
        calls.append(call)
    assert find_order(calls)
