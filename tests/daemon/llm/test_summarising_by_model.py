"""Running summaries with a language model: it is asked where the caller waits; the rules go on where it fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.protocol import Message, Summarize
from memoryd.daemon.config import Config, LlmConfig
from memoryd.daemon.core.core import Core
from memoryd.models import load
from model_server import ModelServer, fails, says
from workbench import ask, running


@pytest.fixture
def core(folder: Path, server: ModelServer, model_dir: Path) -> Iterator[Core]:
    config = Config(llm=LlmConfig(url=server.url, model="tiny"))
    with running(folder, lambda name, where: load(name, model_dir), config=config) as made:
        yield made


def conversation(wait: bool) -> Summarize:
    messages = [Message(id=str(n), role="user", content=f"We decided on port {n} for the API") for n in range(40)]
    return Summarize(messages=messages, max_tokens=200, max_summary_tokens=60, wait=wait)


def test_a_summary_waits_for_the_model_only_when_told_to(core: Core, server: ModelServer) -> None:
    server.will(says({"done": ["The port of the API was settled."], "learned": [], "failed": []}))
    assert ask(core, conversation(wait=False)).by == "rules"
    assert server.requests == []
    done = ask(core, conversation(wait=True))
    assert done.by == "tiny"
    assert done.running_summary is not None
    assert done.running_summary.summary == "The port of the API was settled."


@pytest.mark.parametrize("wrong", [fails(500), says("what?"), says({"done": [], "learned": [], "failed": []})])
def test_the_rules_sum_up_where_the_model_fails(core: Core, server: ModelServer, wrong: Any) -> None:
    server.will(wrong)
    done = ask(core, conversation(wait=True))
    assert done.by == "rules"
    assert done.tokens <= 200
