"""The API of a language model as agents ask it, in four ways: it answers as it is told and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

Events = list[tuple[str, dict[str, Any]]]


class ModelAnswer(NamedTuple):
    """What the model says, what it thinks before, and the tool with its arguments that it then calls, if any."""

    text: str
    thought: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = MappingProxyType({})
    number: int = 1  # in the ids of what is said: agents drop a second message of one id


class ModelApi(ThreadingHTTPServer):
    """A server on a free port; `asked` is what came, `answer` gives what is said to a request."""

    daemon_threads = True

    def __init__(self, answer: Callable[[str], ModelAnswer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
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
        self._reply(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        if "/messages" in self.path and "count_tokens" not in self.path:
            self._stream(_messages(self._answer(asked)))
        elif "/responses" in self.path:
            self._stream(_responses(self._answer(asked)))
        elif "/chat/completions" in self.path:
            chunks = [json.dumps(chunk) for chunk in _completions(self._answer(asked))]
            self._reply("".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode(), "text/event-stream")
        elif "streamGenerateContent" in self.path:
            self._reply(b"data: " + json.dumps(_generated(self._answer(asked))).encode() + b"\n\n", "text/event-stream")
        else:
            self._reply(b"{}", "application/json")

    def _answer(self, asked: str) -> ModelAnswer:
        self.server.asked.append(asked)
        return self.server.answer(asked)._replace(number=len(self.server.asked))

    def _stream(self, events: Events) -> None:
        lines = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]
        self._reply("".join(lines).encode(), "text/event-stream")

    def _reply(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _messages(answer: ModelAnswer) -> Events:
    """Return the stream of Anthropic's Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if answer.thought:
        thought = {"type": "thinking_delta", "thinking": answer.thought}
        blocks.append(({"type": "thinking", "thinking": "", "signature": "c2ln"}, thought))
    blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}))
    if answer.tool:
        call = {"type": "tool_use", "id": f"call_{answer.number}", "name": answer.tool, "input": {}}
        blocks.append((call, {"type": "input_json_delta", "partial_json": json.dumps(dict(answer.arguments))}))
    events: Events = [("message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None}})]
    for index, (block, delta) in enumerate(blocks):
        events += [
            ("content_block_start", {"index": index, "content_block": block}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    stop = {"stop_reason": "tool_use" if answer.tool else "end_turn", "stop_sequence": None}
    return [*events, ("message_delta", {"delta": stop, "usage": {"output_tokens": 20}}), ("message_stop", {})]


def _responses(answer: ModelAnswer) -> Events:
    """Return the stream of OpenAI's Responses API."""
    items: list[dict[str, Any]] = []
    if answer.thought:
        summary = [{"type": "summary_text", "text": answer.thought}]
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{answer.number}",
                "summary": summary,
                "content": [],
                "encrypted_content": None,
            }
        )
    content = [{"type": "output_text", "text": answer.text, "annotations": []}]
    items.append(
        {"type": "message", "id": f"m{answer.number}", "role": "assistant", "status": "completed", "content": content}
    )
    if answer.tool:
        server, _, name = answer.tool.rpartition("__")  # a tool of an MCP server has a namespace here
        call = {"type": "function_call", "id": f"fc_{answer.number}", "call_id": f"call_{answer.number}", "name": name}
        arguments = json.dumps(dict(answer.arguments))
        items.append(
            {**call, **({"namespace": server} if server else {}), "arguments": arguments, "status": "completed"}
        )
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    end = {"response": {"id": f"r{answer.number}", "output": items, "usage": {**usage, **details}}}
    done = [("response.output_item.done", {"output_index": at, "item": item}) for at, item in enumerate(items)]
    return [("response.created", {"response": {"id": f"r{answer.number}"}}), *done, ("response.completed", end)]


def _completions(answer: ModelAnswer) -> list[dict[str, Any]]:
    """Return the stream of OpenAI's Chat Completions API."""
    base = {"id": f"c{answer.number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": answer.text}]
    if answer.tool:
        function = {"name": answer.tool, "arguments": json.dumps(dict(answer.arguments))}
        deltas.append(
            {"tool_calls": [{"index": 0, "id": f"call_{answer.number}", "type": "function", "function": function}]}
        )
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if answer.tool else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [*chunks, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}]


def _generated(answer: ModelAnswer) -> dict[str, Any]:
    """Return the one part of a stream of Google's Gemini API."""
    parts: list[dict[str, Any]] = [{"text": answer.thought, "thought": True}] if answer.thought else []
    parts.append({"text": answer.text})
    if answer.tool:
        parts.append(
            {"functionCall": {"id": f"call_{answer.number}", "name": answer.tool, "args": dict(answer.arguments)}}
        )
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage}


@contextmanager
def model_api(answer: str | Callable[[str], ModelAnswer]) -> Iterator[ModelApi]:
    """Serve until the block ends; a text is the answer to whatever is asked."""
    server = ModelApi((lambda asked: ModelAnswer(answer)) if isinstance(answer, str) else answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
