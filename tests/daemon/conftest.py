"""Fixture: a real HTTP server with the API of a language model, which says what a test tells it to."""

from collections.abc import Iterator

import pytest

from memoryd.daemon.llm import chat
from model_server import ModelServer, model_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server; calls that fail are tried again at once."""
    monkeypatch.setattr(chat, "_FIRST_PAUSE_S", 0.001)
    with model_server() as made:
        yield made
