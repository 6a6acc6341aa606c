"""docs/containers.md and docs/machines.md: their commands, as far as one machine without containers can run them.

A container is a mount namespace in which the data folder is not there; another machine is a home folder of its own, and
an `sshd` on 127.0.0.1 the way to it.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp import Client as Agent
from mcp.client.streamable_http import streamable_http_client

from configs import NO_MODEL
from guide import Reader, is_like, replay
from memoryd.client import Client
from places import make_folder
from waiting import wait_until
from workbench import Process

CHECKOUT = Path(__file__).parents[2]
CONTAINERS, MACHINES = ((CHECKOUT / "docs" / name).read_text() for name in ("containers.md", "machines.md"))
BOX = "/run/user/1000/memoryd-box"  # of the guides
PROGRAMS = str(Path(sys.executable).parent)
_WHEEL = "'/memoryd-0.2.0-py3-none-any.whl[mcp]'"  # of the image: this checkout stands for it here


def blocks(guide: str, language: str) -> list[list[str]]:
    """Return the lines of each block of a guide in a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in found]


class Home(NamedTuple):
    """The machine with the memory: its daemon, and the folder with the socket that is bound to `box`."""

    process: Any
    box: Path

    def environment(self, folder: Path, **more: str) -> dict[str, str]:
        """Return the environment of a place that knows nothing of this machine's files."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYD_", "XDG_"))}
        path = f"{folder}:{PROGRAMS}:{os.environ['PATH']}"
        return {**kept, "HOME": str(folder), "PATH": path, "MEMORYD_DATA_DIR": str(folder / "data"), **more}


@pytest.fixture
def home() -> Iterator[Home]:
    folder = make_folder()
    [[comment, access, sockets]] = blocks(CONTAINERS, "toml")
    assert comment.startswith("#")
    assert access == "[access]"
    box = folder / "box"
    running = Process(folder, f"{NO_MODEL}\n{access}\n{sockets.replace(BOX, str(box))}\n").start()
    with running.client() as owner:
        owner.add_token("box", "acme/box")
    for namespace, text in (("acme", "The cache is Valkey"), ("acme/other", "The cache of others is secret")):
        with running.client(namespace) as client:
            client.add(text)
    yield Home(running, box)
    running.stop()
    shutil.rmtree(folder)


@pytest.fixture
def away() -> Iterator[Path]:
    """A home folder elsewhere, with a short path."""
    folder = make_folder()
    yield folder
    shutil.rmtree(folder)


# Containers ----------------------------------------------------------------------------------------------------------


def run_inside(home: Home, away: Path, script: str, **environment: str) -> str:
    """Run a script where the folder of the socket is mounted and the machine's other folders are not there."""
    mounts = f"mkdir {away}/run && mount --bind {home.box} {away}/run && mount -t tmpfs none {home.process.folder}"
    mounts += f"\nmkdir -p {away}/code/api/.git && cd {away}/code/api"
    [steps] = blocks(CONTAINERS, "dockerfile")
    assert "ENV MEMORYD_NAMESPACE=/" in steps
    inside = home.environment(away, MEMORYD_SOCKET=f"{away}/run/s", MEMORYD_NAMESPACE="/", **environment)
    command = ["unshare", "--map-root-user", "--mount", "sh", "-ec", f"{mounts}\n{script}"]
    if not os.getuid():
        command.remove("--map-root-user")  # as root no namespace of users is needed, and the user stays the same
    done = subprocess.run(command, env=inside, capture_output=True, text=True, timeout=100)
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"the machine gives no mount: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_container_saves_and_finds_by_the_mounted_socket_what_its_token_may_see(home: Home, away: Path) -> None:
    script = f"""
        test ! -e {home.process.data}
        memctl add "The box builds with make" --no-autostart
        memctl search cache --no-autostart
        memctl search cache --namespace acme/other --no-autostart 2>&1 || true
        memctl search cache --reach all --no-autostart 2>&1 || true
        memctl token list --no-autostart 2>&1 || true
    """
    said = run_inside(home, away, script)
    assert "Kept in acme/box" in said or "Remembered" in said
    assert "The cache is Valkey" in said
    assert "secret" not in said
    assert "speaks for acme/box" in said
    assert "inside it ('subtree'), not 'all'" in said
    assert "machine's user" in said
    with home.process.client("acme/box") as client:
        assert [memory.content for memory in client.list(reach="exact")] == ["The box builds with make"]


