"""A draft of one namespace's clusters: what they will be once the steps planned so far are applied.

It starts from the nodes on disk, takes in the backlog, splits and merges, and turns each change into steps. Nothing is
written here. Vectors and members are read as they are needed, each in a short read of its own: steps may be applied
while the plan continues, so a node's members are those on disk together with those that the draft added.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.work import Step
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import MAX_MEMBERS, Clusters, find_mergeable, split
from memoryd.daemon.topics.names import LONGEST, Namer, NodeNamer, take_first_words
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables import graph_reading
from memoryd.daemon.topics.tables.graph import StoredNode
from memoryd.daemon.topics.writes import Coming, Drop, Merge, NameNode, PutNode

_FIRST = 400  # characters that a first label is made of
CHUNK = 1024  # rows that join before full nodes are split and steps are given
_NAMED = 64  # nodes whose texts are read at once
_RENAMED_EVERY = 4  # members that come, after the first few: one more hardly changes what a node is about


class NextNumbers(NamedTuple):
    """The numbers for new rows. One for all namespaces of a plan: they are used before any of it is written."""

    nodes: Iterator[int]
    topics: Iterator[int]


class Setting(NamedTuple):
    """What a draft works with: where the rows are, in which model's space, with which thresholds."""

    store: Store
    names: NodeNamer
    generation: Generation
    namespace: int
    numbers: NextNumbers
    join: float
    merge: float


