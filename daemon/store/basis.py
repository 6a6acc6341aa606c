"""The basis in which an index codes its vectors: what distinguishes texts most comes first.

Vectors of a text model vary little in many directions. After a rotation onto the principal components (Hotelling 1933)
of the vectors at hand, a third of the dimensions, the *head*, hold some 86 % of the variance of the default model; the
*tail* holds the rest. A scan of the heads then knows each cosine but for tail . tail, and only what may still be among
the best needs its tail. Within each part the components are mixed by a random rotation: none is so large that int8
codes the others badly, and two tails of n dimensions that have nothing to do with each other have a cosine of 0 with a
deviation of 1 / sqrt(n). `Basis.compute_chance` allows for `_SIGMAS` of these.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store.vectors import Vector

_SIGMAS = 7.0

Codes = NDArray[np.int8]
Numbers = NDArray[np.float32]


class Coded(NamedTuple):
    """Vectors as int8: `head` and `tail` times `scales` are the rotated vectors, `tails` the lengths of their tails."""

    head: Codes
    tail: Codes
    scales: Numbers
    tails: Numbers


class Asked(NamedTuple):
    """A query: (head of row . head + tail of row . tail) x scale of row x `scale` + `offset` is the cosine."""

    head: Codes
    tail: Codes
    scale: float
    tail_length: float
    offset: float


class Basis(NamedTuple):
    """A rotation of vectors less their mean; None: no rotation."""

    mean: Vector
    rotation: Vector | None
    head: int  # dimensions

    def compute_chance(self) -> float:
        """Return the cosine that two tails do not reach by chance."""
        return min(1.0, _SIGMAS / math.sqrt(max(1, len(self.mean) - self.head)))

    def encode(self, vectors: Vector) -> Coded:
        """Return vectors, shape (n, dimensions), as codes."""
        return self._quantise(vectors if self.rotation is None else (vectors - self.mean) @ self.rotation)

    def encode_queries(self, queries: Vector) -> list[Asked]:
        """Return queries as codes; they keep their mean, which `offset` takes in."""
        turned: Vector = queries if self.rotation is None else queries @ self.rotation
        coded = self._quantise(turned)
        scales, tails, offsets = coded.scales.tolist(), coded.tails.tolist(), (queries @ self.mean).tolist()
        return [Asked(*one) for one in zip(coded.head, coded.tail, scales, tails, offsets, strict=True)]

    def _quantise(self, turned: NDArray[np.floating]) -> Coded:
        scales = np.maximum(np.abs(turned).max(axis=1, initial=0) / 127, 1e-12).astype(np.float32)
        codes = np.rint(turned / scales[:, None]).astype(np.int8)
        tails = np.linalg.norm(codes[:, self.head :].astype(np.float32), axis=1) * scales
        return Coded(codes[:, : self.head], codes[:, self.head :], scales, tails.astype(np.float32))

    def decode(self, codes: Coded) -> Vector:
        """Return the vectors that codes were made of, about."""
        turned: Vector = np.hstack([codes.head, codes.tail]) * codes.scales[:, None]
        return turned if self.rotation is None else turned @ self.rotation.T + self.mean


def make_plain(dimensions: int) -> Basis:
    """Return the basis of an index that is too small for another one."""
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
    """Return a rotation in a random direction, the same each time."""
    rotation, _ = np.linalg.qr(np.random.default_rng(dimensions).standard_normal((dimensions, dimensions)))
    return rotation.astype(np.float32)
