"""The real daemon is killed while clients write and read the same memories: what they got has an order all the same."""

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from killing import kill_amid

from configs import NO_MODEL
from orders import Memories

CLIENTS = 6


@pytest.fixture
def process(make_process: Callable[..., Any]) -> Any:
    return make_process(NO_MODEL)


def live_and_die(process: Any, memories: Memories, dice: random.Random) -> None:
    """Let clients work on a daemon until it is killed in the middle of their calls."""
    process.start()
    aim = memories.count() + dice.randrange(20, 300)
    using = threading.Thread(target=memories.use, args=(CLIENTS, 10_000, dice.random()))
    kill_amid(process, [using], lambda: memories.count() >= aim, dice, within_s=0.005)
    memories.note_death()


def use_and_kill(process: Any, kills: int) -> Memories:
    dice, memories = random.Random(kills), Memories(process.client, number=4)
    for _ in range(kills):
        live_and_die(process, memories, dice)
    process.start()
    memories.use(CLIENTS, 20, "the end")
    assert process.stop() == 0
    assert memories.list_without_order() == []
    return memories


@pytest.mark.slow
def test_calls_have_an_order_though_the_daemon_is_killed(process: Any) -> None:
    assert use_and_kill(process, 4).count("broken") > 0


@pytest.mark.stress
@pytest.mark.timeout(1200)
def test_calls_have_an_order_however_often_the_daemon_is_killed(process: Any) -> None:
    memories = use_and_kill(process, 60)
    broken = memories.count("broken")
    print(f"{memories.count()} calls on 4 memories, 60 kills, {broken} calls broken off")
    assert broken > 100