class Draft:
    """`clusters` holds the arithmetic; the lists beside it are by the same place."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.clusters = Clusters(setting.generation.index.dimensions)
        self.ids: list[int] = []
        self.labels: list[str] = []
        self.topics: list[int | None] = []
        self.changed: dict[int, None] = {}  # places that are to be compared with the others, in order
        self.places: dict[int, int] = {}  # by node
        self._whole: set[int] = set()  # places whose members are all in `_added`
        self._added: dict[int, list[int]] = {}
        self._merged: dict[int, list[int]] = {}  # places that went into a place
        self._namer: Namer | None = None
        self._steady: set[int] = set()  # places that have grown, but not by enough to be named again
        self.heirs: dict[int, int] = {}  # node that no longer exists → the one it went into

    # Nodes that are there ---------------------------------------------------------------------------------------------

    def load(self, nodes: Sequence[StoredNode]) -> Iterator[Step]:
        """Take in nodes on disk; yield steps for those whose members are not what their centroid was made of."""
        fresh = [node for node in nodes if node.id not in self.places and node.id not in self.heirs]
        for chunk in split_evenly(fresh, CHUNK):
            part = {node.id: node for node in chunk}
            with self.setting.store.reading() as connection:
                numbers, means = stored.read_centroids(connection, part)
                unsettled = [node.id for node in part.values() if not node.settled]
                members = stored.read_members(connection, unsettled) if unsettled else {}
            for number, mean in zip(numbers, means, strict=True):
                node = part[number]
                self._note_place(self.clusters.add(mean * np.float32(node.size), node.size), number, node)
            for number in unsettled:
                yield from self._check(part[number], members.get(number, []))

    def _note_place(self, place: int, number: int, node: StoredNode | None = None) -> None:
        self.places[number] = place
        self.ids.append(number)
        self.labels.append(node.label if node else "")
        self.topics.append(node.topic if node else None)

    def _check(self, node: StoredNode, rows: list[int]) -> Iterator[Step]:
        """Compare an unsettled node with its members: none, other ones than its centroid says, or as it should be."""
        place = self.places.get(node.id)
        if place is None:
            return
        if not rows:
            self.clusters.replace(place, np.zeros_like(self.clusters.units[place]), 0)
            yield Step("drop", f"node {node.id}", "it has no members any more", Drop(node.id))
            return
        self.changed[place] = None
        if len(rows) != node.size:
            _, vectors = self._read_vectors(rows)
            total = vectors.mean(axis=0) * len(rows) if len(vectors) else self.clusters.mean(place) * len(rows)
            self.clusters.replace(place, total, len(rows))
            reason = f"its centroid was made of {node.size} memories, it has {len(rows)}"
            yield Step("recentre", f"node {node.id}", reason, self._put(place, node.size, ()))
        if len(rows) > MAX_MEMBERS:
            yield from self._divide([place], {place: len(rows)}, {})

    # Joining and splitting --------------------------------------------------------------------------------------------

    def join(self, rows: Sequence[int]) -> Iterator[Step]:
        """Put memories of the backlog into nodes in order, splitting what grows too large."""
        for part in split_evenly(rows, CHUNK):
            with self.setting.store.reading() as connection:
                waiting, vectors = stored.read_vectors(connection, self.setting.generation.model, part)
            if waiting:
                yield from self._join({item.row: item.text_hash for item in waiting}, vectors)

    def _join(self, hashes: dict[int, bytes], vectors: Vector) -> Iterator[Step]:
        before = self.clusters.sizes.copy()
        old = self.clusters.count
        touched: dict[int, None] = {}
        for row, place in zip(hashes, self.clusters.join(vectors, self.setting.join), strict=True):
            if place == len(self.ids):
                self._add_place(place)
            self._added.setdefault(place, []).append(row)
            touched[place] = None
        was = {place: int(before[place]) if place < old else 0 for place in touched}
        yield from self._divide(touched, was, hashes)

    def _add_place(self, place: int) -> None:
        self._note_place(place, next(self.setting.numbers.nodes))
        self._whole.add(place)

    def _divide(self, touched: Iterable[int], was: dict[int, int], hashes: dict[int, bytes]) -> Iterator[Step]:
        """Split what is too large among the touched places; yield what each has become. New nodes come first."""
        kept: list[Step] = []
        for place in list(touched):
            self.changed[place] = None
            if self.clusters.sizes[place] > MAX_MEMBERS:
                yield from self._split(place, was[place], hashes)
            self._label(place)
            rows = [row for row in self._added.get(place, []) if row in hashes]
            data = self._put(place, was[place], tuple(Coming(row, hashes[row], 0) for row in rows))
            if was[place] == 0:
                reason = f"{_format_memories(len(rows))} found it: {_shorten(self.labels[place])}"
                yield Step("found", f"node {self.ids[place]}", reason, data)
            elif rows or data.size != was[place]:
                if place not in self._whole and _keeps_name(was[place], data.size):
                    self._steady.add(place)
                reason = _format_growth(was[place], data.size, len(rows))
                kept.append(Step("join", f"node {self.ids[place]}", reason, data))
        yield from kept

    def _split(self, place: int, was: int, hashes: dict[int, bytes]) -> Iterator[Step]:
        """Divide a place; the largest part keeps it, the others become nodes."""
        rows, vectors = self._read_vectors(self.list_rows([place])[place])
        parts = sorted(split(vectors, self.setting.join), key=lambda part: (-len(part), part))
        node = self.ids[place]
        for part in parts[1:]:
            mine = [rows[i] for i in part]
            made = self.clusters.add(vectors[part].sum(axis=0), len(part))
            self._add_place(made)
            self._added[made] = mine
            self._label(made)
            self.changed[made] = None
            coming = tuple(Coming(row, hashes.get(row, b""), 0 if row in hashes else node) for row in mine)
            reason = f"{_format_memories(len(mine))} of the {len(rows)} of node {node}: {_shorten(self.labels[made])}"
            action = "split" if was else "found"
            yield Step(action, f"node {self.ids[made]}", reason, self._put(made, 0, coming))
        self._added[place] = [rows[i] for i in parts[0]]
        self._whole.add(place)
        self._merged.pop(place, None)
        self.clusters.replace(place, vectors[parts[0]].sum(axis=0), len(parts[0]))

    def _put(self, place: int, was: int, coming: tuple[Coming, ...]) -> PutNode:
        return PutNode(
            node=self.ids[place],
            namespace=self.setting.namespace,
            model=self.setting.generation.model,
            was=was,
            size=int(self.clusters.sizes[place]),
            coming=coming,
            mean=self.clusters.mean(place),
            label=self.labels[place],
        )

    def _label(self, place: int) -> None:
        """Label a new place with the beginning of its first member."""
        if not self.labels[place]:
            first = self._added[place][0]
            with self.setting.store.reading() as connection:
                text = graph_reading.read_texts(connection, [first], _FIRST).get(first, "")
            self.labels[place] = take_first_words(text) or f"node {self.ids[place]}"

    # Merging ----------------------------------------------------------------------------------------------------------

    def merge(self) -> Iterator[Step]:
        """Merge what changed with what is alike, until no two nodes are both alike and small enough."""
        waiting = list(self.changed)
        while waiting:
            pairs = find_mergeable(self.clusters, [p for p in waiting if self.clusters.sizes[p]], self.setting.merge)
            waiting = []
            for into, gone in pairs:
                yield self._merge(into, gone)
                waiting.append(into)

    def _merge(self, into: int, gone: int) -> Step:
        sizes = int(self.clusters.sizes[into]), int(self.clusters.sizes[gone])
        cosine = float(self.clusters.units[into] @ self.clusters.units[gone])
        self.clusters.merge(into, gone)
        self._merged.setdefault(into, []).append(gone)
        self.heirs[self.ids[gone]] = self.ids[into]
        self.changed[into] = None
        self.changed.pop(gone, None)
        self._steady.discard(into)
        data = Merge(
            self.ids[into],
            self.ids[gone],
            sizes,
            self.setting.namespace,
            self.setting.generation.model,
            self.clusters.mean(into),
        )
        reason = f"node {self.ids[gone]} becomes part of it: cosine {cosine:.2f}"
        return Step("merge", f"node {self.ids[into]}", reason, data)

    # Names ------------------------------------------------------------------------------------------------------------

    def name(self) -> Iterator[Step]:
        """Name the nodes that changed; with that they are settled."""
        places = [place for place in self.changed if self.clusters.sizes[place]]
        for part in split_evenly(places, _NAMED):
            for place, label in zip(part, self._label_places(part), strict=True):
                self.labels[place] = label or self.labels[place]
                name = NameNode(self.ids[place], int(self.clusters.sizes[place]), self.labels[place])
                yield Step("name", f"node {self.ids[place]}", _shorten(self.labels[place]), name)

    def _label_places(self, places: Sequence[int]) -> list[str]:
        rows = self.list_rows([place for place in places if place not in self._steady])
        texts = self.read_texts([row for members in rows.values() for row in members])
        groups = [[texts[row] for row in members if row in texts] for members in rows.values()]
        made = dict(zip(rows, self._name(groups), strict=True))
        return [made.get(place, self.labels[place]) for place in places]

    def _name(self, groups: Sequence[Sequence[str]]) -> list[str]:
        with self.setting.store.reading() as connection:
            if self._namer is None:
                self._namer = self.setting.names.build_namer(connection, self.setting.namespace)
            return self._namer(connection, groups)

    def read_texts(self, rows: Iterable[int]) -> dict[int, str]:
        """Return the texts of memories."""
        with self.setting.store.reading() as connection:
            return graph_reading.read_texts(connection, rows, LONGEST)

    def label_of(self, rows: Sequence[int]) -> str:
        """Name some memories together."""
        texts = self.read_texts(rows)
        return self._name([[texts[row] for row in rows if row in texts]])[0]

    # Members ----------------------------------------------------------------------------------------------------------

    def list_rows(self, places: Iterable[int]) -> dict[int, list[int]]:
        """Return the memories of places, as they will be, by rising row number."""
        wanted = {place: self._list_sources(place) for place in places}
        nodes = [self.ids[p] for sources in wanted.values() for p in sources if p not in self._whole]
        with self.setting.store.reading() as connection:
            members = stored.read_members(connection, nodes) if nodes else {}
        return {
            place: sorted(
                {
                    row
                    for p in sources
                    for row in (*self._added.get(p, ()), *(() if p in self._whole else members.get(self.ids[p], ())))
                }
            )
            for place, sources in wanted.items()
        }

    def _list_sources(self, place: int) -> list[int]:
        """Return a place and all that went into it."""
        return [place, *(p for gone in self._merged.get(place, ()) for p in self._list_sources(gone))]

    def _read_vectors(self, rows: Sequence[int]) -> tuple[list[int], Vector]:
        with self.setting.store.reading() as connection:
            found, vectors = stored.read_vectors(connection, self.setting.generation.model, rows)
        return [item.row for item in found], vectors


def _keeps_name(was: int, now: int) -> bool:
    """Return whether the name of a node of `was` members serves for `now`."""
    return was > _RENAMED_EVERY and was // _RENAMED_EVERY == now // _RENAMED_EVERY


def _format_memories(number: int) -> str:
    """Return a number of memories."""
    return "1 memory" if number == 1 else f"{number} memories"


def _format_growth(was: int, now: int, joined: int) -> str:
    """Return what became of a node's size when memories joined it, or left it in a split."""
    if not joined:
        return f"it keeps {now} of {was} memories"
    return f"{_format_memories(joined)} joined, it has {now}" + ("" if now == was + joined else " after a split")


def _shorten(label: str) -> str:
    """Return a label as it fits into a reason."""
    return label if len(label) <= 48 else label[:47].rstrip() + "…"
