"""The guard by raw HTTP: each line of defence refuses its attack, and no other line would have.

| line of defence | what fails without it |
|---|---|
| 127.0.0.1 alone, no option for another address | `test_it_listens_on_the_loopback_address_alone_…` |
| Host, Origin, Sec-Fetch-Site, token, JSON by POST | `test_no_other_guard_refuses_it`, by the guard's name |
| each guard is tested | `test_each_guard_has_an_attack` |
| policy, no-store, nosniff, no-referrer, no cookie | `test_every_answer_is_sealed` |
| memories are inert | `test_page.py`: hostile memories in every view; `test_web_files.py`: nothing makes markup |
| a new method is placed before it can be called | `test_a_method_is_declared_with_whether_the_page_may_…` |
| what is refused never reaches the daemon | `test_what_is_not_allowed_does_not_reach_the_daemon` |
| no credentials, one memory erased at a time | `test_a_wrong_call_gets_one_sentence` |
| the code works once, no other user sees it | `test_the_code_is_exchanged_once`, `test_the_browser_is_given_…` |
| the daemon is not overrun by streams | `test_only_so_many_streams_of_events_are_open` |
| a connection without a whole request ends | `test_a_connection_without_a_whole_request_ends` |
| others leave room for the person's connections | `test_of_too_many_connections_…`, `test_the_page_answers_…` |
| files outside the page are not served | `test_a_file_outside_the_static_folder_is_not_served` |
"""

import asyncio
import http.client
import os
import socket
import stat
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import uvicorn
from page import Served

from each import each
from memoryd.client import AsyncClient, Client
from memoryd.client.programs.loopback import serving as connections
from memoryd.client.programs.loopback.guard import Guard, own_hosts
from memoryd.client.programs.memctl.running import run
from memoryd.client.programs.web import guard, relay, serving
from memoryd.client.programs.web.guard import Opening
from memoryd.client.protocol.base import rpc
from waiting import wait_until


class Attack(NamedTuple):
    """A request that is refused with a status by one guard alone; `headers` change those of the page itself."""

    by: str
    status: int
    headers: dict[str, str | None]
    method: str = "POST"
    path: str = "/api/call"


PORT, TOKEN = 1, "right"  # of the guard that runs in this process
ATTACKS = {
    "another name of this machine": Attack(
        "check_host", 403, {"host": "rebound.example:{port}", "origin": None}, "GET", "/api/doctor"
    ),
    "the right host at another port": Attack(
        "check_host", 403, {"host": "127.0.0.1:80", "origin": None}, "GET", "/api/doctor"
    ),
    "the host with a dot": Attack("check_host", 403, {"host": "localhost.:{port}", "origin": None}, "GET", "/"),
    "another local page": Attack("check_origin", 403, {"origin": "http://127.0.0.1:9999"}),
    "a page without an origin": Attack("check_origin", 403, {"origin": "null"}),
    "no origin": Attack("check_sender", 403, {"origin": None}),
    "https instead of http": Attack("check_origin", 403, {"origin": "https://127.0.0.1:{port}"}),
    "another site": Attack("check_site", 403, {"sec-fetch-site": "cross-site"}),
    "another port of this machine": Attack("check_site", 403, {"sec-fetch-site": "same-site"}),
    "a script of another site": Attack(
        "check_site", 403, {"sec-fetch-site": "cross-site", "sec-fetch-dest": "script"}, "GET", "/static/api.js"
    ),
    "a form": Attack("check_content", 415, {"content-type": "application/x-www-form-urlencoded"}),
    "a form that looks like JSON": Attack("check_content", 415, {"content-type": "text/plain; application/json"}),
    "a body without an end": Attack("check_content", 411, {"content-length": None}),
    "a body whose length is a lie": Attack("check_content", 411, {"transfer-encoding": "chunked"}),
    "a body that fills the RAM": Attack("check_content", 413, {"content-length": str(2**40)}),
    "a code that fills the RAM": Attack("check_content", 413, {"content-length": "4000000"}, path="/open"),
    "no token": Attack("check_token", 401, {"authorization": None}),
    "a wrong token": Attack("check_token", 401, {"authorization": "Bearer guessed"}),
    "a token of another kind": Attack("check_token", 401, {"authorization": "Basic {token}"}),
    "events without a token": Attack("check_token", 401, {"authorization": None}, "GET", "/api/events"),
    "a call by GET": Attack("check_method", 405, {}, "GET"),
    "the code by GET": Attack("check_method", 405, {}, "GET", "/open"),
    "a file by PUT": Attack("check_method", 405, {}, "PUT", "/static/api.js"),
    "a preflight": Attack("check_method", 405, {}, "OPTIONS"),
}


