"""A loopback server that speaks the chat API and behaves as it is told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Request"], None]


class Request:
    """One request under way."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.handler, self.body = handler, body

    def answer(self, status: int, data: bytes, **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def say(self, content: Any, tokens: tuple[int, int] | None = (100, 20)) -> None:
        """Answer with what the model said, text or an object."""
        text = content if isinstance(content, str) else json.dumps(content)
        usage = {"usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}} if tokens else {}
        self.answer(200, json.dumps({"choices": [{"message": {"content": text}}], **usage}).encode())


class ModelServer:
    """Its behaviours are used one for each request; the last one stays."""

    def __init__(self) -> None:
        self.behaviours: list[Behaviour] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.requests.append({"path": self.path, **body})
                    outer.headers.append(dict(self.headers))
                    behave = outer.behaviours.pop(0) if len(outer.behaviours) > 1 else outer.behaviours[0]
                with suppress(BrokenPipeError, ConnectionResetError):  # who asked has gone
                    behave(Request(self, body))

            def log_message(self, *_: Any) -> None:
                pass

        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def will(self, *behaviours: Behaviour) -> None:
        self.behaviours[:] = behaviours

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()


def says(content: Any, tokens: tuple[int, int] | None = (100, 20)) -> Behaviour:
    return lambda request: request.say(content, tokens)


def fails(status: int, data: bytes = b"no", **headers: str) -> Behaviour:
    return lambda request: request.answer(status, data, **headers)


def after(seconds: float, behaviour: Behaviour) -> Behaviour:
    def late(request: Request) -> None:
        time.sleep(seconds)
        behaviour(request)

    return late


def drips(request: Request) -> None:
    """Send a reply byte by byte, without an end."""
    request.handler.send_response(200)
    request.handler.end_headers()
    for _ in range(400):
        request.handler.wfile.write(b" ")
        request.handler.wfile.flush()
        time.sleep(0.02)
