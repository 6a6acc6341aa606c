"""Typed questions to a language model behind the OpenAI-compatible chat API (OpenAI, Ollama, llama.cpp …).

A question names the Struct of its answer, whose JSON schema is sent with the request if the server supports that. An
answer that is almost JSON is repaired. A request that fails for a temporary reason (no connection, time-out, 408, 429,
5xx) is repeated after growing pauses with jitter. After several failures in a row the server is not asked for a while,
so that a dead one costs nothing. The server counts the tokens, and no question is asked beyond a daily limit. `usage`
counts all of this.

Threads: any; one question is asked at a time. `ask` blocks, so it must not be called on a thread that a client waits
for.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from memoryd.client.credentials import redact
from memoryd.client.protocol import LlmUsage
from memoryd.daemon.config import LlmConfig
from memoryd.daemon.system.model_api import Address, Breaker, Passing, Remote, RemoteFailed, RequestRefused

T = TypeVar("T", bound=msgspec.Struct)

DAY_S = 86_400
MAX_REPLY_BYTES = 4 * 1024 * 1024
RETRIES = 2
TIMEOUT_S = 60.0  # for one answer
MAX_REPLY_TOKENS = 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
# After so many failures in a row the server is not asked for this time, which grows to the longest one.
_FAILURES, _FIRST_BREAK_S, _LONGEST_BREAK_S = 3, 30.0, 900.0
_BYTES_PER_TOKEN = 3  # an estimate for servers that report no usage

ChatFailed = RemoteFailed  # the model did not answer; the message says why in one sentence


def _quote(question: Mapping[str, Any]) -> str:
    """Return a question as JSON, in which texts cannot end early, and `<` cannot begin one of a model's own tokens."""
    return msgspec.json.encode(_clean(question)).decode().replace("<", "\\u003c")


