"""Find contradictions across machines: between a memory of a shared root and any other, which no machine has linked.

The rules are those of an add (`memories/duplicates`): two statements of one namespace and type, on the same subject. To
compare two texts takes almost a millisecond, so results are cached, and one call compares only the nearest.
"""

from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np

from memoryd.daemon.agreement.statements import find_contradiction
from memoryd.daemon.language.talk import is_turn
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, L3
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Floors

_MAX_COMPARED = 50  # pairs of texts in one call; later calls compare the others
_MAX_KNOWN = 10_000


class Contradictions:
    """Finds them; `core.state(Contradictions)`. What is cached are hashes, no texts."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], bool] = {}

    def find(
        self,
        rows: Sequence[Row],
        vectors: Mapping[int, Vector],
        floors: Floors,
        heads: Container[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return (newer, older) rows that contradict each other, one of a root and, if given, one of `heads`."""
        statements = [
            row for row in rows if row.row in vectors and row.tier != DOCUMENTS and row.key is None and not is_turn(row)
        ]
        if not any(row.tier == L3 for row in statements):
            return []
        found: list[tuple[int, int]] = []
        compared = 0
        for older, newer in _pair(statements, np.stack([vectors[row.row] for row in statements]), floors):
            if heads is not None and older.row not in heads and newer.row not in heads:
                continue
            key = older.content_hash, newer.content_hash
            if key not in self._known:
                compared += 1
                if compared > _MAX_COMPARED:
                    continue
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[key] = bool(find_contradiction(older.content, newer.content))
            if self._known.get(key):
                found.append((newer.row, older.row))
        return found


def _pair(statements: Sequence[Row], matrix: Vector, floors: Floors) -> Iterator[tuple[Row, Row]]:
    """Yield (older, newer) statements on the same subject, at least one of a root, the nearest first."""
    cosines = np.triu(matrix @ matrix.T, 1)
    pairs = np.argwhere(cosines >= min(floors.duplicate, floors.join))
    for one, other in pairs[np.argsort(-cosines[tuple(pairs.T)], kind="stable")].tolist():
        older, newer = sorted((statements[one], statements[other]), key=lambda row: row.created_at)
        is_apart = L3 in (older.tier, newer.tier)
        is_same_kind = (older.namespace, older.type) == (newer.namespace, newer.type)
        if is_apart and is_same_kind and older.created_at < newer.created_at:
            yield older, newer
