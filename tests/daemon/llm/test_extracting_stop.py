"""A stop of the real daemon while a language model hangs: it is prompt, and what waited is kept."""

from pathlib import Path
from typing import Any

from conversing import resting
from model_server import ModelServer, after
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


def test_a_stop_is_prompt_and_keeps_what_waited(folder: Path, server: ModelServer) -> None:
    server.will(after(60, lambda request: None))
    constants = {"daemon.conversations.extracting.QUIET_S": 0.05}
    process: Any = Process(folder, CONFIG.format(url=server.url), constants=constants).start()
    with process.client() as client:
        client.observe([{"role": "user", "content": SAID}], session="s")
        wait_until(lambda: len(server.requests) > 0)  # one is asked at a time: to rate the turn, or for its facts
    assert process.stop() == 0  # within the fixture's limit of 30 s; the model would take a minute
    process.start()
    with process.client() as client:
        assert [turn.content for turn in client.turns().turns] == [SAID]
        assert resting(client.tiers()) == {"extract": 1, "summary": 1}
    assert process.stop() == 0
