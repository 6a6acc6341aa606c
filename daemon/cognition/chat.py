"""A language model behind the OpenAI-compatible chat API (OpenAI, Ollama, llama.cpp …): typed questions.

A question names the Struct that answers it; its JSON schema goes with the request where the server takes one. Near-JSON
is repaired. What fails for a passing reason (no connection, time-out, 408, 429, 5xx) is tried again with growing pauses
and jitter; a server that failed several times in a row is left alone for a while, so that a dead one costs nothing.
Tokens are counted by what the server says, and no question is asked beyond a day's limit. All of it is in `usage`.

Threads: any; at most `concurrency` questions are under way. Whoever asks waits, so nobody does whom a client waits for.
"""

import http.client
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from memoryd.client.protocol import LlmUsage
from memoryd.daemon.config import LlmConfig

T = TypeVar("T", bound=msgspec.Struct)

DAY_S = 86_400
MAX_REPLY_BYTES = 4 * 1024 * 1024
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_FAILURES, _LEFT_ALONE_S, _LONGEST_ALONE_S = 3, 30.0, 900.0
_BYTES_PER_TOKEN = 3  # where the server does not say what it has used
_BLOCK = 64 * 1024

log = logging.getLogger(__name__)


class ChatFailed(Exception):
    """The model did not answer; the message says why in one sentence."""