def _clean(value: Any) -> Any:
    """Return a value without credentials: none leaves the machine, even if it may be stored."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


class Ledger:
    """The tokens used in one UTC day, kept across restarts; `saved` is the latest text that `save` was given."""

    def __init__(self, saved: str | None, save: Callable[[str], object]) -> None:
        self._save, self._lock = save, threading.Lock()
        day, _, tokens = (saved or "").partition(":")
        self._day, self._tokens = (int(day), int(tokens)) if day.isdecimal() and tokens.isdecimal() else (0, 0)

    def spend(self, day: int, tokens: int) -> int:
        """Add to the tokens of a day (since 1970) and return their sum."""
        with self._lock:
            if day != self._day:
                self._day, self._tokens = day, 0
            self._tokens += tokens
            if tokens:
                self._save(f"{self._day}:{self._tokens}")
            return self._tokens


class Chat:
    """One model. `spend(day, tokens)` adds tokens (0: none) to those used on a day, and returns their sum."""

    def __init__(
        self,
        config: LlmConfig,
        spend: Callable[[int, int], int],
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config, self.usage = config, LlmUsage(model=config.model)
        self._spend, self._clock = spend, clock
        self._asking = threading.Lock()  # one question at a time
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.remote = Remote(Address(config.url, config.key_env, config.key_file), ticks)
        self._breaker = Breaker(_FAILURES, _FIRST_BREAK_S, _LONGEST_BREAK_S, ticks)
        self._takes_schema = True

    def ask(self, system: str, question: Mapping[str, Any], answer: type[T]) -> T:
        """Return the model's answer as a Struct; raise `ChatFailed`. The question is sent as one JSON object."""
        self._check()
        with self._asking:
            self._check()
            try:
                result = self._retry(system, question, answer)
            except ChatFailed as error:
                self._note_failure(str(error))
                raise
        self._breaker.note(worked=True)
        self._count("answers")
        return result

    def reject(self, reason: str) -> ChatFailed:
        """Count an unusable answer as a failure, and return the error to raise."""
        self._note_failure(reason)
        return ChatFailed(reason)

    def close(self) -> None:
        """End the current question, and refuse further ones."""
        self._closing.set()
        self.remote.close()

    # Whether and when to ask -----------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._closing.is_set():
            raise ChatFailed("The daemon is stopping.")
        limit, day = self.config.tokens_per_day, int(self._clock() // DAY_S)
        if limit and self._spend(day, 0) >= limit:
            self._count("refused")
            raise ChatFailed(f"Today's limit of {limit} tokens is used up.")
        if self._breaker.open():
            self._count("refused")
            raise ChatFailed(f"The model failed {self._breaker.failed} times in a row and is not asked for a while.")

    def _note_failure(self, reason: str) -> None:
        with self._lock:
            self.usage.failures += 1
            self.usage.last_error = reason
        self._breaker.note(worked=False)

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            setattr(self.usage, name, getattr(self.usage, name) + number)

    def _retry(self, system: str, question: Mapping[str, Any], answer: type[T]) -> T:
        for attempt in range(RETRIES + 1):
            try:
                return self._attempt(system, question, answer)
            except Passing as error:
                if attempt == RETRIES:
                    raise
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt) * random.uniform(0.5, 1.5)
                self._count("retries")
                if self._closing.wait(max(pause_s, min(error.after_s, _LONGEST_PAUSE_S))):
                    raise ChatFailed("The daemon is stopping.") from None
        raise AssertionError("unreachable")

    # Requests and answers --------------------------------------------------------------------------------------------

    def _attempt(self, system: str, question: Mapping[str, Any], answer: type[T]) -> T:
        try:
            reply = self._request(system, question, answer)
        except RequestRefused as error:
            if error.status not in (400, 422) or not self._takes_schema:
                raise
            self._takes_schema = False  # the schema in the system prompt has to do
            reply = self._request(system, question, answer)
        return self._decode(self._text(reply), answer)

    def _encode_body(self, system: str, question: Mapping[str, Any], answer: type[T]) -> bytes:
        schema = msgspec.json.schema(answer)
        instructions = f"{system}\nAnswer with one JSON object and nothing else, as this schema says:\n"
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": [
                {"role": "system", "content": instructions + msgspec.json.encode(schema).decode()},
                {"role": "user", "content": _quote(question)},
            ],
            "max_tokens": MAX_REPLY_TOKENS,
            "temperature": 0,
        }
        if self._takes_schema:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        return msgspec.json.encode(body)

    def _text(self, reply: bytes) -> str:
        """Return the text of the model's reply, and count its tokens."""
        try:
            body = msgspec.json.decode(reply)
            text = body["choices"][0]["message"]["content"]
            usage = body.get("usage") or {}
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError, RecursionError):
            raise Passing("The server's reply is not one of the chat API.") from None
        prompt_tokens, reply_tokens = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
        tokens_in = prompt_tokens if isinstance(prompt_tokens, int) else 0
        tokens_out = reply_tokens if isinstance(reply_tokens, int) else len(reply) // _BYTES_PER_TOKEN
        self._count("tokens_in", tokens_in)
        self._count("tokens_out", tokens_out)
        self._spend(int(self._clock() // DAY_S), tokens_in + tokens_out)
        if not isinstance(text, str) or not text.strip():
            raise Passing("The model answered nothing.")
        return text

    def _decode(self, text: str, answer: type[T]) -> T:
        try:
            return msgspec.json.decode(text, type=answer)
        except (msgspec.DecodeError, RecursionError):
            pass
        from json_repair import repair_json

        try:
            repaired = msgspec.convert(repair_json(text, return_objects=True), answer, strict=False)
        except (msgspec.ValidationError, ValueError, RecursionError):
            raise Passing(f"The model's answer is not what was asked for: {text[:80]!r}.") from None
        self._count("repaired")
        return repaired

    def _request(self, system: str, question: Mapping[str, Any], answer: type[T]) -> bytes:
        self._count("requests")
        body = self._encode_body(system, question, answer)
        return self.remote.post("/chat/completions", body, TIMEOUT_S, MAX_REPLY_BYTES)
