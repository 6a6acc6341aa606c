"""A stop of the real daemon while a language model hangs: it is prompt, and what waited is kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversing import resting
from model_server import ModelServer, after, model_server
from workbench import Process, wait_until

CONFIG = """
[model]
name = "none"
fetch = false
[llm]
url = "{url}"
model = "tiny"
"""
SAID = "We decided to use Postgres 16 for the ledger."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as made:
        made.will(after(60, lambda request: None))
        yield made


@pytest.mark.parametrize("quiet_s", [0.05, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_stop_is_prompt_and_keeps_what_waited(folder: Path, server: ModelServer, quiet_s: float) -> None:
    process: Any = Process(
        folder, CONFIG.format(url=server.url), constants={"daemon.conversations.extracting.QUIET_S": quiet_s}
    ).start()
    with process.client() as client:
        client.observe([{"role": "user", "content": SAID}], session="s")
        wait_until(lambda: len(server.requests) > 0)  # one is asked at a time: to rate the turn, or for its facts
    assert process.stop() == 0  # within the fixture's limit of 30 s; the model would take a minute
    process.start()
    with process.client() as client:
        assert [turn.content for turn in client.turns().turns] == [SAID]
        assert resting(client.tiers()) == {"extract": 1, "summary": 1}
    assert process.stop() == 0
