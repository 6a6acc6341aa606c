"""serve-stdio over a real sshd: what another machine sees of a token's namespace."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import Memctl

from memoryd.client import Client
from memoryd.client.protocol import Add, AddToken, NewMemory, RevokeToken
from sshd import Sshd
from wire import request
from workbench import Daemon

SERVE = f"{sys.executable} -m memoryd.client.programs.memctl serve-stdio"


@pytest.fixture
def sshd(folder: Path) -> Iterator[Sshd]:
    server = Sshd(folder / "sshd")
    yield server
    server.stop()


@pytest.fixture
def acme(client: Client) -> Client:
    """Memories in and around acme, and a token for it."""
    for place in ("", "acme", "acme/api", "other"):
        client.call(Add(memory=NewMemory(content=f"It lies in {place or 'the root'}"), namespace=place))
    client.call(AddToken(name="ada", namespace="acme"))
    return client


class Line:
    """A session of ssh, with raw frames."""

    def __init__(self, sshd: Sshd, command: str) -> None:
        environment = {**os.environ, "PATH": f"{sshd.programs}:{os.environ['PATH']}"}
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            ["ssh", "-T", "place", command], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *failure: object) -> None:
        self.child.kill()
        self.child.communicate()

    def send(self, call: dict[str, Any], request_id: int = 1) -> None:
        assert self.child.stdin
        self.child.stdin.write(request(call, request_id))
        self.child.stdin.flush()

    def receive(self) -> Any:
        assert self.child.stdout
        size = int.from_bytes(self.child.stdout.read(4), "big")
        return msgspec.msgpack.decode(self.child.stdout.read(size)) if size else None


def command(daemon: "Daemon", name: str) -> str:
    return f"MEMORYD_SOCKET={daemon.socket} {SERVE} --no-autostart {name}"


def test_another_machine_reads_and_adds_within_the_namespace_of_the_token(
    daemon: "Daemon", acme: Client, sshd: Sshd
) -> None:
    with Line(sshd, command(daemon, "ada")) as line:
        assert line.receive() == [
            *(0, 0),
            {"name": "ada", "namespace": "acme", "role": "agent", "protocol": 1, "repositories": []},
        ]
        line.send({"method": "list"})
        assert {memory["namespace"] for memory in line.receive()[2]["memories"]} == {"acme", "acme/api"}
        line.send({"method": "add", "memory": {"content": "Said from elsewhere"}}, 2)
        added = line.receive()
        assert added[:2] == [0, 2]
        line.send({"method": "list", "namespace": "other"}, 3)
        assert line.receive()[:3] == [1, 3, "forbidden"]
    assert acme.get(added[2]["id"]).metadata == {"author": "ada"}


@pytest.mark.slow
def test_a_forced_command_gives_its_namespace_whatever_is_asked_for(
    daemon: "Daemon", acme: Client, sshd: Sshd, folder: Path
) -> None:
    acme.call(AddToken(name="root", namespace="other"))
    sshd.allow(command(daemon, "ada"))
    for asked in (command(daemon, "root"), f"cat {folder}/sshd/host", ""):
        with Line(sshd, asked) as line:
            assert line.receive()[2]["name"] == "ada"
    acme.call(RevokeToken(name="ada"))
    with Line(sshd, "") as line:
        assert line.receive()[2] == "not_found"
        assert line.child.wait(60) == 1


def test_a_token_that_is_revoked_while_it_is_used_reads_nothing_more(
    daemon: "Daemon", acme: Client, sshd: Sshd
) -> None:
    with Line(sshd, command(daemon, "ada")) as line:
        line.receive()
        acme.call(RevokeToken(name="ada"))
        line.send({"method": "list"})
        assert line.receive()[:3] == [1, 1, "unauthenticated"]


@pytest.mark.slow
def test_it_ends_with_either_side(daemon: "Daemon", acme: Client, sshd: Sshd) -> None:
    with Line(sshd, command(daemon, "ada")) as line:
        line.receive()
        assert line.child.stdin
        line.child.stdin.close()
        assert line.child.wait(60) == 0
        line.child.stdin = None
    with Line(sshd, command(daemon, "ada")) as line:
        line.receive()
        daemon.stop()
        assert line.child.wait(60) == 0


def test_without_a_token_or_a_daemon_it_says_why_in_a_frame_and_a_sentence(memctl: Memctl, acme: Client) -> None:
    said = memctl("serve-stdio", "bob")
    assert (said.code, said.err) == (1, "memctl: There is no token 'bob'; `memctl token list` lists them.\n")
    assert "not_found" in said.out
    said = memctl("serve-stdio", "ada", "--no-autostart", "--socket", "/nowhere/s")
    assert said.code == 3
    assert "unavailable" in said.out
