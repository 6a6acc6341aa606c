"""A program in a terminal of its own, driven by keys, and a model for it that answers by what it is asked."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

Said = str | tuple[str, dict[str, Any]]  # a text, or a tool with its arguments
Answer = Callable[[str, str], list[Said]]  # from what was said last, and the whole request

UP, DOWN, ESCAPE, ENTER, TAB, CLEAR_LINE = "\x1b[A", "\x1b[B", "\x1b", "\r", "\t", "\x15"
_CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\[?][0-9;?<>=]*[a-zA-Z~]|\x1b[=>()][A-Z0-9]?|\s+")
_numbers = count(1)


class Model(ThreadingHTTPServer):
    """Anthropic's Messages API on a free port."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply(b"", "application/json")

    def do_GET(self) -> None:
        self._reply(b'{"data": []}', "application/json")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        if "/messages" not in self.path or "count_tokens" in self.path:
            self._reply(b'{"input_tokens": 100}', "application/json")
            return
        request = json.loads(asked)
        said = self.server.answer(_find_last(request), asked) if request.get("tools") else ["A title"]
        self._reply("".join(map(_encode, _list_events(said))).encode(), "text/event-stream")

    def _reply(self, data: bytes, kind: str) -> None:
        with contextlib.suppress(OSError):  # it was interrupted
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


def _find_last(request: dict[str, Any]) -> str:
    """Return the last message of the user as text, results of tools after RESULT."""
    content = next(message["content"] for message in reversed(request["messages"]) if message["role"] == "user")
    if isinstance(content, str):
        return content
    texts = [block["text"] if block["type"] == "text" else f"RESULT {json.dumps(block)}" for block in content]
    return "\n".join(texts)


def _list_events(said: Sequence[Said]) -> list[dict[str, Any]]:
    head = {"id": f"msg_{next(_numbers):04d}", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**head, "usage": usage}}]
    for index, one in enumerate(said):
        if isinstance(one, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": one}
        else:
            block = {"type": "tool_use", "id": f"toolu_{next(_numbers):04d}", "name": one[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(one[1])}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    reason = "end_turn" if all(isinstance(one, str) for one in said) else "tool_use"
    stop = {"stop_reason": reason, "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]


def _encode(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


class Terminal:
    """A program in a pseudo-terminal: keys go in, what it shows is waited for."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._pid, self._file = pty.fork()
        if not self._pid:
            os.chdir(folder)
            os.execvpe(command[0], list(command), dict(environment))
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 140, 0, 0))
        self._shown = ""

    def wait(self, text: str, limit_s: float = 30.0) -> None:
        """Wait until a text is shown that was not shown when this was last called; spaces do not count."""
        wanted, until = re.sub(r"\s+", "", text), time.monotonic() + limit_s
        while wanted not in (shown := _CONTROL.sub("", self._shown)):
            if time.monotonic() > until:
                raise TimeoutError(f"{text!r} is not in …{shown[-600:]}")
            self.listen(0.2)
        self.listen(0.5)
        self._shown = ""

    def listen(self, seconds: float) -> None:
        """Take what the program shows for a time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._file], [], [], left)[0]:
                with contextlib.suppress(OSError):  # it has ended
                    self._shown += os.read(self._file, 65536).decode("utf-8", "replace")

    def keys(self, *keys: str) -> None:
        """Press keys or type texts, one after the other."""
        for key in keys:
            os.write(self._file, key.encode())
            self.listen(0.4)

    def say(self, text: str, wait: str) -> None:
        """Type a prompt, and wait for what is shown then."""
        self.keys(text)
        self._shown = ""
        self.keys(ENTER)
        self.wait(wait)

    def close(self) -> None:
        """End the program, as a person does, else by force."""
        with contextlib.suppress(OSError):
            self.keys("\x03", "\x03")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
            self.listen(1.0)
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._file)