class _Passing(ChatFailed):
    """A failure that may be over soon. `after_s`: what the server asked to wait."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class _NoSchema(ChatFailed):
    """The server does not take a schema."""


class Chat:
    """One model. `spend(day, tokens)` adds to the tokens used on a day (0: only asks) and returns their sum."""

    def __init__(
        self,
        config: LlmConfig,
        spend: Callable[[int, int], int],
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config, self.usage = config, LlmUsage(model=config.model)
        self._spend, self._clock, self._ticks = spend, clock, ticks
        self._places = threading.BoundedSemaphore(config.concurrency)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._open: set[http.client.HTTPConnection] = set()
        self._takes_schema = True
        self._failed, self._again_at = 0, 0.0

    def ask(self, system: str, question: str, answer: type[T]) -> T:
        """Return the model's answer as a Struct; raise `ChatFailed`."""
        self._check()
        with self._places:
            self._check()
            try:
                made = self._attempts(system, question, answer)
            except ChatFailed as error:
                self._note_failure(str(error))
                raise
        with self._lock:
            self._failed = 0
            self.usage.answers += 1
        return made

    def reject(self, reason: str) -> ChatFailed:
        """Count an answer that cannot be used as a failure, and return it to be raised."""
        self._note_failure(reason)
        return ChatFailed(reason)

    def close(self) -> None:
        """End the questions under way; no more are taken."""
        self._closing.set()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(2)

    # When ------------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._closing.is_set():
            raise ChatFailed("The daemon is stopping.")
        limit, day = self.config.tokens_per_day, int(self._clock() // DAY_S)
        if limit and self._spend(day, 0) >= limit:
            self._count("refused")
            raise ChatFailed(f"Today's limit of {limit} tokens is used up.")
        if self._ticks() < self._again_at:
            self._count("refused")
            raise ChatFailed(f"The model failed {self._failed} times in a row and is left alone for a while.")

    def _note_failure(self, reason: str) -> None:
        with self._lock:
            self.usage.failures += 1
            self.usage.last_error = reason
            self._failed += 1
            if self._failed >= _FAILURES:
                alone_s = min(_LONGEST_ALONE_S, _LEFT_ALONE_S * 2 ** (self._failed - _FAILURES))
                self._again_at = self._ticks() + alone_s

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            setattr(self.usage, name, getattr(self.usage, name) + number)

    def _attempts(self, system: str, question: str, answer: type[T]) -> T:
        for attempt in range(self.config.retries + 1):
            try:
                return self._attempt(system, question, answer)
            except _Passing as error:
                if attempt == self.config.retries:
                    raise
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt) * random.uniform(0.5, 1.5)
                self._count("retries")
                if self._closing.wait(max(pause_s, min(error.after_s, _LONGEST_PAUSE_S))):
                    raise ChatFailed("The daemon is stopping.") from None
        raise AssertionError("unreachable")

    # What ------------------------------------------------------------------------------------------------------------

    def _attempt(self, system: str, question: str, answer: type[T]) -> T:
        try:
            text = self._text(self._request(self._body(system, question, answer)))
        except _NoSchema:
            self._takes_schema = False  # from now on the system prompt says what is wanted
            text = self._text(self._request(self._body(system, question, answer)))
        return self._decoded(text, answer)

    def _body(self, system: str, question: str, answer: type[T]) -> bytes:
        schema = msgspec.json.schema(answer)
        wanted = f"{system}\nAnswer with one JSON object and nothing else, as this schema says:\n"
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": [
                {"role": "system", "content": wanted + msgspec.json.encode(schema).decode()},
                {"role": "user", "content": question},
            ],
            "max_tokens": self.config.max_reply_tokens,
            "temperature": 0,
        }
        if self._takes_schema:
            named = {"name": answer.__name__.lower(), "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return msgspec.json.encode(body)

    def _text(self, reply: bytes) -> str:
        """Return what the model said, and count its tokens."""
        try:
            found = msgspec.json.decode(reply)
            text = found["choices"][0]["message"]["content"]
            used = found.get("usage") or {}
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
            raise _Passing("The server's reply is not one of the chat API.") from None
        asked, answered = (used.get(name) for name in ("prompt_tokens", "completion_tokens"))
        tokens_in = asked if isinstance(asked, int) else 0
        tokens_out = answered if isinstance(answered, int) else len(reply) // _BYTES_PER_TOKEN
        self._count("tokens_in", tokens_in)
        self._count("tokens_out", tokens_out)
        self._spend(int(self._clock() // DAY_S), tokens_in + tokens_out)
        if not isinstance(text, str) or not text.strip():
            raise _Passing("The model answered nothing.")
        return text

    def _decoded(self, text: str, answer: type[T]) -> T:
        try:
            return msgspec.json.decode(text, type=answer)
        except msgspec.DecodeError:
            pass
        from json_repair import repair_json

        try:
            made = msgspec.convert(repair_json(text, return_objects=True), answer, strict=False)
        except (msgspec.ValidationError, ValueError, RecursionError):
            raise _Passing(f"The model's answer is not what was asked for: {text[:80]!r}.") from None
        self._count("repaired")
        return made

    # The wire --------------------------------------------------------------------------------------------------------

    def _request(self, body: bytes) -> bytes:
        self._count("requests")
        give_up_at = self._ticks() + self.config.timeout_s
        try:
            with self._connected() as (connection, path):
                connection.request("POST", path, body, self._headers())
                reply = connection.getresponse()
                data = self._read(reply, connection, give_up_at)
                status, after = reply.status, reply.getheader("Retry-After", "")
        except TimeoutError:
            raise _Passing(f"The model did not answer within {self.config.timeout_s:g} s.") from None
        except (OSError, http.client.HTTPException) as error:
            raise _Passing(f"The model cannot be reached: {error or type(error).__name__}.") from None
        if status == 200:
            return data
        told = data[:200].decode("utf-8", "replace").strip()
        if status in _PASSING:
            raise _Passing(f"The model's server answered {status}.", float(after) if after.isdecimal() else 0.0)
        if status in (400, 422) and self._takes_schema:
            raise _NoSchema(f"The model's server answered {status}: {told}")
        raise ChatFailed(f"The model's server answered {status}: {told}")

    def _read(
        self, reply: http.client.HTTPResponse, connection: http.client.HTTPConnection, give_up_at: float
    ) -> bytes:
        """Return the body; a server that sends it drop by drop has no longer than one that sends it at once."""
        data = bytearray()
        while block := reply.read1(_BLOCK):
            data += block
            if len(data) > MAX_REPLY_BYTES:
                raise ChatFailed("The model's reply is too large.")
            remaining_s = give_up_at - self._ticks()
            if remaining_s <= 0:
                raise TimeoutError
            if connection.sock is not None:
                connection.sock.settimeout(remaining_s)
        return bytes(data)

    @contextmanager
    def _connected(self) -> Any:
        """Give a connection to the server, through the proxy of the environment if there is one, and the path."""
        url = urlsplit(self.config.url)
        host, secure = url.hostname or "", url.scheme == "https"
        path = url.path.rstrip("/") + "/chat/completions"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        proxy = None if proxy_bypass(host) else getproxies().get(url.scheme)
        if proxy is None:
            connection = kind(host, url.port, timeout=self.config.timeout_s)
        else:
            via = urlsplit(proxy)
            connection = kind(via.hostname or "", via.port, timeout=self.config.timeout_s)
            connection.set_tunnel(host, url.port)
        with self._lock:
            self._open.add(connection)
        try:
            yield connection, path
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "memoryd"}
        if key := _key(self.config):
            headers["Authorization"] = f"Bearer {key}"
        return headers


def _key(config: LlmConfig) -> str:
    """Return the key from the file or the environment, empty if there is none; it is read anew for each question."""
    if config.key_file:
        try:
            return Path(config.key_file).expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ChatFailed(f"The key file {config.key_file} cannot be read: {error}.") from None
    return os.environ.get(config.key_env, "")