@pytest.mark.slow
def test_a_daemon_that_was_started_again_is_reached_by_the_mounted_folder(home: Home, away: Path) -> None:
    """The namespace is made before the daemon stops, as a container lives on."""
    wait = f"touch {away}/mounted; while [ ! -e {away}/again ]; do sleep 0.05; done"
    command = f"{wait}; memctl search cache --no-autostart"
    with ThreadPoolExecutor() as pool:
        said = pool.submit(run_inside, home, away, command)
        wait_until(lambda: (away / "mounted").exists() or said.done())
        home.process.stop()
        home.process.start()
        (away / "again").touch()
        assert "The cache is Valkey" in said.result()


@pytest.mark.slow
def test_an_agent_in_a_container_saves_and_finds_by_its_mcp_server(home: Home, away: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call_tool(2, "memory_save", content="The box has no network"),
        call_tool(3, "memory_search", query="cache"),
    ]
    (away / "asked").write_text("".join(json.dumps(message) + "\n" for message in asked))
    said = run_inside(home, away, f"memctl mcp --no-autostart < {away}/asked")
    results = {reply["id"]: reply["result"] for reply in map(json.loads, said.splitlines())}
    assert results[2]["structuredContent"]["outcome"] == "created"
    assert [one["text"] for one in results[3]["structuredContent"]["memories"]] == ["The cache is Valkey"]
    with home.process.client("acme/box") as client:
        assert [memory.content for memory in client.list(reach="exact")] == ["The box has no network"]


def call_tool(number: int, name: str, **arguments: str) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.mark.slow
def test_the_steps_of_the_image_run_in_a_clean_environment(home: Home, away: Path) -> None:
    [steps] = blocks(CONTAINERS, "dockerfile")
    variables = dict(step.removeprefix("ENV ").split("=", 1) for step in steps if step.startswith("ENV "))
    runs = [step.removeprefix("RUN ") for step in steps if step.startswith("RUN ")]
    [command] = [step.removeprefix("CMD ") for step in steps if step.startswith("CMD ")]
    copied = [step for step in steps if step.startswith("COPY dist/")]
    assert len(steps) == 1 + len(copied) + len(variables) + len(runs) + 1
    assert steps[0].startswith("FROM python:3")
    subprocess.run([sys.executable, "-m", "venv", str(away / "clean")], check=True, timeout=100)
    clean = home.environment(away / "clean/bin")
    for step in runs:
        assert _WHEEL in step
        done = subprocess.run(
            step.replace(_WHEEL, f"'{CHECKOUT}[mcp]'"), shell=True, env=clean, capture_output=True, text=True
        )
        if done.returncode and "connection" in done.stderr.lower():
            pytest.skip(f"pip reaches no package index: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stderr
    assert variables.keys() == {"MEMORYD_SOCKET", "MEMORYD_NAMESPACE", "MEMORYD_DATA_DIR"}
    words = shlex.join(json.loads(command))
    script = f"export PATH={away}/clean/bin:$PATH\ncommand -v memctl\n{words}\nmemctl search cache --no-autostart"
    said = run_inside(home, away, script)
    assert f"{away}/clean/bin/memctl" in said
    assert "The cache is Valkey" in said


# Another machine, over ssh -------------------------------------------------------------------------------------------


class Sshd(NamedTuple):
    """A running sshd; `folder` has a program `ssh` that reaches it as the host `home`."""

    folder: Path


def find_sshd(folder: Path) -> tuple[str, dict[str, str]]:
    """Return sshd, and the variables it needs: the installed one, else that of Debian's package, unpacked there."""
    if found := shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"):
        return found, {}
    fetch = "apt-get -qq download openssh-server libwrap0 && for file in *.deb; do dpkg-deb -x $file .; done"
    done = subprocess.run(fetch, shell=True, cwd=folder, capture_output=True, text=True, timeout=100)
    if done.returncode:
        pytest.skip("there is no sshd, and Debian's openssh-server cannot be fetched")
    [library] = folder.rglob("libwrap.so.0")
    return str(folder / "usr/sbin/sshd"), {"LD_LIBRARY_PATH": str(library.parent)}


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    if os.getuid() or not all(map(shutil.which, ("ssh", "ssh-keygen", "unshare"))):
        pytest.skip("sshd is started as root, in a mount namespace with a user for it, and asked by ssh")
    program, variables = find_sshd(tmp_path)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        "PidFile none\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    (tmp_path / "ssh_config").write_text(
        f"Host home\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {tmp_path}/user\n"
        " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n ExitOnForwardFailure yes\n"
    )
    users = tmp_path / "passwd"
    users.write_text(Path("/etc/passwd").read_text() + "sshd:x:107:65534::/run/sshd:/usr/sbin/nologin\n")
    start = f"mount --bind {users} /etc/passwd; mkdir -p /run/sshd; exec {program} -D -e -f {tmp_path}/sshd_config"
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start], env={**os.environ, **variables}, stderr=log, stdout=log
        )
    wait_until(lambda: "listening" in (tmp_path / "log").read_text() or running.poll() is not None)
    if running.poll() is not None:
        pytest.skip(f"sshd does not start here: {(tmp_path / 'log').read_text()}")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh_config "$@"\n')
    (folder / "ssh").chmod(0o700)
    yield Sshd(folder)
    running.terminate()
    running.wait(60)


