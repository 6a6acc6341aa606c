"""The rotated basis of the vector index, whose first dimensions distinguish texts most, and blocks of codes.

Vectors of a text model vary little in many directions. After a rotation onto the principal components (Hotelling 1933)
of the indexed vectors, a third of the dimensions, the *head*, hold some 86 % of the variance of the default model; the
*tail* holds the rest. A scan of the heads gives each cosine except for the part tail . tail, and only vectors that may
still be among the best need their tails. Within head and tail a random rotation mixes the components, so that no large
component makes int8 too coarse for the others, and the cosine of two unrelated tails of n dimensions is 0 with a
standard deviation of 1 / sqrt(n). `Basis.compute_chance` allows for `_SIGMAS` of these deviations.

Codes are stored in blocks of rows, so that growing adds a block and copies nothing.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.daemon.arrays.positions import Places, find_distinct
from memoryd.daemon.store.vectors import Vector

_SIGMAS = 7.0
_BLOCK_ROWS = 32_768  # pages of a block take no memory before they are written

Codes = NDArray[np.int8]
FloatArray = NDArray[np.float32]
ArrayReader = Callable[[str], NDArray[Any]]  # returns an array by its name


class Coded(NamedTuple):
    """Vectors as int8: `head` and `tail` times `scales` are the rotated vectors, `tails` the lengths of their tails."""

    head: Codes
    tail: Codes
    scales: FloatArray
    tails: FloatArray


class ScanQuery(NamedTuple):
    """A query: (head of row . head + tail of row . tail) x scale of row x `scale` + `offset` is the cosine."""

    head: Codes
    tail: Codes
    scale: float
    tail_length: float
    offset: float


class Basis(NamedTuple):
    """The mean of the vectors, and the rotation of what is left without it; None: neither is applied."""

    mean: Vector
    rotation: Vector | None
    head: int  # dimensions

    def compute_chance(self) -> float:
        """Return a cosine that unrelated tails do not reach by chance."""
        return min(1.0, _SIGMAS / math.sqrt(max(1, len(self.mean) - self.head)))

    def encode(self, vectors: Vector) -> Coded:
        """Return vectors, shape (n, dimensions), as codes."""
        return self._quantise(vectors if self.rotation is None else (vectors - self.mean) @ self.rotation)

    def encode_queries(self, queries: Vector) -> list[ScanQuery]:
        """Return queries as codes. The mean is not subtracted from queries; `offset` is their product with it."""
        rotated: Vector = queries if self.rotation is None else queries @ self.rotation
        coded = self._quantise(rotated)
        scales, tails, offsets = coded.scales.tolist(), coded.tails.tolist(), (queries @ self.mean).tolist()
        return [ScanQuery(*one) for one in zip(coded.head, coded.tail, scales, tails, offsets, strict=True)]

    def _quantise(self, rotated: NDArray[np.floating]) -> Coded:
        scales = np.maximum(np.abs(rotated).max(axis=1, initial=0) / 127, 1e-12).astype(np.float32)
        codes = np.rint(rotated / scales[:, None]).astype(np.int8)
        tails = np.linalg.norm(codes[:, self.head :].astype(np.float32), axis=1) * scales
        return Coded(codes[:, : self.head], codes[:, self.head :], scales, tails.astype(np.float32))

    def decode(self, codes: Coded) -> Vector:
        """Return approximately the vectors that were encoded."""
        rotated: Vector = np.hstack([codes.head, codes.tail]) * codes.scales[:, None]
        return rotated if self.rotation is None else rotated @ self.rotation.T + self.mean


def make_plain(dimensions: int) -> Basis:
    """Return the basis without a rotation, for an index that is still small."""
    return Basis(np.zeros(dimensions, np.float32), None, -(-dimensions // 3))


def learn(vectors: Vector) -> Basis:
    """Return the basis of the principal components of some vectors, shape (n, dimensions)."""
    dimensions = vectors.shape[1]
    head = make_plain(dimensions).head
    mean = vectors.mean(axis=0)
    _, components = np.linalg.eigh(np.cov((vectors - mean).T))
    rotation = components[:, ::-1].astype(np.float32)
    mixed = np.hstack([rotation[:, :head] @ _make_mixer(head), rotation[:, head:] @ _make_mixer(dimensions - head)])
    return Basis(mean, np.ascontiguousarray(mixed), head)


def _make_mixer(dimensions: int) -> Vector:
    """Return a random rotation, the same at each call."""
    rotation, _ = np.linalg.qr(np.random.default_rng(dimensions).standard_normal((dimensions, dimensions)))
    return rotation.astype(np.float32)


class Blocks:
    """Codes by position, each of `width` numbers."""

    def __init__(self, width: int, blocks: list[Codes] | None = None) -> None:
        self.width = width
        self._blocks: list[Codes] = [] if blocks is None else blocks

    def view(self) -> "Blocks":
        """Return the present blocks without copying them: later writes to them are visible."""
        return Blocks(self.width, list(self._blocks))

    def make_room(self, count: int) -> None:
        """Grow to at least `count` rows."""
        while len(self._blocks) * _BLOCK_ROWS < count:
            self._blocks.append(np.zeros((_BLOCK_ROWS, self.width), np.int8))

    def write(self, places: Places, codes: Codes) -> None:
        """Write the codes of some positions."""
        blocks = places // _BLOCK_ROWS
        for number in find_distinct(blocks).tolist():
            inside = blocks == number
            self._blocks[number][places[inside] % _BLOCK_ROWS] = codes[inside]

    def gather(self, places: Places) -> Codes:
        """Return the codes of positions in ascending order, shape (places, width)."""
        ends = np.searchsorted(places, np.arange(1, len(self._blocks) + 1) * _BLOCK_ROWS).tolist()
        parts = [
            self._blocks[number][places[start:end] - number * _BLOCK_ROWS]
            for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
            if end > start
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.int8)

    def dump(self, name: str, count: int) -> dict[str, Codes]:
        """Return the codes of the first `count` positions, block by block."""
        parts = zip(range(0, count, _BLOCK_ROWS), self._blocks, strict=False)
        return {f"{name}{start // _BLOCK_ROWS}": block[: count - start] for start, block in parts}

    def restore(self, name: str, read: ArrayReader, old_places: Places, places: Places) -> None:
        """Write the codes that `dump` returned for `old_places` to `places`."""
        for start in range(0, int(old_places.max(initial=-1)) + 1, _BLOCK_ROWS):
            first, end = np.searchsorted(old_places, (start, start + _BLOCK_ROWS)).tolist()
            self.write(places[first:end], read(f"{name}{start // _BLOCK_ROWS}")[old_places[first:end] - start])

    def multiply(self, code: Codes, count: int) -> NDArray[np.float32]:
        """Return the dot products of a code with those of the first `count` positions."""
        products = np.empty(count, np.float32)
        for start, block in zip(range(0, count, _BLOCK_ROWS), self._blocks, strict=False):
            part = products[start : start + _BLOCK_ROWS]
            part[:] = _multiply(code, block[: len(part)])
        return products

    def multiply_at(self, code: Codes, places: Places) -> NDArray[np.float32]:
        """Return the dot products of a code with those of some positions."""
        order = np.argsort(places, kind="stable") if len(places) and (np.diff(places) < 0).any() else None
        products = _multiply(code, self.gather(places if order is None else places[order])).astype(np.float32)
        if order is None:
            return products
        unsorted = np.empty_like(products)
        unsorted[order] = products
        return unsorted


def _multiply(code: Codes, codes: Codes) -> NDArray[np.float64]:
    if len(codes) == 0 or len(code) == 0:
        return np.zeros(len(codes))
    products: NDArray[np.float64] = np.asarray(simsimd.cdist(code[None, :], codes, metric="dot"))[0]
    return products