def headers_of(attack: Attack, port: int, token: str, body: bytes) -> dict[str, str]:
    """Return the headers of the page's own request, changed as the attack wants it."""
    own: dict[str, str | None] = {
        "host": f"127.0.0.1:{port}",
        "origin": f"http://127.0.0.1:{port}",
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "authorization": f"Bearer {token}",
        **attack.headers,
    }
    return {name: value.format(port=port, token=token) for name, value in own.items() if value is not None}


BODY = b'{"method":"status"}'
PLAIN = Attack("", 200, {})


def ask(port: int, attack: Attack, token: str, body: bytes = BODY) -> tuple[int, dict[str, str], bytes]:
    """Send one request as it is; return status, headers and body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(attack.method, attack.path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers_of(attack, port, token, body).items():
        connection.putheader(name, value)
    connection.endheaders()
    if attack.headers.get("content-length", "") == "":
        connection.send(body)
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    endless = headers.get("content-type", "").startswith("text/event-stream")
    found = answer.status, headers, b"" if endless else answer.read()
    connection.close()
    return found


def test_every_attack_is_refused_and_what_the_page_sends_is_not(site: Served) -> None:
    token = site.token
    assert ask(site.port, PLAIN, token)[0] == 200
    assert {name: ask(site.port, attack, token)[0] for name, attack in ATTACKS.items()} == {
        name: attack.status for name, attack in ATTACKS.items()
    }


async def answered(attack: Attack) -> int:
    """Return the status of a request to an application behind the guard; 299: the application has it."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in headers_of(attack, PORT, TOKEN, BODY).items()]
    scope = {"type": "http", "method": attack.method, "path": attack.path, "headers": headers}
    guarded = Guard(app, guard.GUARDS, own_hosts(PORT), TOKEN, guard.PRIVATE)
    await guarded(scope, lambda: asyncio.sleep(60), send)
    return int(sent[0]["status"])


async def test_no_other_guard_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    guards = guard.GUARDS
    for name, attack in ATTACKS.items():
        monkeypatch.setattr(guard, "GUARDS", guards)
        assert await answered(attack) == attack.status, name
        left = tuple(check for check in guards if check.__name__ != attack.by)
        assert len(left) == len(guards) - 1
        monkeypatch.setattr(guard, "GUARDS", left)
        assert await answered(attack) == 299, name


def test_each_guard_has_an_attack() -> None:
    assert {check.__name__ for check in guard.GUARDS} == {attack.by for attack in ATTACKS.values()}


