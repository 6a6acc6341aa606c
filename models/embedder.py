"""The interface of every model, and its two implementations.

Threads: an embedder is immutable after `load`; any number of threads may call it at once, and each call uses the
calling thread (plus `threads` - 1 of ONNX Runtime). Texts are run one at a time: on one core, batching gains nothing
from 32 tokens on; there is no padding to compute, and the vector of a text cannot depend on others in a batch.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoryd.models.calibration import Calibration, Floors, calibrate, edition
from memoryd.models.errors import ModelBroken
from memoryd.models.folder import (
    ONNX_AS_IS,
    Manifest,
    check_sizes,
    describe_damage,
    model_folder,
    read_manifest,
    write_manifest,
)

Embeddings = NDArray[np.float32]


class Embedder(Protocol):
    """A loaded model."""

    @property
    def name(self) -> str:
        """The name of the installed model."""

    @property
    def fingerprint(self) -> str:
        """A short text that changes whenever the model's vectors change."""

    @property
    def format(self) -> str:
        """The storage format of its weights; empty if unknown."""

    @property
    def dimensions(self) -> int:
        """Numbers per vector."""

    @property
    def max_tokens(self) -> int:
        """The token limit, including special tokens; the rest of a text is ignored."""

    @property
    def floors(self) -> Floors:
        """The cosines from which two texts count as duplicates, as relevant or as related."""

    def embed_query(self, text: str) -> Embeddings:
        """Return the unit vector of a search query, shape (dimensions,)."""

    def embed_texts(self, texts: Sequence[str]) -> Embeddings:
        """Return the unit vectors of stored texts, shape (texts, dimensions)."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text, without regard to the limit."""


class _Loaded(ABC):
    """Base of both implementations: manifest, tokenizer, prefixes."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        from memoryd.models.tokens import Tokens

        self.name, self.fingerprint, self.format = manifest.name, manifest.fingerprint, manifest.format
        self.dimensions, self.max_tokens = manifest.dimensions, manifest.max_tokens
        self.calibration = manifest.calibration
        self._manifest = manifest
        self._tokens = Tokens(folder / "tokenizer.json", manifest.max_tokens, special=manifest.kind == "onnx")

    @property
    def floors(self) -> Floors:
        if self.calibration is None:
            raise ValueError("The model is not calibrated.")
        return self.calibration.floors

    def embed_query(self, text: str) -> Embeddings:
        return self._embed(self._manifest.query_prefix + text)

    def embed_texts(self, texts: Sequence[str]) -> Embeddings:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed(self._manifest.document_prefix + text)
        return vectors

    def count_tokens(self, text: str) -> int:
        return self._tokens.count(text)

    @abstractmethod
    def _embed(self, text: str) -> Embeddings:
        """Return the unit vector of a text that has its prefix."""


class OnnxEmbedder(_Loaded):
    """A transformer run by ONNX Runtime."""

    def __init__(self, manifest: Manifest, folder: Path, threads: int) -> None:
        """Open the session; raise ModelBroken if the file cannot be run."""
        from memoryd.models.session import open_session

        super().__init__(manifest, folder)
        self._session = open_session(folder / "model.onnx", threads, fuse=manifest.format == ONNX_AS_IS)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._output = self._session.get_outputs()[0].name

    def _embed(self, text: str) -> Embeddings:
        ids = np.array([self._tokens.ids(text)], np.int64)
        feeds = {"input_ids": ids}
        if "attention_mask" in self._inputs:
            feeds["attention_mask"] = np.ones_like(ids)
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        output: Embeddings = self._session.run([self._output], feeds)[0][0]
        return output if output.ndim == 1 and len(feeds) == 1 else self._pool(output)

    def _pool(self, output: Embeddings) -> Embeddings:
        """Reduce the tokens of a foreign graph to one unit vector."""
        if output.ndim == 2:
            output = output[0] if self._manifest.pooling == "cls" else output.mean(axis=0)
        return _unit(output.astype(np.float32))


class StaticEmbedder(_Loaded):
    """A table with one vector per token; a text is the mean of its tokens."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        """Map the table into memory; pages are read when a token first needs them."""
        super().__init__(manifest, folder)
        self._table: NDArray[np.float16] = np.load(folder / "table.npy", mmap_mode="r")
        if self._table.ndim != 2:
            raise ModelBroken("table.npy is not a table.")

    def _embed(self, text: str) -> Embeddings:
        ids = self._tokens.ids(text) or [0]  # a text without tokens counts as one unknown token
        return _unit(self._table[ids].astype(np.float32).mean(axis=0))


def _unit(vector: Embeddings) -> Embeddings:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length > 0 else np.full_like(vector, len(vector) ** -0.5)


def load(name: str, models_dir: Path, threads: int = 1) -> Embedder:
    """Open an installed model; calibrate it unless it was calibrated with this version of the bundled texts.

    Checks the sizes of its files, not their hashes (`verify` does that). Raises ModelMissing when it is not installed
    and ModelBroken when a file is damaged or cannot be run; both messages name the command that fixes it.
    """
    manifest, folder = read_manifest(name, models_dir), model_folder(name, models_dir)
    check_sizes(manifest, folder)
    try:
        embedder = open_folder(manifest, folder, threads)
        if manifest.calibration is None or manifest.calibration.edition != edition():
            embedder.calibration = calibrate_model(embedder)
            with contextlib.suppress(OSError):  # a folder that cannot be written: it is calibrated at each start
                write_manifest(replace(manifest, calibration=embedder.calibration), folder)
        return embedder
    except (ModelBroken, OSError, ValueError) as error:
        raise describe_damage(name, str(error).rstrip(".")) from error


def calibrate_model(embedder: Embedder) -> Calibration:
    """Calibrate a model by embedding the bundled set of some 450 short texts."""

    def embed_questions(texts: Sequence[str]) -> Embeddings:
        return np.stack([embedder.embed_query(text) for text in texts])

    return calibrate(embed_questions, embedder.embed_texts)


def open_folder(manifest: Manifest, folder: Path, threads: int) -> OnnxEmbedder | StaticEmbedder:
    """Open the model in any folder; the caller has checked its files."""
    if manifest.kind == "static":
        return StaticEmbedder(manifest, folder)
    return OnnxEmbedder(manifest, folder, threads)
