"""Embedding models behind the OpenAI-compatible API (`POST /embeddings`: OpenAI, Ollama, llama.cpp, vLLM …).

They have the interface of a local model. A call that a client waits for makes one attempt of at most `WAIT_S`; pending
memories are sent in batches, with longer timeouts and retries. After several failures in a row, a server is not called
for a moment, so that one that is down does not slow down searches. Vectors are validated (number, length, finite) and
normalised here. A model is calibrated with some 450 short texts when it is first loaded; the result is saved in the
models folder.
"""

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from msgspec import Struct

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.config import EmbeddingApiConfig
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.system.model_api import Address, Breaker, Passing, Remote, RemoteFailed, RequestRefused
from memoryd.models import Calibration, Embedder, Floors, ModelUnreachable, calibrate, edition

PREFIX = "openai:"
ABOUT_TEXT = frozenset({400, 413, 422})  # status codes for a text that the server rejects, for example as too long
MAX_REPLY_BYTES = 256 * 1024 * 1024
BYTES_PER_TOKEN = 2  # fewer than in real tokens, so that a text within the estimate is within the limit
WAIT_S = 3.0  # how long a search or an add waits; then a search uses words alone, and an add leaves its memory pending
RETRIES = 2  # in the background
TIMEOUT_S = 30.0  # of a batch, in the background
BATCH = 32  # texts of one request
MAX_TOKENS = 8191  # of one text; longer ones are truncated
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 20.0
_FAILURES, _LEFT_ALONE_S, _LONGEST_ALONE_S = 3, 5.0, 60.0
_PROBE = "dimensions"
_CALIBRATIONS = ".api"  # in the models folder, with one file per model of a server


class _Item(Struct):
    embedding: list[float]
    index: int


class _Reply(Struct):
    data: list[_Item]


@runtime_checkable
class Batching(Protocol):
    """A model that embeds many texts per request."""

    batch: int

    def embed_batch(self, texts: Sequence[str]) -> Vector:
        """Return the unit vectors of at most `batch` texts, shape (texts, dimensions)."""


def is_api(name: str) -> bool:
    """Return whether a name denotes a model behind the API."""
    return name.startswith(PREFIX)


def is_trouble(error: object) -> bool:
    """Return whether an embedding failed because of the server, so that every text would fail now."""
    return isinstance(error, RemoteFailed) and not (isinstance(error, RequestRefused) and error.status in ABOUT_TEXT)


class Models:
    """Loads models by name: those behind the API, and all others with `local`."""

    def __init__(self, config: EmbeddingApiConfig, local: Callable[[str, Path], Embedder]) -> None:
        self._config, self._local = config, local
        self._closing = threading.Event()
        self._remote = Remote(Address(config.url, config.key_env, config.key_file, "The embedding model"))

    def load(self, name: str, folder: Path) -> Embedder:
        """Return a model with its dimensions, from the settings or from a request; raise `ModelError`."""
        if not is_api(name):
            return self._local(name, folder)
        made = ApiEmbedder(name, self._config, self._remote, self._closing)
        try:
            made.learn(made.embed([_PROBE], WAIT_S).shape[1])
        except RemoteFailed as error:
            if not (isinstance(error, Passing) and self._config.dimensions):
                raise ModelUnreachable(str(error)) from None
        made.floors = _read_floors(made, folder) or _calibrate(made, folder)
        return made

    def close(self) -> None:
        """Abort running requests and make no more."""
        self._closing.set()
        self._remote.close()


def _place_calibration(model: "ApiEmbedder", folder: Path) -> Path:
    return folder / _CALIBRATIONS / f"{model.fingerprint.rsplit(':', 1)[-1]}.json"


def _read_floors(model: "ApiEmbedder", folder: Path) -> Floors | None:
    """Return the saved floors if they are from this edition of the bundled set."""
    try:
        known = msgspec.json.decode(_place_calibration(model, folder).read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError):
        return None
    return known.floors if known.edition == edition() else None


def _calibrate(model: "ApiEmbedder", folder: Path) -> Floors:
    """Calibrate a model with the bundled set and save the result; raise `ModelUnreachable`."""

    def embed(texts: Sequence[str]) -> Vector:
        return np.concatenate([model.embed_batch(part) for part in split_evenly(texts, model.batch)])

    try:
        made = calibrate(embed, embed)
    except RemoteFailed as error:
        raise ModelUnreachable(str(error)) from None
    path = _place_calibration(model, folder)
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # the folder cannot be written, so the model is calibrated at each start
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(made))
        fresh.replace(path)
    return made.floors