def test_the_empty_page_may_be_opened_from_a_file_and_says_nothing(site: Served) -> None:
    from_file = {"origin": None, "authorization": None, "sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    status, _, body = ask(site.port, Attack("", 200, from_file, "GET", "/"), "", b"")
    assert status == 200
    assert site.opening.partition("#open=")[2].encode() not in body
    framed = {**from_file, "sec-fetch-dest": "iframe"}
    assert ask(site.port, Attack("", 403, framed, "GET", "/"), "", b"")[0] == 403


SEAL = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@each("path", ["/", "/static/app.js", "/static/none.js", "/api/none", "/api/call"])
def test_every_answer_is_sealed(site: Served, path: str) -> None:
    for asked in (Attack("", 0, {}, "GET", path), Attack("", 0, {"host": "other"}, "GET", path)):
        _, headers, _ = ask(site.port, asked, "wrong")
        assert {name: headers.get(name) for name in SEAL} == SEAL
        assert "set-cookie" not in headers
        policy = headers["content-security-policy"]
    for part in (
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "img-src 'self';",
        "connect-src 'self';",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ):
        assert part in policy
    assert "unsafe" not in policy


def test_it_listens_on_the_loopback_address_alone_and_no_option_changes_that(
    site: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", site.port), timeout=5)
    assert run(["web", "--host", "0.0.0.0"]) == 2
    assert "--host" in capsys.readouterr().err


def test_a_file_outside_the_static_folder_is_not_served(site: Served) -> None:
    token = site.token
    for path in ("/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py", "/guard.py"):
        status, _, body = ask(site.port, Attack("", 404, {}, "GET", path), token)
        assert (status, b"Guard" in body) == (404, False)


# The allowlist -------------------------------------------------------------------------------------------------------

NEVER = (
    "shutdown use_model import_memories export_memories graph_rebuild add_token revoke_token authenticate"
    " add_many observe backup forget dream add_workspace remove_workspace subscribe"
).split()


def test_a_method_is_declared_with_whether_the_page_may_send_it() -> None:
    with pytest.raises(TypeError, match="page"):
        rpc("within")  # type: ignore[call-arg]
    assert set(NEVER) <= relay.REFUSED


def test_what_is_not_allowed_does_not_reach_the_daemon(site: Served) -> None:
    token = site.token
    answers = {name: ask(site.port, PLAIN, token, b'{"method":"%s"}' % name.encode()) for name in relay.REFUSED}
    said = [msgspec.json.decode(body)["error"] for _, _, body in answers.values()]
    assert {one["code"] for one in said} == {"forbidden"}
    assert all("may not call" in one["message"] for one in said)
    with Client(socket=site.socket, autostart=False) as client:
        used = client.stats().methods
    assert used.keys() & (relay.REFUSED - {"hello", "authenticate", "subscribe"}) == set()


def test_what_is_added_on_the_page_is_the_persons_whatever_the_call_says(served: Served, daemon: Any) -> None:
    for origin in (b"agent", b"heard"):
        body = b'{"method":"add","memory":{"content":"Deploy on %s days","origin":"%s"}}' % (origin, origin)
        assert ask(served.port, PLAIN, served.token, body)[0] == 200
    with daemon.client() as client:
        assert [one.origin for one in client.list()] == ["person", "person"]


@each(
    ("body", "code", "text"),
    [
        (b"", "invalid", "cannot be read"),
        (b"[]", "invalid", "cannot be read"),
        (b"[" + b",".join([b"{}"] * 33) + b"]", "invalid", "length <= 32"),
        (b'{"method":"nothing"}', "unknown_method", "There is no method nothing"),
        (b'{"method":"undo","operation":1}', "invalid", "Expected `str | null`"),
        (b'{"method":"get","id":"abcd","more":1}', "invalid", "unknown field `more`"),
        (b'{"method":"get","id":"abcd"}', "not_found", "abcd"),
        (b'{"method":"update","id":"abcd","content":"x","allow_secrets":true}', "forbidden", "credentials"),
        (b'{"method":"delete","type":["fact"]}', "forbidden", "by their ids"),
        (b'{"method":"add","memory":{"content":"x"},"allow_secrets":true}', "forbidden", "credentials"),
        (b'{"method":"erase"}', "forbidden", "one memory at a time"),
        (b'{"method":"erase","ids":["abcd","abce"]}', "forbidden", "one memory at a time"),
        (b'{"method":"erase","ids":["abcd"],"session":"s"}', "forbidden", "one memory at a time"),
        (b'{"method":"list","limit":' + b"[" * 5000, "invalid", "cannot be read"),
        (b'{"method":"\xff"}', "invalid", "cannot be read"),
    ],
)
def test_a_wrong_call_gets_one_sentence(site: Served, body: bytes, code: str, text: str) -> None:
    said = msgspec.json.decode(ask(site.port, PLAIN, site.token, body)[2])["error"]
    assert (said["code"], said.keys()) == (code, {"code", "message", "data"})
    assert text in said["message"]
    assert "Traceback" not in said["message"]


def test_calls_of_one_request_are_answered_in_order_each_by_itself(site: Served) -> None:
    calls = b'[{"method":"shutdown"}, {"method":"namespaces"}, {"method":"get","id":"abcd"}]'
    status, _, body = ask(site.port, PLAIN, site.token, calls)
    refused, answered, missing = msgspec.json.decode(body)
    assert (status, refused["error"]["code"], missing["error"]["code"]) == (200, "forbidden", "not_found")
    assert "namespaces" in answered["result"]


# Opening -------------------------------------------------------------------------------------------------------------


def test_the_code_is_exchanged_once(site: Served) -> None:
    assert ask(site.port, PLAIN, site.token)[0] == 200
    code = site.opening.partition("#open=")[2]
    at_open = PLAIN._replace(path="/open", headers={"authorization": None})
    for again in (code, "guessed", ""):
        assert ask(site.port, at_open, "", msgspec.json.encode(again))[0] == 403
    opening = Opening()
    code = opening.address("").partition("#open=")[2]
    assert [opening.exchange(given) for given in ("guessed", code, code, "")] == [None, opening.token, None, None]


@pytest.fixture
def recorder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A browser that notes its arguments."""
    program, noted = folder / "browser", folder / "noted"
    program.write_text(f'#!/bin/sh\necho "$@" >{noted}.part; mv {noted}.part {noted}\n')
    program.chmod(0o700)
    monkeypatch.setattr("webbrowser._tryorder", None)
    monkeypatch.setenv("BROWSER", str(program))
    yield noted
    monkeypatch.undo()


def test_the_browser_is_given_a_file_so_that_no_other_user_sees_the_code(recorder: Path) -> None:
    opening = Opening()
    opening.open_browser("http://127.0.0.1:1")
    wait_until(recorder.exists)
    words = recorder.read_text()
    code = opening.address("").partition("#open=")[2]
    assert code not in words
    file = Path(words.strip().removeprefix("file://"))
    assert code in file.read_text()
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700
    assert opening.exchange(code) == opening.token
    assert not file.parent.exists()


async def test_only_so_many_streams_of_events_are_open(site: Served) -> None:
    token = site.token
    streams = []
    for _ in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        asked = headers_of(Attack("", 200, {}, "GET", "/api/events"), site.port, token, b"")
        lines = "".join(f"{name}: {value}\r\n" for name, value in asked.items())
        writer.write(f"GET /api/events HTTP/1.1\r\n{lines}\r\n".encode())
        streams.append((reader, writer))
    found = [(await reader.readline()).split()[1] for reader, _ in streams]
    for _, writer in streams:
        writer.close()
    assert sorted(found) == [b"200"] * 8 + [b"429"] * 12


@asynccontextmanager
async def page_of(socket: Path) -> AsyncIterator[tuple[int, str]]:
    """The page in this process; gives its port and its token."""
    listener = connections.bind_port(0)
    port, opening = listener.getsockname()[1], Opening()
    app = serving.make_app(Namespace(socket=str(socket), namespace=None, timeout=20.0), opening, port)
    server = uvicorn.Server(connections.make_config(app, serving.KEEP_ALIVE_S))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    yield port, opening.token
    server.should_exit = True
    await running


UNFINISHED = {
    "nothing": "",
    "half a head": "GET / HTTP/1.1\r\nx: ",
    "half a head after a whole request": "GET / HTTP/1.1\r\n{host}\r\n\r\nGET / HTTP/1.1\r\nx: ",
    "a head without its body": "POST /open HTTP/1.1\r\n{host}\r\n{origin}\r\n{json}\r\ncontent-length: 999\r\n\r\n",
}


def unfinished(sent: str, port: int) -> bytes:
    own = {"host": f"host: 127.0.0.1:{port}", "origin": f"origin: http://127.0.0.1:{port}"}
    return sent.format(**own, json="content-type: application/json").encode()


async def test_a_connection_without_a_whole_request_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.05)
    async with page_of(folder / "none") as (port, _):
        for sent, drips in product(UNFINISHED.values(), (False, True)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(unfinished(sent, port))
            answer = asyncio.create_task(reader.read())
            async with asyncio.timeout(20):
                with suppress(ConnectionError):
                    while drips and not answer.done():
                        writer.write(b"a")
                        await asyncio.wait([answer], timeout=0.01)
                    assert sent.startswith("GET / HTTP/1.1\r\n{host}") == (await answer != b"")
            writer.close()
    assert capfd.readouterr().err == ""


async def test_of_too_many_connections_the_oldest_that_is_not_signed_in_ends(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 10)
    async with page_of(daemon.socket) as (port, token):

        async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            asked = headers_of(Attack("", 200, {}, "GET", "/api/events"), port, token, b"")
            lines = "".join(f"{name}: {value}\r\n" for name, value in asked.items())
            writer.write(f"GET /api/events HTTP/1.1\r\n{lines}\r\n".encode())
            return await asyncio.wait_for(reader.readline(), 20)

        owner = await asyncio.open_connection("127.0.0.1", port)
        assert b" 200 " in await follow(*owner)
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        later = await asyncio.open_connection("127.0.0.1", port)
        assert b" 200 " in await follow(*later)
        for reader, _ in strangers[:50]:
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
        assert not any(reader.at_eof() for reader, _ in [owner, later, *strangers[51:]])
        for _, writer in [owner, later, *strangers]:
            writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
def test_the_page_answers_beside_sixty_connections_that_send_no_whole_request(site: Served, sent: str) -> None:
    token = site.token
    taken = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(60)]
    for number, one in enumerate(taken):
        one.sendall(unfinished(sent, site.port))
        one.setblocking(number % 2 == 0)
    silent, slow = taken[::2], set(taken[1::2])
    while slow:
        for one in list(slow):
            try:
                one.send(b"a")
            except OSError:
                slow.discard(one)
        assert ask(site.port, PLAIN, token)[0] == 200
    for one in silent:
        one.settimeout(20)
        with suppress(ConnectionError):
            while one.recv(65536):
                pass
    for one in taken:
        one.close()


async def test_an_answer_of_the_daemon_comes_through_as_json(site: Served) -> None:
    async with AsyncClient(socket=site.socket, autostart=False) as client:
        text = await relay.answer_work(
            relay.send_call(relay.Clients(client, client), b'{"method":"list","reach":"all"}')
        )
    assert msgspec.json.decode(text) == {"result": {"memories": [], "total": 0, "degraded": []}}
