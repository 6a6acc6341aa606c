"""The API of a language model as agents ask it, in four ways: it says one sentence and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Events = list[tuple[str, dict[str, Any]]]


class ModelApi(ThreadingHTTPServer):
    """A server on a free port; `asked` is what came, `says` what it answers."""

    daemon_threads = True

    def __init__(self, says: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.says = says
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelApi

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply(b"", "application/json")

    def do_GET(self) -> None:
        self._reply(b"{}", "application/json")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        if "/messages" in self.path and "count_tokens" not in self.path:
            self.server.asked.append(asked)
            self._stream(_messages(self.server.says))
        elif "/responses" in self.path:
            self.server.asked.append(asked)
            self._stream(_responses(self.server.says))
        elif "/chat/completions" in self.path:
            self.server.asked.append(asked)
            chunks = [json.dumps(chunk) for chunk in _completions(self.server.says)]
            self._reply("".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode(), "text/event-stream")
        elif "streamGenerateContent" in self.path:
            self.server.asked.append(asked)
            self._reply(b"data: " + json.dumps(_generated(self.server.says)).encode() + b"\n\n", "text/event-stream")
        else:
            self._reply(b"{}", "application/json")

    def _stream(self, events: Events) -> None:
        lines = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]
        self._reply("".join(lines).encode(), "text/event-stream")

    def _reply(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _messages(text: str) -> Events:
    """Return the stream of Anthropic's Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        ("message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": delta, "usage": {"output_tokens": 20}}),
        ("message_stop", {}),
    ]


def _responses(text: str) -> Events:
    """Return the stream of OpenAI's Responses API."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    return [
        ("response.created", {"response": {"id": "r1"}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": {"id": "r1", "output": [item], "usage": {**usage, **details}}}),
    ]


def _completions(text: str) -> list[dict[str, Any]]:
    """Return the stream of OpenAI's Chat Completions API."""
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [{**chunk, "choices": [said]}, {**chunk, "choices": [end], "usage": usage}]


def _generated(text: str) -> dict[str, Any]:
    """Return the one part of a stream of Google's Gemini API."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage}


@contextmanager
def model_api(says: str) -> Iterator[ModelApi]:
    """Serve until the block ends."""
    server = ModelApi(says)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