class ApiEmbedder:
    """One model of one server."""

    floors: Floors  # set by `Models.load`

    def __init__(self, name: str, config: EmbeddingApiConfig, remote: Remote, closing: threading.Event) -> None:
        self.name, self.model, self.format = name, name.removeprefix(PREFIX), ""
        self.batch, self.max_tokens = BATCH, MAX_TOKENS
        self._config, self._remote, self._closing = config, remote, closing
        self._breaker = Breaker(_FAILURES, _LEFT_ALONE_S, _LONGEST_ALONE_S, time.monotonic)
        self._reason = ""  # of the latest failure
        self.learn(config.dimensions)

    def learn(self, dimensions: int) -> None:
        """Set the length of the vectors."""
        self.dimensions = dimensions
        digest = hashlib.sha256(f"{self._config.url}\0{self.model}\0{dimensions}".encode()).hexdigest()
        self.fingerprint = f"{self.name}:{digest[:16]}"

    def count_tokens(self, text: str) -> int:
        """Estimate how many tokens a text has; the real number is lower."""
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a search query; one attempt, since a client waits."""
        vector: Vector = self.embed([text], WAIT_S)[0]
        return vector

    def embed_texts(self, texts: Sequence[str]) -> Vector:
        """Return the unit vectors of texts; one attempt, since a client waits."""
        return self.embed(texts, WAIT_S)

    def embed_batch(self, texts: Sequence[str]) -> Vector:
        """Return the unit vectors of at most `batch` texts, with a long timeout and retries."""
        for attempt in range(RETRIES + 1):
            try:
                return self.embed(texts, TIMEOUT_S)
            except Passing as error:
                if attempt == RETRIES or self._breaker.open():
                    raise
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt) * random.uniform(0.5, 1.5)
                if self._closing.wait(max(pause_s, min(error.after_s, _LONGEST_PAUSE_S))):
                    raise
        raise AssertionError("unreachable")

    def embed(self, texts: Sequence[str], timeout_s: float) -> Vector:
        """Return the unit vectors of texts in one request; raise `RemoteFailed`."""
        if self._closing.is_set():
            raise Passing("The daemon is stopping.")
        if self._breaker.open():
            raise Passing(f"{self._reason} It failed {self._breaker.failed} times and is left alone for a moment.")
        try:
            reply = self._remote.post("/embeddings", self._encode_body(texts), timeout_s, MAX_REPLY_BYTES)
        except RequestRefused:
            self._breaker.note(worked=True)  # the server works, it only rejects this request
            raise
        except RemoteFailed as error:
            self._reason = str(error)
            self._breaker.note(worked=False)
            raise
        self._breaker.note(worked=True)
        return self._decode_vectors(reply, len(texts))

    def _encode_body(self, texts: Sequence[str]) -> bytes:
        limit = BYTES_PER_TOKEN * self.max_tokens
        cut = [text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore") for text in texts]
        asked = {"dimensions": self._config.dimensions} if self._config.dimensions else {}
        return msgspec.json.encode({"model": self.model, "input": cut, "encoding_format": "float", **asked})

    def _decode_vectors(self, reply: bytes, count: int) -> Vector:
        try:
            items = sorted(msgspec.json.decode(reply, type=_Reply).data, key=lambda item: item.index)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Passing("The embedding server's reply is not one of the embeddings API.") from None
        if [item.index for item in items] != list(range(count)):
            raise Passing(f"The embedding server answered {len(items)} vectors for {count} texts.")
        lengths = {len(item.embedding) for item in items}
        wanted = self.dimensions or min(lengths)
        if lengths != {wanted} or not wanted:
            numbers = ", ".join(map(str, sorted(lengths)))
            advice = "set `dimensions` in [embedding_api] to what the model gives"
            raise RemoteFailed(
                f"The embedding server answers vectors of {numbers} numbers instead of {wanted}; {advice}."
            )
        matrix = np.array([item.embedding for item in items])
        with np.errstate(over="ignore"):
            sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not (np.isfinite(sizes).all() and (sizes > 0).all()):
            raise RemoteFailed("The embedding server answered a vector that is no direction.")
        made: Vector = (matrix / sizes).astype(np.float32)
        return made