@contextmanager
def forwarded(line: str, environment: dict[str, str]) -> Iterator[None]:
    """Run a line `ssh -N … &` of the guide in front, until the block ends."""
    assert line.startswith("ssh -N ")
    assert line.endswith(" &")
    running = subprocess.Popen(["sh", "-c", f"exec {line.removesuffix(' &')}"], env=environment)
    try:
        yield
    finally:
        running.terminate()
        running.wait(60)


@pytest.mark.slow
def test_another_machine_uses_the_memory_over_a_forwarded_socket(home: Home, away: Path, sshd: Sshd) -> None:
    make, forward, *rest = (line.replace(BOX, str(home.box)) for line in blocks(MACHINES, "sh")[0])
    environment = home.environment(away)
    environment["PATH"] = f"{sshd.folder}:{environment['PATH']}"
    subprocess.run(["sh", "-ec", make], env=environment, check=True)
    with forwarded(forward, environment):
        wait_until((away / ".memoryd-home/s").exists)
        script = "\n".join([*rest, 'memctl add "said on the other machine" --no-autostart'])
        done = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "The cache is Valkey" in done.stdout
        with Client(socket=away / ".memoryd-home/s", autostart=False) as client:
            assert client.search("other machine").hits[0].content == "said on the other machine"
    with home.process.client("acme/box") as client:
        assert [memory.content for memory in client.list(reach="exact")] == ["said on the other machine"]


@pytest.mark.slow
def test_two_machines_with_a_memory_each_are_synced_as_the_guide_says(
    folder: Path, model_dir: Path, sshd: Sshd
) -> None:
    for name in ("laptop", "home"):
        (folder / name).mkdir(mode=0o700)
    laptop, home = (Reader(folder / name, model_dir) for name in ("laptop", "home"))
    try:
        home.run("memctl", "add", "The wiki is at port 8081", "--namespace", "/")
        names = ("PATH", "HOME", "XDG_RUNTIME_DIR", "MEMORYD_MODEL_DIR")
        variables = " ".join(f"{name}={shlex.quote(home.environment[name])}" for name in names)
        key = (sshd.folder.parent / "user.pub").read_text()
        (sshd.folder.parent / "user.pub").write_text(f'command="{variables} sh -c \\"$SSH_ORIGINAL_COMMAND\\"" {key}')
        laptop.environment["PATH"] = f"{sshd.folder}:{laptop.environment['PATH']}"
        section = MACHINES[MACHINES.index("## A memory on each\n") : MACHINES.index("## The memory of another machine")]
        for block, text in replay(laptop, section):
            assert is_like(block.text, text), text
    finally:
        laptop.stop()
        home.stop()


@pytest.mark.slow
async def test_an_agent_of_another_machine_uses_a_forwarded_port(home: Home, away: Path, sshd: Sshd) -> None:
    [forward, claude] = blocks(MACHINES, "sh")[1]
    assert "http://127.0.0.1:8378/mcp" in claude
    with socket.socket() as one, socket.socket() as other:  # of one machine both ends cannot have the same port
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        near, far = one.getsockname()[1], other.getsockname()[1]
    words = ["--http", "--port", str(far), "--allow-host", f"127.0.0.1:{near}", "--namespace", "acme", "--json"]
    serve = [
        sys.executable,
        "-m",
        "memoryd.client.programs.memctl",
        "mcp",
        *words,
        "--socket",
        str(home.process.socket),
    ]
    environment = home.environment(away)
    environment["PATH"] = f"{sshd.folder}:{environment['PATH']}"
    server = subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE)
    assert server.stdout
    try:
        while server.stdout.readline() not in (b"}\n", b""):
            pass
        token = (away / "data/mcp.token").read_text().strip()
        with forwarded(forward.replace("8378:127.0.0.1:8378", f"{near}:127.0.0.1:{far}"), environment):
            wait_until(lambda: is_open(near))
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http_client,
                Agent(streamable_http_client(f"http://127.0.0.1:{near}/mcp", http_client=http_client)) as agent,
            ):
                found = await agent.call_tool("memory_search", {"query": "cache"})
        assert found.structured_content["memories"][0]["text"] == "The cache is Valkey"
    finally:
        server.terminate()
        server.wait(60)
        server.stdout.close()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
