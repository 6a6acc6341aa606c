"""Reading the graph of L2: which nodes are near a vector.

Everything but `Centroids` asks the reader's connection, so it sees one snapshot with the rows of the same read. What it
returns may lie in any namespace: whoever shows memories of a node applies the filter of the call to them.
"""

import threading
from collections.abc import Callable, Iterable, Sequence

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.arrays.vector_index import VectorIndex
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import unit
from memoryd.daemon.topics.tables import graph as stored

_RESCORED = 8  # more than are asked for: the codes are exact to about 0.001


def compute_similarities(connection: Connection, nodes: Iterable[int], vector: Vector) -> dict[int, float]:
    """Return the exact cosine of the centroids with a unit vector, for those nodes that exist in its space."""
    numbers, means = stored.read_centroids(connection, nodes)
    if not numbers or means.shape[1] != len(vector):
        return {}
    return dict(zip(numbers, (unit(means) @ vector).tolist(), strict=True))


class Centroids:
    """The centroids of all clusters in RAM, as int8 codes; about 400 bytes a node at 384 dimensions.

    Built at the first use and when the model changes; after that each change of the graph is taken in after its commit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model = 0
        self._index: VectorIndex | None = None
        self._late: dict[int, tuple[int, Vector] | None] = {}  # changes before it is built: its snapshot may be older

    def find_nearest(
        self, connection: Connection, model: int, vector: Vector, k: int, namespaces: frozenset[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return (cluster, exact cosine) of the `k` nearest to a unit vector among namespaces (None: all)."""
        index = self._get_ready_index(connection, model, len(vector))
        found = index.find_nearest(vector, k + _RESCORED, namespaces=namespaces).rows.tolist()
        exact = compute_similarities(connection, found, vector) if found else {}
        return sorted(exact.items(), key=lambda item: (-item[1], item[0]))[:k]

    def build_counter(self, connection: Connection, model: int, dimensions: int) -> Callable[[int], int]:
        """Return a function that counts the clusters of a namespace."""
        return self._get_ready_index(connection, model, dimensions).count

    def put(self, model: int, node: int, namespace: int, mean: Vector) -> None:
        """Take in a node that was written; call it after the commit."""
        with self._lock:
            if self._index is None:
                self._late[node] = namespace, mean
            elif self._model == model:
                _add(self._index, node, namespace, mean)

    def remove(self, node: int) -> None:
        """Forget a node that was deleted; call it after the commit."""
        with self._lock:
            if self._index is None:
                self._late[node] = None
            else:
                self._index.remove([node])

    def forget(self) -> None:
        """Read everything again at the next use."""
        with self._lock:
            self._index = None

    def _get_ready_index(self, connection: Connection, model: int, dimensions: int) -> VectorIndex:
        with self._lock:
            if self._index is None or self._model != model:
                self._index, self._model = VectorIndex(dimensions), model
                found = stored.read_kind(connection, model, stored.CLUSTER)
                _fill(connection, self._index, found)
                for node, late in self._late.items():
                    if late is None:
                        self._index.remove([node])
                    elif len(late[1]) == dimensions:
                        _add(self._index, node, *late)
                self._late.clear()
            return self._index


def _add(index: VectorIndex, node: int, namespace: int, mean: Vector) -> None:
    index.add(node, namespace, "", unit(mean[None, :])[0])


def _fill(connection: Connection, index: VectorIndex, found: Sequence[stored.StoredNode]) -> None:
    for chunk in split_evenly(found, 1024):
        part = {node.id: node.namespace for node in chunk}
        numbers, means = stored.read_centroids(connection, part)
        if numbers:
            index.extend([(number, part[number], "") for number in numbers], unit(means))
