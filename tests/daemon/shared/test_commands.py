"""`memctl shared add` on a terminal, with a real server: what it asks, what leaves, what goes on without it."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from desk import texts_there

from memoryd.client import Client
from memoryd.client.protocol import Add, Consolidate, EndSession, NewMemory
from memoryd.client.shared.calls import GetSharing
from memoryd.daemon.shared import exchange
from postgres import Postgres
from waiting import wait_until
from workbench import Daemon

COMMAND = [sys.executable, "-m", "memoryd.client.memctl", "shared", "add", "acme"]


def share(daemon: Daemon, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run `memctl shared add acme` where a person has typed something on the terminal."""
    person, terminal = pty.openpty()
    os.write(person, typed.encode())
    try:
        return subprocess.run(
            [*COMMAND, *words], stdin=terminal, capture_output=True, text=True, env=environment(daemon), check=False
        )
    finally:
        os.close(person)
        os.close(terminal)


def environment(daemon: Daemon) -> dict[str, str]:
    return {**os.environ, "MEMORYD_SOCKET": str(daemon.socket)}


def is_settled(client: Client) -> bool:
    [root] = client.call(GetSharing()).roots
    return (root.state, root.waiting) == ("ready", 0)


def test_adding_asks_and_only_what_was_named_leaves(
    start_daemon: Callable[..., Any], postgres: Postgres, database: str, address: str
) -> None:
    daemon = start_daemon()
    with daemon.client("acme") as client:
        client.add("deploys are on Tuesday")
        client.add("their sister plays chess", source="extraction")
        client.observe([{"role": "user", "content": "my dentist is on Friday at nine"}], session="s")
        client.call(EndSession(session="s", namespace="acme"))
        client.call(Consolidate(namespace="acme"))
        client.call(Add(memory=NewMemory(content="the port is 80"), namespace="acme/api"))
        refused = share(daemon, "--dsn", address, typed="no\n")
        assert refused.returncode == 1
        planned = re.findall(r"^(acme\S*) +(\d+) +(\d+)", refused.stderr, re.M)
        assert planned == [("acme", "1", "2"), ("acme/api", "1", "0")]
        assert "Nothing is shared." in refused.stderr
        assert client.call(GetSharing()).roots == []

        def leaves(*words: str, typed: str = "") -> set[object]:
            """Return what is on the server once a command was given and everything is exchanged."""
            done = share(daemon, *words, typed=typed)
            assert done.returncode == 0, done.stderr
            wait_until(lambda: is_settled(client))
            return texts_there(postgres, database)

        named = {"deploys are on Tuesday"}
        assert leaves("--dsn", address, "--only", "acme", typed="acme\n") == named
        client.call(Add(memory=NewMemory(content="begun later"), namespace="acme/later"))
        everywhere = {*named, "the port is 80", "begun later"}
        assert leaves("--only", "acme", "--yes") == named
        assert leaves("--yes") == everywhere
        conversations = {"their sister plays chess", "my dentist is on Friday at nine"}
        assert leaves("--with-conversations", "--yes") == {*everywhere, *conversations}


def test_ctrl_c_ends_the_showing_and_the_exchange_goes_on(
    start_daemon: Callable[..., Any], postgres: Postgres, database: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, may_go_on = exchange.pull, threading.Event()

    def pull(*given: Any) -> Any:
        may_go_on.wait()
        return real(*given)

    monkeypatch.setattr(exchange, "pull", pull)
    daemon = start_daemon()
    try:
        with daemon.client("acme") as client:
            client.add("deploys are on Tuesday")
            assert end_the_showing(daemon, "--dsn", address, "--yes") == 0
            assert not is_settled(client)
            may_go_on.set()
            wait_until(lambda: is_settled(client))
            assert texts_there(postgres, database) == {"deploys are on Tuesday"}
    finally:
        may_go_on.set()


def end_the_showing(daemon: Daemon, *words: str) -> int:
    """Run `memctl shared add acme`, interrupt it once it shows how far it is, return its exit code."""
    person, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env=environment(daemon),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    ) as process:
        os.close(terminal)
        shown = b""
        while b"exchanging acme" not in shown:
            shown += os.read(person, 4096)
        process.send_signal(signal.SIGINT)
    os.close(person)
    return process.returncode
