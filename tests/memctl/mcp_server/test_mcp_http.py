"""`memctl mcp --http`: the official client with a token, what is refused, where the token comes from.

| line of defence | what fails without it |
|---|---|
| Host, Origin, token, POST alone | `test_each_refusal_is_that_of_one_guard` |
| a token that nobody else can read, and stays | `test_the_token_is_kept_for_the_user_alone_and_stays` |
| what is refused never reaches the server | `test_each_refusal_is_that_of_one_guard` |
"""

import asyncio
import http.client
import json
import os
import pty
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import jsonschema
import msgspec
import pytest
import uvicorn
from agents import HELLO, MCP, all_of, options, text_of
from fake_daemon import Memctl
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from each import each
from memoryd.client.programs.loopback.guard import NOTE_S, SIGNED_IN, Guard, own_hosts
from memoryd.client.programs.loopback.serving import bind_port, make_config
from memoryd.client.programs.mcp import http as command
from memoryd.client.programs.mcp.server import make_server
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.mcp.tools import TOOLS


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class ServedMcp:
    """The real command on a free port."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.port = free_port()
        self.child = subprocess.Popen(
            [*MCP, "--http", "--port", str(self.port), "--json", "--no-autostart", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        assert self.child.stdout is not None
        text = b""
        while not text.endswith(b"\n}\n"):
            line = self.child.stdout.readline()
            assert line, self.child.stderr and self.child.stderr.read().decode()
            text += line
        self.said = json.loads(text)
        self.url, self.token = self.said["url"], self.said["token"]

    @asynccontextmanager
    async def client(self, mode: Any = "auto") -> AsyncIterator[Client]:
        """The official client, with the headers of the configuration that the command printed."""
        headers = self.said["config"]["mcpServers"]["memory"]["headers"]
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
            Client(streamable_http_client(self.url, http_client=http_client), mode=mode) as client,
        ):
            yield client

    def stop(self) -> int:
        """End it as systemd does; return the exit code."""
        self.child.terminate()
        code = self.child.wait(60)
        for stream in (self.child.stdout, self.child.stderr):
            if stream:
                stream.close()
        return code


@pytest.fixture(scope="module")
def process(module_process: Any) -> Any:
    """Each test has a namespace of its own."""
    return module_process


@pytest.fixture
def served(process: Any) -> Iterator[ServedMcp]:
    running = ServedMcp("--socket", str(process.socket), "--namespace", "acme/http")
    yield running
    assert running.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_the_official_client_calls_every_tool_with_the_token_and_replies_fit_their_schemas(
    served: ServedMcp, process: Any, mode: str
) -> None:
    with process.client("acme/http") as memory:
        ids = [memory.add(f"note {n} of {mode}", dedup=False).id for n in range(3)]
    every = {
        "memory_search": {"query": "note"},
        "memory_context": {"task": "note"},
        "memory_save": {"content": f"a new one of {mode}"},
        "memory_get": {"ids": ids[:2]},
        "memory_update": {"id": ids[0], "feedback": "useful"},
        "memory_forget": {"ids": ids[2:], "dry_run": True},
    }
    async with served.client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        results = await all_of(*(client.call_tool(name, given) for name, given in every.items()))
        recalled = await client.get_prompt("recall", {"topic": "note"})
        summary = await client.read_resource("memory://summary")
    assert list(tools) == list(TOOLS)
    for (name, given), result in zip(every.items(), results, strict=True):
        assert not result.is_error, (name, text_of(result))
        jsonschema.Draft202012Validator.check_schema(tools[name].input_schema)
        jsonschema.validate(given, tools[name].input_schema)
        if schema := tools[name].output_schema:
            jsonschema.validate(result.structured_content, schema)
    assert f"note 0 of {mode}" in recalled.messages[0].content.text  # type: ignore[union-attr]
    assert f"note 0 of {mode}" in summary.contents[0].text  # type: ignore[union-attr]


# What is refused -----------------------------------------------------------------------------------------------------


class Attack(NamedTuple):
    """A request that is refused with a status by one guard alone; `headers` change those of a client."""

    by: str
    status: int
    headers: dict[str, str | None]
    method: str = "POST"


PORT, TOKEN = 1, "right"  # of the guard that runs in this process
ATTACKS = {
    "another name of this machine": Attack("check_host", 403, {"host": "rebound.example:{port}"}),
    "another port": Attack("check_host", 403, {"host": "127.0.0.1:80"}),
    "no host": Attack("check_host", 403, {"host": None}),
    "a page of another site": Attack("check_origin", 403, {"origin": "https://evil.example"}),
    "another local page": Attack("check_origin", 403, {"origin": "http://localhost:3000"}),
    "a page without an origin": Attack("check_origin", 403, {"origin": "null"}),
    "no token": Attack("check_token", 401, {"authorization": None}),
    "a wrong token": Attack("check_token", 401, {"authorization": "Bearer guessed"}),
    "a token of another kind": Attack("check_token", 401, {"authorization": "Basic {token}"}),
    "a stream": Attack("check_method", 405, {}, "GET"),
    "the end of a session": Attack("check_method", 405, {}, "DELETE"),
    "a preflight": Attack("check_method", 405, {}, "OPTIONS"),
}
PLAIN = Attack("", 200, {})


def headers_of(attack: Attack, port: int, token: str) -> dict[str, str]:
    own: dict[str, str | None] = {
        "host": f"127.0.0.1:{port}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
        **attack.headers,
    }
    return {name: value.format(port=port, token=token) for name, value in own.items() if value is not None}


def ask(served: ServedMcp, attack: Attack, path: str = "/mcp", body: bytes = b"") -> tuple[int, Any, bytes]:
    """Send one request as it is; return status, headers and body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    body = body or msgspec.json.encode(HELLO[0])
    connection.putrequest(attack.method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers_of(attack, served.port, served.token).items():
        connection.putheader(name, value)
    connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_what_a_client_sends_is_answered_and_every_attack_is_refused(served: ServedMcp) -> None:
    status, headers, body = ask(served, PLAIN)
    assert (status, headers["content-type"], headers["cache-control"]) == (200, "application/json", "no-store")
    assert msgspec.json.decode(body)["result"]["serverInfo"]["name"] == "memoryd"
    assert {name: ask(served, attack)[0] for name, attack in ATTACKS.items() if name != "no host"} == {
        name: attack.status for name, attack in ATTACKS.items() if name != "no host"
    }
    _, refused, _ = ask(served, ATTACKS["no token"])
    assert refused["www-authenticate"] == "Bearer"
    _, refused, _ = ask(served, ATTACKS["a stream"])
    assert refused["allow"] == "POST"
    assert ask(served, PLAIN, path="/")[0] == 404
    assert ask(served, PLAIN._replace(headers={"authorization": None}), path="/")[0] == 401


async def answered(attack: Attack, guard: Guard | None = None) -> int:
    """Return the status of a request to an application behind the guards; 299: the application has it."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert SIGNED_IN in scope
        await send({"type": "http.response.start", "status": 299, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in headers_of(attack, PORT, TOKEN).items()]
    scope = {"type": "http", "method": attack.method, "path": "/mcp", "headers": headers}
    guard = guard or Guard(app, command.GUARDS, own_hosts(PORT), TOKEN)
    await guard(scope, lambda: asyncio.sleep(60), send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_each_refusal_is_that_of_one_guard(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await answered(PLAIN) == 299
    assert await answered(attack) == attack.status
    left = tuple(check for check in command.GUARDS if check.__name__ != attack.by)
    assert len(left) == len(command.GUARDS) - 1
    monkeypatch.setattr(command, "GUARDS", left)
    assert await answered(attack) == 299


async def test_refusals_are_noted_once_a_minute_for_each_reason_without_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard(lambda *_: asyncio.sleep(0), command.GUARDS, own_hosts(PORT), TOKEN)
    for name in ("a wrong token", "no token", "another port"):
        assert await answered(ATTACKS[name], guard) == ATTACKS[name].status
    assert capsys.readouterr().err.splitlines() == [
        "memctl: a request was refused with 401: The token is missing or wrong.",
        "memctl: a request was refused with 403: The host '127.0.0.1:80' is not this server's."
        " Start it with --allow-host NAME to answer to a name.",
    ]
    await answered(ATTACKS["a wrong token"], guard)
    now = time.monotonic() + NOTE_S
    monkeypatch.setattr("time.monotonic", lambda: now)
    await answered(ATTACKS["no token"], guard)
    assert "wrong. (2 more since the last line)" in capsys.readouterr().err


def test_each_guard_has_an_attack() -> None:
    assert {check.__name__ for check in command.GUARDS} == {attack.by for attack in ATTACKS.values()}


@pytest.mark.slow
@each(
    ("body", "status"),
    [(b"no JSON", 400), (b"[]", 400), (b"[" * 100_000, 400), (b'{"jsonrpc": "2.0"}', 400), (b" " * 5_000_000, 413)],
    ids=["text", "list", "deep", "no method", "large"],
)
def test_a_wrong_body_gets_an_error_and_the_server_goes_on(served: ServedMcp, body: bytes, status: int) -> None:
    found, _, text = ask(served, PLAIN, body=body)
    assert found == status
    assert b"Traceback" not in text
    assert ask(served, PLAIN)[0] == 200


@pytest.mark.slow
def test_a_container_reaches_it_by_a_name_that_was_allowed(process: Any) -> None:
    words = ("--socket", str(process.socket), "--allow-host", "host.docker.internal", "--allow-host", "box:9000")
    words += ("--allow-host", "memory.example:443")
    running = ServedMcp(*words)
    hosts = ["host.docker.internal:{port}", "box:9000", "box:{port}", "other:{port}"]
    hosts += ["host.docker.internal", "memory.example", "memory.example:443", "127.0.0.1:80"]
    assert [ask(running, PLAIN._replace(headers={"host": host}))[0] for host in hosts] == [
        200,
        200,
        403,
        403,
        200,
        200,
        200,
        403,
    ]
    assert running.stop() == 0


# Token, port, options ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_token_is_kept_for_the_user_alone_and_stays(folder: Path) -> None:
    first = ServedMcp("--namespace", "acme")
    assert first.stop() == 0
    file = folder / "data/mcp.token"
    assert (first.said["token_file"], file.read_text()) == (str(file), first.token + "\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["mcp.token"]
    assert command.find_token() == (first.token, str(file))
    file.unlink()
    assert command.find_token()[0] != first.token


def test_a_token_that_cannot_be_read_is_an_error_in_one_sentence(folder: Path, memctl: Memctl) -> None:
    (folder / "data").mkdir()
    (folder / "data/mcp.token").touch()
    done = memctl("mcp", "--http")
    assert (done.code, done.err) == (
        1,
        f"memctl: No token can be read from {folder}/data/mcp.token; remove it, and a new one is made.\n",
    )


@pytest.mark.slow
async def test_who_is_bound_to_a_namespace_has_the_token_of_that_and_stays_there(process: Any, folder: Path) -> None:
    with process.client() as memory:
        bound = memory.add_token("box", "acme/box").token
    with process.client("acme/other") as memory:
        memory.add("what others know")
    running = ServedMcp("--socket", str(process.socket), MEMORYD_TOKEN=bound)
    assert (running.token, running.said["token_file"]) == (bound, "")
    assert running.said["namespace"] == "acme/box"
    assert not (folder / "data/mcp.token").exists()
    async with running.client() as client:
        saved = await client.call_tool("memory_save", {"content": "what the box knows"})
        assert (saved.structured_content or {})["namespace"] == "acme/box"
        elsewhere = await client.call_tool("memory_search", {"query": "what others know", "project": "acme/other"})
    assert running.stop() == 0
    assert elsewhere.is_error
    with process.client("acme/box") as memory:
        assert [one.content for one in memory.list(reach="exact").memories] == ["what the box knows"]


@pytest.mark.slow
async def test_an_agent_is_told_by_name_what_its_token_may_name(process: Any) -> None:
    with process.client() as memory:
        tokens = [memory.add_token(role, f"club/{role}", role=role).token for role in ("agent", "reader")]
    agent, reader = (ServedMcp("--socket", str(process.socket), MEMORYD_TOKEN=token) for token in tokens)
    async with agent.client("legacy") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        about = tools["memory_save"].input_schema["properties"]["project"]["description"]
        assert about == "club/agent, a place inside it, or club, which others share"
        assert "with `project` club for all who share that" in (client.instructions or "")
        refused = await client.call_tool("memory_save", {"content": "The heron sleeps", "project": "Club"})
        assert "not for Club; to read and to add it may also name club." in text_of(refused)
        saved = await client.call_tool("memory_save", {"content": "The heron fishes at nihgt", "project": "club"})
        id = (saved.structured_content or {})["id"]
        await client.call_tool("memory_update", {"id": id, "content": "The heron fishes at night"})
        gone = await client.call_tool("memory_forget", {"ids": [id], "dry_run": False})
        assert "Forgot 1." in text_of(gone)
    async with reader.client("legacy") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "memory_search",
            "memory_context",
            "memory_get",
        }
        assert "You may read, not save." in (client.instructions or "")
    assert [running.stop() for running in (agent, reader)] == [0, 0]


REVOKED = "The daemon does not know the token that this MCP server was started with; it may have been revoked."


@pytest.mark.slow
async def test_a_server_whose_token_is_revoked_says_so(process: Any) -> None:
    with process.client() as memory:
        running = ServedMcp("--socket", str(process.socket), MEMORYD_TOKEN=memory.add_token("gone", "acme/gone").token)
        memory.revoke_token("gone")
    async with running.client() as client:
        refused = await client.call_tool("memory_search", {"query": "anything"})
    later = httpx2.post(
        running.url, headers={"Authorization": f"Bearer {running.token}"}, json={"method": "tools/list"}
    )
    assert running.child.stderr
    assert running.child.stderr.readline().startswith(f"memctl: a request was refused with 401: {REVOKED}".encode())
    assert running.stop() == 0
    assert refused.is_error
    assert REVOKED in text_of(refused)
    assert (later.status_code, REVOKED in later.text) == (401, True)


def test_a_server_does_not_start_with_a_token_that_is_not_known(
    process: Any, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_TOKEN", "mt_gone")
    words = ("--socket", str(process.socket), "--port", str(free_port()), "--no-autostart")
    done = memctl("mcp", "--http", *words)
    assert (done.code, done.err) == (1, f"memctl: {REVOKED} Start the server with another MEMORYD_TOKEN.\n")


def test_a_port_that_is_in_use_is_an_error_that_says_who_hears_the_token(memctl: Memctl) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = memctl("mcp", "--http", "--port", str(port))
    who = "The program that listens there receives the tokens of its callers; `ss -ltne` shows whose it is."
    said = f"memctl: Port {port} of 127.0.0.1 cannot be used: Address already in use. {who}\n"
    assert (done.code, done.err) == (1, said)


def read_what_is_said(*, on_terminal: bool) -> list[str]:
    """Serve; return what is printed up to the configuration."""
    given, taken = pty.openpty() if on_terminal else os.pipe()
    running = subprocess.Popen([*MCP, "--http", "--port", str(free_port())], stdout=taken)
    os.close(taken)
    with open(given, encoding="utf-8") as said:
        lines = [said.readline()]
        while not lines[-1].startswith("  {"):
            lines.append(said.readline())
            assert lines[-1]
        running.terminate()
        running.wait(60)
    return lines


@pytest.mark.slow
def test_a_log_has_no_token(folder: Path) -> None:
    text = "".join(read_what_is_said(on_terminal=False))
    assert (folder / "data/mcp.token").read_text().strip() not in text
    assert "Authorization: Bearer …" in text
    assert str(folder / "data/mcp.token") in text


# The conformance suite -----------------------------------------------------------------------------------------------

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
# Those of a server whose tools are its own; the others call tools that only the suite's example has.
SCENARIOS = {
    "2025-11-25": "server-initialize server-session-lifecycle ping tools-list resources-list prompts-list"
    " dns-rebinding-protection server-sse-multiple-streams",
    "2026-07-28": "server-stateless http-header-validation caching sep-2164-resource-not-found tools-list"
    " resources-list prompts-list dns-rebinding-protection server-sse-multiple-streams",
}
UNTESTABLE = "Not testable: server does not list the diagnostic tool"


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the conformance suite; it needs a Node of which fewer machines have the version."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed; with it the conformance suite is run too")
    where = tmp_path_factory.mktemp("conformance")
    install = ["npm", "install", "--prefix", str(where), "--no-audit", "--no-fund", "--silent", SUITE, "node@22"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=110)
    if done.returncode:
        pytest.skip(f"npm cannot fetch {SUITE}; where the registry is reachable it is run too: {done.stderr[-200:]}")
    modules = where / "node_modules"
    return [str(modules / "node/bin/node"), str(modules / "@modelcontextprotocol/conformance/dist/index.js")]


@asynccontextmanager
async def served_with_the_token(daemon_socket: Path) -> AsyncIterator[str]:
    """The server in this process, for a client that cannot send a token: each request gets it before the guards."""
    listener = bind_port(0)
    port = listener.getsockname()[1]
    session = ProjectSession(options(socket=str(daemon_socket)))
    manager = command.make_manager(make_server(session, TOOLS))
    guarded = Guard(command.make_app(manager), command.GUARDS, own_hosts(port), TOKEN)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
        await guarded(scope, receive, send)

    server = uvicorn.Server(make_config(app, command.IDLE_S))
    async with manager.run():
        running = asyncio.create_task(server.serve(sockets=[listener]))
        yield f"http://127.0.0.1:{port}{command.PATH}"
        server.should_exit = True
        await running
    await session.close()


@pytest.mark.slow
@pytest.mark.parametrize("revision", SCENARIOS)
async def test_the_conformance_suite_passes_what_needs_no_tool_of_its_own(
    suite: list[str], process: Any, tmp_path: Path, revision: str
) -> None:
    failed, passed = [], {}
    async with served_with_the_token(process.socket) as url:
        for scenario in SCENARIOS[revision].split():
            folder = tmp_path / scenario
            words = ["server", "--url", url, "--scenario", scenario, "--spec-version", revision, "-o", str(folder)]
            run = await asyncio.create_subprocess_exec(*suite, *words, stdout=subprocess.DEVNULL)
            await asyncio.wait_for(run.wait(), 60)
            [file] = folder.rglob("checks.json")
            checks = msgspec.json.decode(file.read_bytes())
            passed[scenario] = sum(check["status"] == "SUCCESS" for check in checks)
            failed += [
                (scenario, check["id"], check.get("errorMessage"))
                for check in checks
                if check["status"] == "FAILURE" and not str(check.get("errorMessage")).startswith(UNTESTABLE)
            ]
    assert failed == []
    assert passed["tools-list"] > 0
    assert passed["dns-rebinding-protection"] == 2
    assert sum(passed.values()) > 10
