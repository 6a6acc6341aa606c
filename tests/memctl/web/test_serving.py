"""The process of the page: its port, its end, the daemon that leaves and comes back, what is missing."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import Memctl
from page import Served

from memoryd.client.errors import MemorydError
from memoryd.client.extras import advise
from memoryd.client.programs.loopback.serving import bind_port
from memoryd.client.programs.web.command import PORT


class Stream:
    """Events of the page as they come."""

    def __init__(self, served: Served) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        self._connection.request("GET", "/api/events", headers={"authorization": f"Bearer {served.token}"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200

    def read(self) -> tuple[str, Any]:
        """Return the name and the value of the next event."""
        name = ""
        while line := self._answer.readline().decode().rstrip("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                value = msgspec.json.decode(line[6:])
                assert self._answer.readline() == b"\n"
                return name, value
        raise AssertionError("the stream ended")

    def close(self) -> None:
        self._answer.close()
        self._connection.close()

    def ends(self) -> bool:
        """Return whether nothing more comes."""
        return self._answer.readline() == b""


@pytest.mark.slow
def test_events_come_as_they_happen_and_it_ends_by_sigterm_with_a_stream_open(served: Served, daemon: Any) -> None:
    stream = Stream(served)
    assert stream.read() == ("open", {})
    with daemon.client("acme") as client:
        added = client.add("The queue is drained\nbefore a restart")
    name, event = stream.read()
    assert (name, event["kind"], event["id"], event["operation"]) == ("event", "created", added.id, added.operation)
    assert served.stop() == 0
    assert stream.ends()
    stream.close()


@pytest.mark.slow
def test_it_says_when_the_daemon_is_away_and_goes_on_when_it_is_back(
    start_daemon: Callable[..., Any], folder: Path
) -> None:
    first = start_daemon()
    served = Served(first.socket)
    stream = Stream(served)
    assert stream.read()[0] == "open"
    first.stop()
    name, value = stream.read()
    assert (name, "message" in value) == ("away", True)
    second = start_daemon()
    second.socket.rename(first.socket)
    while name == "away":
        name, value = stream.read()
    assert name == "open"
    assert served.stop() == 0
    stream.close()


def test_a_port_that_is_in_use_is_refused_when_it_was_asked_for_and_replaced_when_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            MemorydError, match=f"Port {port} of 127.0.0.1 cannot be used: Address already in use. The program"
        ):
            bind_port(port)
    first = bind_port(PORT, 0)
    second = bind_port(first.getsockname()[1], 0)
    ports = first.getsockname(), second.getsockname()
    first.close()
    second.close()
    assert ports[0] != ports[1]
    assert {address for address, _ in ports} == {"127.0.0.1"}


def test_without_the_extra_it_says_what_to_install(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.client.programs.web.command.find_spec", lambda name: None)
    found = memctl("web", "--no-open")
    assert (found.code, found.err) == (1, f"memctl: The page is an extra; {advise('web')}\n")


def test_the_process_loads_neither_the_sdk_of_mcp_nor_what_the_daemon_needs() -> None:
    code = (
        "import sys, memoryd.client.programs.web.serving\n"
        "heavy = {'mcp', 'numpy', 'apsw', 'onnxruntime', 'apscheduler', 'pydantic', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"
