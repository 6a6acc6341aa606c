"""The real command over real pipes: what hosts do to it, and what shells do."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from agents import HELLO, MCP, all_of, launched, lines, piped, replies, request, text_of
from fake_daemon import FakeDaemon, Memctl
from mcp import ClientSession, stdio_client

from configs import NO_MODEL
from memoryd.client import Client as Memory
from memoryd.client.extras import advise
from memoryd.client.programs.mcp import command
from memoryd.client.programs.mcp.answers import estimate_tokens
from memoryd.client.programs.mcp.tools import TOOLS
from memoryd.client.protocol import Hits, Search

PLACE = {"MEMORYD_NAMESPACE": "acme/api"}


@pytest.fixture(scope="module")
def process(module_process: Any) -> Any:
    """Each test has a namespace of its own."""
    return module_process


@pytest.mark.slow
async def test_the_official_client_calls_every_tool_at_once_and_replies_fit_their_schemas(process: Any) -> None:
    with process.client("acme/api") as memory:
        ids = [memory.add(f"cache note {n}", dedup=False).id for n in range(3)]
    every = {
        "memory_search": {"query": "cache"},
        "memory_context": {"task": "cache note"},
        "memory_save": {"content": "a new one"},
        "memory_get": {"ids": ids[:2]},
        "memory_update": {"id": ids[0], "feedback": "useful"},
        "memory_forget": {"ids": ids[2:], "dry_run": False},
        "search": {"query": "cache"},
        "fetch": {"id": ids[1]},
    }
    server = launched("--chatgpt", MEMORYD_SOCKET=str(process.socket), **PLACE)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        schemas = {tool.name: tool.output_schema for tool in (await session.list_tools()).tools}
        assert set(schemas) == set(every)
        results = await all_of(*(session.call_tool(name, given) for name, given in list(every.items()) * 4))
    assert hello.server_info.name == "memoryd"
    assert "acme/api" in (hello.instructions or "")
    for name, result in zip(list(every) * 4, results, strict=True):
        late = result.is_error and name == "memory_forget"  # forgotten by one of the others already
        assert late or not result.is_error, (name, text_of(result))
        if not result.is_error and schemas[name]:
            jsonschema.validate(result.structured_content, schemas[name])


@pytest.mark.slow
def test_replies_are_printed_when_the_input_has_ended(process: Any) -> None:
    asked = [*HELLO, *(request(number, "memory_save", content=f"note {number}") for number in range(2, 12))]
    done = piped(*asked, MEMORYD_SOCKET=str(process.socket), MEMORYD_NAMESPACE="pipe")
    found = replies(done.stdout)
    assert done.returncode == 0
    assert set(found) == set(range(1, 12))
    assert all(found[number]["result"]["isError"] is False for number in range(2, 12))
    with process.client("pipe") as memory:
        assert memory.list(reach="exact").total == 10


@pytest.mark.slow
def test_the_list_of_tools_needs_no_daemon_and_a_call_without_one_is_the_tools_error(folder: Path) -> None:
    asked = [*HELLO, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, request(3, "memory_search", query="x")]
    done = piped(*asked, {"jsonrpc": "2.0", "id": 4, "method": "ping"}, words=("--no-autostart",), **PLACE)
    found = replies(done.stdout)
    assert [tool["name"] for tool in found[2]["result"]["tools"]] == list(TOOLS)
    assert found[3]["result"]["isError"] is True
    [content] = found[3]["result"]["content"]
    assert content["text"].startswith("No daemon answers at")
    assert found[4]["result"] == {}
    assert not (folder / "s").exists()


@pytest.mark.slow
def test_the_first_call_starts_the_daemon(folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    done = piped(*HELLO, request(2, "memory_save", content="the first"), request(3, "memory_save", content="x"))
    try:
        assert {number: reply["result"].get("isError") for number, reply in replies(done.stdout).items()} == {
            1: None,
            2: False,
            3: False,
        }
    finally:
        subprocess.run([*MCP[:-1], "down", "--no-autostart"], check=True, capture_output=True)


@pytest.mark.slow
def test_a_daemon_that_cannot_start_is_the_tools_error_and_says_why(folder: Path) -> None:
    (folder / "config.toml").write_text("nonsense = 1\n")
    done = piped(*HELLO, request(2, "memory_search", query="x"))
    [content] = replies(done.stdout)[2]["result"]["content"]
    assert content["text"].startswith("No daemon answers at ")
    assert "nonsense" in content["text"]
    assert done.returncode == 0


@pytest.mark.slow
def test_a_cancelled_call_gets_no_reply_and_the_others_do(fake: FakeDaemon) -> None:
    asked, release = threading.Event(), threading.Event()

    def hold() -> Hits:
        asked.set()
        assert release.wait(60)
        return Hits(hits=[])

    fake.replies = {Search: hold}
    command = [*MCP, "--no-autostart"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server, ExitStack() as stack:
        stack.callback(server.kill)
        stack.callback(release.set)
        assert server.stdin
        assert server.stdout
        server.stdin.write(lines(*HELLO, request(7, "memory_search", query="slow")))
        server.stdin.flush()
        assert asked.wait(60)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        server.stdin.write(lines(cancel, {"jsonrpc": "2.0", "id": 8, "method": "ping"}))
        server.stdin.flush()
        found = replies(server.stdout.readline() + server.stdout.readline())
        assert set(found) == {1, 8}
        server.stdin.write(lines(request(9, "memory_search", query="quick")))
        release.set()
        rest, _ = server.communicate(timeout=60)
        assert set(replies(rest)) == {9}
        assert server.returncode == 0


def test_only_messages_reach_standard_output_and_a_broken_line_is_passed_over() -> None:
    deep = b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"
    half = b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"_meta": {"said": "half an emoji: \\ud83d"}}}\n'
    data = lines(*HELLO) + b"this is no JSON\n" + deep + half + lines({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    done = subprocess.run(MCP, input=data, capture_output=True, timeout=60)
    assert set(replies(done.stdout)) == {1, 2, 4}
    assert b"a line of the input is no JSON-RPC message" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_without_a_traceback() -> None:
    reading, writing = os.pipe()
    server = subprocess.Popen(MCP, stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)
    _, said = server.communicate(lines(*HELLO), timeout=60)
    assert server.returncode == 141
    assert b"Traceback" not in said


def test_without_the_extra_one_sentence_says_what_to_install(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = memctl("mcp")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"memctl: The Model Context Protocol is an extra; {advise('mcp')}\n"


@pytest.mark.slow
def test_no_other_command_loads_the_sdk() -> None:
    code = "import sys; from memoryd.client.programs.memctl.running import run; run(['mcp', '--help'])"
    code += "; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.slow
async def test_with_the_real_model_a_lesson_saved_by_one_agent_reaches_the_next_within_its_budget(real: Any) -> None:
    with Memory("acme/api", socket=real.socket, autostart=False) as memory:
        memory.add_many([{"content": f"Incident {n}: the queue of host {n} ran full"} for n in range(300)], dedup=False)
    server = launched(MEMORYD_SOCKET=str(real.socket), **PLACE)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        lesson = "Valkey must be restarted after its certificate is renewed; it keeps the old one"
        await session.call_tool("memory_save", {"content": lesson, "kind": "lesson"})
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for budget in (128, 300, 2000):
            asked = {"query": "TLS errors from the cache after we changed the certificate", "max_tokens": budget}
            found = await session.call_tool("memory_search", asked)
            assert found.structured_content["memories"][0]["text"].startswith("Valkey must be restarted")
            assert estimate_tokens(text_of(found)) <= budget
        context = await session.call_tool("memory_context", {"task": "renew the certificate of the cache"})
        assert lesson in text_of(context)
