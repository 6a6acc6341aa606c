"""The judge with a language model: better answers, and the rules where it fails; nobody else waits for it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.client.protocol import Consolidate, GetStats, NewTurn, Observe
from memoryd.daemon.config import Config, LlmConfig
from memoryd.daemon.conversations import consolidating, judging
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from model_server import ModelServer, Request, after, fails, says
from workbench import LIMIT_S, CountingEmbedder, ask, running, wait_until

TURN = "We have decided to use Valkey on port 6380 for the cache"


@pytest.fixture
def core(folder: Path, server: ModelServer) -> Iterator[Core]:
    config = Config(llm=LlmConfig(url=server.url, model="tiny"))
    with running(folder, CountingEmbedder(), config=config) as made:
        yield made


def observe(core: Core, text: str = TURN) -> None:
    ask(core, Observe(session="s", turns=[NewTurn(role="user", content=text)]))


def importance(core: Core) -> float:
    [turn] = core.active.list_turns(None)
    return turn.importance


def test_the_model_rates_and_its_use_is_counted(core: Core, server: ModelServer) -> None:
    server.will(says({"importances": [0.31]}))
    observe(core)
    while judging.step(core):
        pass
    assert importance(core) == 0.31
    usage = reading.stats(core, GetStats()).llm
    assert usage is not None
    assert (usage.model, usage.answers, usage.tokens_in) == ("tiny", 1, 100)


@pytest.mark.parametrize("wrong", [fails(500), fails(401), says("what?"), says({"importances": []})])
def test_the_rules_rate_where_the_model_fails(core: Core, server: ModelServer, wrong: object) -> None:
    server.will(wrong)  # type: ignore[arg-type]
    observe(core)
    while judging.step(core):
        pass
    assert importance(core) > 0.6
    usage = reading.stats(core, GetStats()).llm
    assert usage is not None
    assert usage.failures == 1


def test_a_turn_is_asked_about_once(core: Core, server: ModelServer) -> None:
    server.will(says({"importances": [0.31]}))
    observe(core)
    for _ in range(3):
        while judging.step(core):
            pass
    assert len(server.requests) == 1


def test_consolidation_does_not_wait_for_the_model(core: Core, server: ModelServer) -> None:
    server.will(after(15.0, says({"importances": [0.31]})))
    judge = Worker(core, extracts=False)
    judge.start()
    try:
        observe(core)
        while not server.requests:
            time.sleep(0.005)
        began = time.monotonic()
        done = consolidating.consolidate(core, lambda event: None, Consolidate())
        assert done.promoted == 1
        assert time.monotonic() - began < 10.0
    finally:
        judge.close()


def test_a_model_that_hangs_delays_no_vectors(core: Core, server: ModelServer) -> None:
    answers = threading.Event()

    def hang(request: Request) -> None:
        answers.wait(LIMIT_S)
        says({"importances": [0.31]})(request)

    server.will(hang)
    judge = Worker(core)
    judge.start()
    try:
        observe(core)
        wait_until(lambda: len(server.requests) == 1)
        wait_until(lambda: judging.count_waiting(core) == {"rate": 1})
    finally:
        answers.set()
        judge.close()
