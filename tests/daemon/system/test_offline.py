"""The one switch for the network: who asks for it, and that each way out is shut by it."""

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from each import each
from imports import importers
from memoryd.client import offline
from memoryd.client.errors import ModelUnavailable
from memoryd.client.offline import is_here, is_offline
from memoryd.daemon import config
from memoryd.daemon.embedding.fetch import fetch
from memoryd.daemon.system.model_api import Address, Passing, Remote, RemoteFailed
from memoryd.models import ModelError, pull

WAYS_OUT = "http urllib.request huggingface_hub requests httpx ftplib smtplib"


@pytest.fixture
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch is set, and whoever looks up or contacts anything all the same fails."""

    def attempt(*words: Any, **options: Any) -> None:
        raise AssertionError(f"tried to reach {words}")

    monkeypatch.setenv("MEMORYD_OFFLINE", "1")
    monkeypatch.setattr(socket, "getaddrinfo", attempt)
    monkeypatch.setattr(socket.socket, "connect", attempt)


@pytest.mark.slow
def test_every_module_that_reaches_out_is_known() -> None:
    assert importers(*WAYS_OUT.split()) == [
        "client/programs/doctor/settings.py",
        "daemon/system/model_api.py",
        "models/sources.py",
    ], "a new way out must ask `is_offline` and stand in the README"


@each(("value", "expected"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_environment_sets_it(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_OFFLINE", value)
    assert is_offline() is expected
    assert config.load(Path("/none/config.toml")).network.offline is expected


def test_the_settings_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORYD_OFFLINE", raising=False)
    monkeypatch.setattr(offline, "_forbidden", False)
    (tmp_path / "config.toml").write_text("[network]\noffline = true\n")
    assert config.load(tmp_path / "config.toml").network.offline
    assert not is_offline(), "reading settings alone changes nothing"
    offline.go_offline()
    assert is_offline()


def test_loopback_alone_is_this_machine() -> None:
    assert all(map(is_here, ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost"]))
    assert not any(map(is_here, ["10.0.0.1", "0.0.0.0", "api.example.org", "localhost.example.org", ""]))


@pytest.mark.usefixtures("no_way_out")
def test_a_server_elsewhere_is_not_asked() -> None:
    remote = Remote(Address("https://api.example.org/v1", "KEY", ""))
    with pytest.raises(RemoteFailed, match=r"not asked: api\.example\.org is another machine") as raised:
        remote.post("/embeddings", b"{}", 5.0, 1000)
    assert not isinstance(raised.value, Passing), "nobody tries again at once"


@pytest.mark.parametrize("switch", ["1", ""])
def test_a_server_on_this_machine_is_asked_without_a_proxy(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_OFFLINE", switch)
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        remote = Remote(Address(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "KEY", ""))
        asked: list[bytes] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        assert remote.post("/embeddings", b"{}", 5.0, 1000) == b"{}"
        thread.join()
    assert asked[0].startswith(b"POST /v1/embeddings ")


@pytest.mark.usefixtures("no_way_out")
def test_no_model_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="not fetched: `offline` is set"):
        fetch("all-MiniLM-L6-v2", tmp_path, threading.Event())
    with pytest.raises(ModelError, match="not fetched: `offline` is set"):
        pull("all-MiniLM-L6-v2", tmp_path)
