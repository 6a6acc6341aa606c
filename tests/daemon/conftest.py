"""Fixtures: what runs jobs; a real HTTP server with the API of a language model, which says what a test tells it."""

from collections.abc import Iterator

import pytest

from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.llm import chat
from model_server import ModelServer, model_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server; calls that fail are tried again at once."""
    monkeypatch.setattr(chat, "_FIRST_PAUSE_S", 0.001)
    with model_server() as made:
        yield made


@pytest.fixture
def jobs(core: Core) -> Iterator[Runner]:
    made = Runner(core)
    yield made
    made.close()
