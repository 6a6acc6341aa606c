"""Two daemons equal in size differ only in the words of others' private memories: nobody bound can tell them apart."""

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from two_worlds import ALPHA, BETA, Ids, World, comparable, differences

from memoryd.client import Client, protocol
from memoryd.client.protocol import NewMemory
from workbench import Daemon

Start = Callable[..., "Daemon"]
QUERIES = ("quokka in the reeds", "what does the quokka eat", "heron", "wombat and quokka 7")
PRIVATE = ("quokka", "zebras")  # a word that alpha asks for in one world, one as long in the other


def build(daemon: "Daemon", word: str, size: int) -> Client:
    """Fill a world, part of it with a word in beta's memories; return alpha's client."""
    world = World(daemon, True)
    world.token("alpha", ALPHA)
    own = [NewMemory(content=f"The heron {number} stands in the reeds", id=f"{number:032x}") for number in range(20)]
    world.owner.call(protocol.AddMany(memories=own, namespace=ALPHA, dedup=False))
    dice = random.Random(size)
    secret = [
        NewMemory(content=f"A {word} {number} eats {dice.getrandbits(32):08x}", id=f"f{number:031x}")
        for number in range(size)
    ]
    for at in range(0, size, 500):
        world.owner.call(protocol.AddMany(memories=secret[at : at + 500], namespace=BETA, dedup=False))
    world.settle()
    world.owner.close()
    return world.client("alpha")


def ask_all(daemon: "Daemon", client: Client) -> list[Any]:
    """Return all that a bound caller gets to see of some words, the counts of the stages of a search included."""
    answers: list[Any] = []
    for query in QUERIES:
        answers += [client.explain(query), client.search(query), client.context(query).text]
        daemon.core.effects.flush()  # else the next query may or may not meet these results in the hot buffer
    answers += [client.stats(), client.list(limit=100)]
    return [comparable(msgspec.to_builtins(answer)) for answer in answers]


def test_words_of_others_change_no_answer_and_no_count_of_work(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for word in PRIVATE:
        monkeypatch.setattr("secrets.token_hex", Ids())
        daemon = start_daemon()
        with build(daemon, word, 200) as alpha:
            answers.append(ask_all(daemon, alpha))
    for one, other in zip(*answers, strict=True):
        assert list(differences(one, other)) == []


@pytest.mark.stress
@pytest.mark.timeout(900)
def test_words_of_others_do_not_show_in_the_time_of_2000_searches(start_daemon: Start) -> None:
    clients = [build(start_daemon(), word, 5_000) for word in PRIVATE]
    taken: list[list[float]] = [[], []]
    dice = random.Random(1)
    for number in range(2_000):
        query = f"{QUERIES[number % len(QUERIES)]} {number}"
        for which in dice.sample((0, 1), 2):
            began = time.perf_counter()
            clients[which].search(query)
            taken[which].append(time.perf_counter() - began)
    for client in clients:
        client.close()
    better = rank(taken[0], taken[1])
    middles = [statistics.median(times) * 1e3 for times in taken]
    print(f"medians {middles[0]:.2f} and {middles[1]:.2f} ms; one is faster in {better:.1%} of pairs")
    assert abs(better - 0.5) < 0.04  # four standard errors of 2,000 against 2,000


def rank(one: list[float], other: list[float]) -> float:
    """Return in which share of pairs the first is the smaller: the statistic of Mann and Whitney."""
    joined = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    larger, found = len(other), 0
    for _, which in joined:
        larger -= which
        found += larger if which == 0 else 0
    return found / (len(one) * len(other))
