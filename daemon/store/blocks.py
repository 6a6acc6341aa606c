"""Rows of int8 codes in blocks: growing adds a block and copies nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.daemon.store.positions import Places, find_distinct

Codes = NDArray[np.int8]
Reader = Callable[[str], NDArray[Any]]  # of an array by its name

_SIZE = 32_768  # rows of a block; its pages take no memory before they are written


class Blocks:
    """Codes by position, each of `width` numbers."""

    def __init__(self, width: int, blocks: list[Codes] | None = None) -> None:
        self.width = width
        self._blocks: list[Codes] = [] if blocks is None else blocks

    def view(self) -> "Blocks":
        """Return the present blocks; what is written into them later is seen."""
        return Blocks(self.width, list(self._blocks))

    def make_room(self, count: int) -> None:
        """Have a place for so many rows."""
        while len(self._blocks) * _SIZE < count:
            self._blocks.append(np.zeros((_SIZE, self.width), np.int8))

    def write(self, places: Places, codes: Codes) -> None:
        """Write the codes of some positions."""
        blocks = places // _SIZE
        for number in find_distinct(blocks).tolist():
            inside = blocks == number
            self._blocks[number][places[inside] % _SIZE] = codes[inside]

    def gather(self, places: Places) -> Codes:
        """Return the codes of positions in rising order, shape (places, width)."""
        ends = np.searchsorted(places, np.arange(1, len(self._blocks) + 1) * _SIZE).tolist()
        parts = [
            self._blocks[number][places[start:end] - number * _SIZE]
            for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
            if end > start
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.int8)

    def dump(self, name: str, count: int) -> dict[str, Codes]:
        """Return the codes of the first `count` positions, block by block."""
        parts = zip(range(0, count, _SIZE), self._blocks, strict=False)
        return {f"{name}{start // _SIZE}": block[: count - start] for start, block in parts}

    def restore(self, name: str, read: Reader, kept: Places, places: Places) -> None:
        """Write what `dump` returned: what was at each of `kept` to one of `places`."""
        for start in range(0, int(kept.max(initial=-1)) + 1, _SIZE):
            first, end = np.searchsorted(kept, (start, start + _SIZE)).tolist()
            self.write(places[first:end], read(f"{name}{start // _SIZE}")[kept[first:end] - start])

    def multiply(self, code: Codes, count: int) -> NDArray[np.float32]:
        """Return the dot products of a code with those of the first `count` positions."""
        found = np.empty(count, np.float32)
        for start, block in zip(range(0, count, _SIZE), self._blocks, strict=False):
            part = found[start : start + _SIZE]
            part[:] = _multiply(code, block[: len(part)])
        return found

    def multiply_at(self, code: Codes, places: Places) -> NDArray[np.float32]:
        """Return the dot products of a code with those of some positions."""
        order = np.argsort(places, kind="stable") if len(places) and (np.diff(places) < 0).any() else None
        found = _multiply(code, self.gather(places if order is None else places[order])).astype(np.float32)
        if order is None:
            return found
        back = np.empty_like(found)
        back[order] = found
        return back


def _multiply(code: Codes, codes: Codes) -> NDArray[np.float64]:
    if len(codes) == 0 or len(code) == 0:
        return np.zeros(len(codes))
    products: NDArray[np.float64] = np.asarray(simsimd.cdist(code[None, :], codes, metric="dot"))[0]
    return products
