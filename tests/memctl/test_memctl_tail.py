"""tail: events as lines, as JSON, over a restart of the daemon."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fake_daemon import Memctl

from each import each
from memoryd.client import Client
from memoryd.client.programs.memctl.tail import event_line
from memoryd.client.programs.memctl.text_table import width
from memoryd.client.protocol import Add, Event, NewMemory
from waiting import wait_until
from workbench import Daemon, Process

AT = 1_800_000_000.0
MEMORY = {"at": AT, "id": "3f9a02c4" * 4, "namespace": "acme/api", "type": "fact", "tier": "L1", "by": "add"}


def event(kind: str, **fields: object) -> Event:
    return Event(**{**MEMORY, "kind": kind, **fields})  # type: ignore[arg-type]


@each(
    ("shown", "line"),
    [
        (
            event("created", text="We use Valkey, not Redis"),
            "08:00:00  created   3f9a02c4  L1     acme/api      We use Valkey, not Redis",
        ),
        (
            event("promoted", came_from="L0", text="Never deploy\non Fridays"),
            "08:00:00  promoted  3f9a02c4  L0→L1  acme/api      Never deploy on Fridays",
        ),
        (
            event("moved", came_from="acme/api/alpha", text="A fact"),
            "08:00:00  moved     3f9a02c4  L1     acme/api      (from acme/api/alpha) A fact",
        ),
        (
            event("created", id="", count=9400, text=""),
            "08:00:00  created             L1     acme/api      9,400 memories (add)",
        ),
        (
            event("indexed", id="", tier="documents", text="/n/MEMORY.md", count=1, namespace=""),
            "08:00:00  indexed             docs   /             /n/MEMORY.md (1 part)",
        ),
        (
            event("job", by="sweep", type="done", text="moved 3 (12 ms)"),
            "08:00:00  job       sweep done: moved 3 (12 ms)",
        ),
        (
            event("warning", by="embedding.embedder", text="the model is missing"),
            "08:00:00  warning   embedding.embedder: the model is missing",
        ),
        (event("missed", count=12), "08:00:00  missed    12 events missing: read faster, or follow fewer kinds"),
    ],
)
def test_an_event_is_a_line_that_fits(shown: Event, line: str) -> None:
    assert event_line(shown, 80) == line


@each("size", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(size: int) -> None:
    for text in ("word " * 100, "記憶" * 100, "\x1b[31mred\x1b[0m" * 30):
        for namespace in ("", "acme/api/alpha/inner/and/one/more/of/them"):
            line = event_line(event("moved", came_from="L1", tier="documents", text=text, namespace=namespace), size)
            assert width(line) <= size
            assert "\x1b" not in line


def test_tail_prints_events_until_it_has_enough(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client("acme") as client, daemon.client() as other:
        writing = threading.Thread(target=_add_when_followed, args=(daemon, client, other))
        writing.start()
        out = memctl("tail", "--namespace", "acme", "--kind", "created,deleted", "--count", "2").out
        writing.join()
    assert [line.split()[1] for line in out.splitlines()] == ["created", "deleted"]
    assert out.count("A fact") == 2


def _add_when_followed(daemon: "Daemon", client: Client, other: Client) -> None:
    wait_until(lambda: len(daemon.server.subscriptions) == 1)
    other.call(Add(memory=NewMemory(content="elsewhere"), namespace="other"))
    id = client.add("A fact").id
    client.update(id, importance=0.9)
    client.delete(id)


def test_tail_prints_one_json_object_a_line(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client() as client:
        writing = threading.Thread(target=_add_when_followed, args=(daemon, client, client))
        writing.start()
        out = memctl("tail", "--count", "3", "--json").out
        writing.join()
    events = [json.loads(line) for line in out.splitlines()]
    assert [one["kind"] for one in events] == ["created", "created", "updated"]
    assert events[0]["at"].endswith("Z")
    assert {"id", "namespace", "tier", "text", "operation"} <= set(events[0])


def test_tail_starts_no_daemon(memctl: Memctl, folder: Path) -> None:
    found = memctl("tail")
    assert found.code == 3
    assert not (folder / "s").exists()


@pytest.mark.slow
def test_tail_goes_on_after_a_restart_and_ends_with_ctrl_c(process: "Process") -> None:
    words = [sys.executable, "-m", "memoryd.client.programs.memctl", "tail", "--json", "--kind", "created"]
    tail = subprocess.Popen(
        words,
        env=dict(os.environ, **process.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    try:
        assert tail.stdout is not None
        assert tail.stderr is not None
        for text in ("before", "after"):
            with process.client() as client:
                _wait_for_follower(client)
                client.add(text)
            assert json.loads(tail.stdout.readline())["text"] == text
            if text == "before":
                process.stop()
                assert "the daemon has stopped" in tail.stderr.readline()
                process.start()
        tail.send_signal(signal.SIGINT)
        assert tail.wait(60) == 130
        assert tail.stderr.read() == "memctl: a daemon answers again; events in between are missing.\n"
    finally:
        tail.kill()
        tail.communicate()


def _wait_for_follower(client: Client) -> None:
    def follows() -> bool:
        daemon = client.stats().daemon
        return daemon is not None and any(one.subscriptions for one in daemon.clients)

    wait_until(follows)
