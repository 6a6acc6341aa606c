"""Measure which cosine joins texts of one subject into a node, to check the floors `join` and `merge` of a model.

`python tests/benchmarks/bench_join.py MODEL [CONVERSATIONS] [--stores N]`: clusters texts whose subject is known at
rising floors, as maintenance does (joined in order, split over 20 members, merged), and prints for each floor how the
nodes agree with the subjects. Subjects are the sessions of CONVERSATIONS (a LongMemEval-like gzip file of JSON lines;
each question's sessions are one namespace) and the modules of this repository (docstrings, comments, pages).

- nodes, alone: how many nodes there are, and the share of the texts that are the only member of theirs
- purity: the share of the texts that belong to the commonest subject of their node
- precision: the share of the pairs in one node that are of one subject; chance is that of all pairs
- recall: the share of the pairs of one subject that are in one node
- F0.5: their mean that counts precision twice as much: a node that mixes subjects brings wrong neighbours into a
  search, a subject in several nodes is still found by plain similarity

How the floors follow: `join` is the highest floor whose F0.5 is within a point of the best; `merge` is such that halves
of one session drawn by chance would be merged in every second case, a session and the nearest other one in fewer than 1
of 100.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import MAX_MEMBERS, Clusters, find_mergeable, split
from memoryd.models import Embedder, default_models_dir, load, pull

FLOORS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80)
CHECKOUT = Path(__file__).parents[2]


class Texts(NamedTuple):
    """Vectors of one namespace with the number of the subject of each."""

    vectors: Vector
    subjects: list[int]


class Agreement(NamedTuple):
    """How nodes agree with subjects, added up over namespaces."""

    texts: int = 0
    nodes: int = 0
    alone: int = 0
    pure: int = 0
    same: int = 0  # pairs in one node and of one subject
    in_node: int = 0
    in_subject: int = 0
    pairs: int = 0

    def plus(self, other: Agreement) -> Agreement:
        return Agreement(*(a + b for a, b in zip(self, other, strict=True)))

    def line(self, floor: float) -> str:
        precision, recall = self.same / max(1, self.in_node), self.same / max(1, self.in_subject)
        f_half = 1.25 * precision * recall / max(1e-9, 0.25 * precision + recall)
        cells = (self.alone / self.texts, self.pure / self.texts, precision, recall, f_half)
        return f"| {floor:.2f} | {self.nodes} | " + " | ".join(f"{100 * cell:.1f}" for cell in cells) + " |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("conversations", nargs="?", type=Path)
    parser.add_argument("--stores", type=int, default=12, help="questions whose sessions are clustered (12)")
    args = parser.parse_args()
    pull(args.model, default_models_dir())
    model = load(args.model, default_models_dir())
    _measure("this repository, subject = file", [_embedded(model, list(_repository()))])
    if args.conversations:
        stores = [_embedded(model, texts) for texts in _conversations(args.conversations, args.stores)]
        _measure("conversations, subject = session", stores)
        _halves(stores)


def _measure(title: str, stores: list[Texts]) -> None:
    print(f"\n### {title}: {sum(len(store.subjects) for store in stores)} texts\n")
    chance = _total(stores, 2.0)
    print(f"chance: {100 * chance.in_subject / chance.pairs:.1f} % of all pairs are of one subject\n")
    print("| floor | nodes | alone % | purity % | precision % | recall % | F0.5 % |\n|---|---|---|---|---|---|---|")
    for floor in FLOORS:
        print(_total(stores, floor).line(floor), flush=True)


def _total(stores: list[Texts], floor: float) -> Agreement:
    total = Agreement()
    for store in stores:
        total = total.plus(_agreement(nodes_at(store.vectors, floor), store.subjects))
    return total


def nodes_at(vectors: Vector, floor: float, merge: float = 0.93) -> list[list[int]]:
    """Return the positions of vectors in the nodes that maintenance would make of them."""
    joined: dict[int, list[int]] = {}
    for position, place in enumerate(Clusters(vectors.shape[1]).join(vectors, floor)):
        joined.setdefault(place, []).append(position)
    groups = []
    for group in joined.values():
        parts = split(vectors[group], floor) if len(group) > MAX_MEMBERS else [list(range(len(group)))]
        groups += [[group[i] for i in part] for part in parts]
    clusters = Clusters(vectors.shape[1])
    for group in groups:
        clusters.add(vectors[group].sum(axis=0), len(group))
    while pairs := find_mergeable(clusters, range(len(groups)), merge):
        for into, gone in pairs:
            clusters.merge(into, gone)
            groups[into], groups[gone] = groups[into] + groups[gone], []
    return [group for group in groups if group]


def _agreement(groups: list[list[int]], subjects: list[int]) -> Agreement:
    counted = [Counter(subjects[i] for i in group) for group in groups]
    return Agreement(
        texts=len(subjects),
        nodes=len(groups),
        alone=sum(len(group) == 1 for group in groups),
        pure=sum(max(counts.values()) for counts in counted),
        same=sum(_pairs(count) for counts in counted for count in counts.values()),
        in_node=sum(_pairs(len(group)) for group in groups),
        in_subject=sum(map(_pairs, Counter(subjects).values())),
        pairs=_pairs(len(subjects)),
    )


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _halves(stores: list[Texts]) -> None:
    """Print the cosine of centroids of halves of one session, and of the nearest other session."""
    dice = np.random.default_rng(0)
    halves: list[float] = []
    others: list[float] = []
    for vectors, subjects in stores:
        numbers = np.asarray(subjects)
        means = []
        for subject in sorted(set(subjects)):
            mine = dice.permutation(np.flatnonzero(numbers == subject))
            if len(mine) >= 4:
                a, b = (_unit(vectors[half].mean(axis=0)) for half in np.array_split(mine, 2))
                halves.append(float(a @ b))
                means.append(_unit(vectors[mine].mean(axis=0)))
        cosines = np.stack(means) @ np.stack(means).T
        np.fill_diagonal(cosines, -1)
        others += cosines.max(axis=1).tolist()
    print("\n### centroids\n\n| pairs | p1 | p10 | p50 | p90 | p99 |\n|---|---|---|---|---|---|")
    for label, values in (("halves of one session", halves), ("a session and the nearest other", others)):
        quantiles = np.quantile(values, (0.01, 0.1, 0.5, 0.9, 0.99))
        print(f"| {label} ({len(values)}) | " + " | ".join(f"{value:.2f}" for value in quantiles) + " |")


def _unit(vector: Vector) -> Vector:
    scaled: Vector = vector / np.linalg.norm(vector)
    return scaled


def _embedded(model: Embedder, texts: list[tuple[str, int]]) -> Texts:
    parts = [model.embed_texts([text for text, _ in texts[i : i + 32]]) for i in range(0, len(texts), 32)]
    return Texts(np.concatenate(parts), [subject for _, subject in texts])


def _conversations(path: Path, stores: int) -> Iterator[list[tuple[str, int]]]:
    with gzip.open(path, "rt") as file:
        records = [json.loads(line) for line in file]
    for record in records[:: max(1, len(records) // stores)][:stores]:
        yield [
            (turn["content"], number)
            for number, session in enumerate(record["sessions"])
            for turn in session["turns"]
            if turn["content"].strip()
        ]


def _repository() -> Iterator[tuple[str, int]]:
    """Yield paragraphs of 60 characters and more of documentation and docstrings, with the number of the file."""
    modules = [path for top in ("client", "daemon", "models") for path in (CHECKOUT / top).rglob("*.py")]
    for number, path in enumerate(sorted([*CHECKOUT.glob("*.md"), *modules])):
        text = path.read_text()
        pieces = text.split('"""')[1::2] if path.suffix == ".py" else text.split("\n\n")
        for piece in pieces:
            for paragraph in piece.split("\n\n"):
                if len(paragraph.strip()) >= 60:
                    yield " ".join(paragraph.split()), number


if __name__ == "__main__":
    main()
