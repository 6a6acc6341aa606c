"""Fit the weights by which a text is found to change a saved memory (`daemon/agreement/changes`), or show their worth.

python tests/quality/fit_changes.py [--write]

The examples are `seen.jsonl` and `more.jsonl` of `tests/data/changes`, and `tests/data/later/examples.txt`. It prints
what is found of each hand's part of `more.jsonl` by weights fitted without it: beside how many memories the right turn
would be told, and beside how many that hold any turn would be; then, in stores of `STORE` memories, how often the right
one is among the nearest, and how many memories get a turn of another case. `--write` fits on all and writes
`changes.json`.

A logistic regression with a ridge. Which sentence of a turn tells of the change is not marked: it is the one that has
the highest score in the round before. A memory with the sessions of the memories nearest to it gives further examples
of what changes nothing.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from holds import read_half
from numpy.typing import NDArray
from printing import format_table
from sets import read_lines

from memoryd.client.transport.paths import models_dir
from memoryd.daemon.agreement import changes
from memoryd.daemon.agreement.changes import Said
from memoryd.daemon.store.later import LIKELY, MAYBE
from memoryd.models import embedder
from memoryd.models.catalog import DEFAULT

DATA = Path(__file__).parents[1] / "data"
TABLE = Path(changes.__file__).with_suffix(".json")
CHANGED = ("old-value", "other-value", "other-words")
EASY = "easy"
HANDS = "abcd"  # the first letter of ids
STORE = 60
BEFORE, NEAREST = 2, 12  # turns and memories, as `conversations/comparing` has them
OTHERS = 3  # other memories with which a session is an example
LEAST_CASES = 3  # that a sign is in, to get a weight
LEAST_WEIGHT = 0.04
RIDGE = 30.0
WORDS = 2.0  # how much less the weights of words are held back than those of other signs
ROUNDS, NEWTON, CONJUGATE, TINY = 5, 6, 40, 1e-6
PLAIN, UNSURE, UNRELATED = 1.0, 0.15, 0.03  # weights of examples: the marked turn, other turns, other memories

Numbers = NDArray[np.float64]


class Turn(msgspec.Struct):
    role: str
    content: str


class Example(msgspec.Struct, kw_only=True):
    """A row of `more.jsonl`; `right` are all turns that tell of the change."""

    id: str
    label: str
    kind: str
    language: str = "en"
    saved: str
    turns: list[Turn]
    statement: int
    right: list[int] = []

    @property
    def group(self) -> str:
        return self.kind if self.kind in (*CHANGED, EASY) else "hard"


class Row(NamedTuple):
    """A sentence of a turn of an example, and its signs with a memory."""

    example: int
    turn: int
    at: int
    signs: dict[str, float]


class Part(NamedTuple):
    """Examples by one hand, their rows, and those of their sessions with other memories."""

    examples: list[Example]
    rows: list[Row]
    unrelated: list[Row]


def main() -> None:
    """Fit, and print or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the weights of a fit on all examples")
    is_writing = parser.parse_args().write
    parts = {name: make_part(examples) for name, examples in read_examples().items()}
    if is_writing:
        table = fit(list(parts.values()))
        TABLE.write_bytes(msgspec.json.format(msgspec.json.encode(table, order="sorted"), indent=1))
        return
    for name in HANDS:
        table = fit([part for other, part in parts.items() if other != name])
        print(f"{name}: fitted without it, {len(table['weights'])} weights")
        print_worth(parts[name], table)
        print(describe_stores(parts[name].examples, table))


def read_examples() -> dict[str, list[Example]]:
    """Return the examples by hand."""
    more = list(read_lines(DATA / "changes" / "more.jsonl", Example, "an example"))
    found = {hand: [one for one in more if one.id.startswith(hand)] for hand in HANDS}
    for one in more:
        one.right = [one.statement]
    found["seen"] = [
        Example(
            id=one.id,
            label=one.label,
            kind=one.kind,
            saved=one.saved.content,
            turns=[Turn(turn.role, turn.content) for turn in one.turns],
            statement=one.statement,
            right=[one.statement, *one.also],
        )
        for one in read_half("changes", "seen")
    ]
    found["made"] = list(read_made())
    return found


def read_made() -> Iterator[Example]:
    """Yield what was made up for rules."""
    roles = {"u": "user", "a": "assistant"}
    for number, line in enumerate((DATA / "later" / "examples.txt").read_text(encoding="utf-8").splitlines()):
        if not line.startswith("#"):
            kind, _, saved, *said = line.split(" | ")
            turns = [Turn(roles[role], text) for role, _, text in (one.partition(": ") for one in said)]
            label = "changes" if kind in CHANGED else "holds"
            last = len(turns) - 1
            yield Example(
                id=f"made{number}", label=label, kind=kind, saved=saved, turns=turns, statement=last, right=[last]
            )


# Signs ---------------------------------------------------------------------------------------------------------------


@lru_cache(1)
def load() -> embedder.Embedder:
    return embedder.load(DEFAULT, models_dir())


@lru_cache(None)
def embed(text: str) -> Any:
    return load().embed_texts([text])[0]


def make_part(examples: list[Example]) -> Part:
    rows = [row for number in range(len(examples)) for row in list_rows(examples, number, number)]
    saved = np.stack([embed(one.saved) for one in examples])
    unrelated = [
        row
        for number, one in enumerate(examples)
        for other in np.argsort(-np.max(measure_turns(saved, one), axis=0))[: OTHERS + 1]
        if other != number
        for row in list_rows(examples, number, int(other))
    ]
    return Part(examples, rows, unrelated)


def list_before(turns: Sequence[Turn], turn: int) -> tuple[str, ...]:
    return tuple(one.content for one in turns[max(0, turn - BEFORE) : turn])


def measure_turns(saved: Numbers, one: Example) -> list[Numbers]:
    """Return how near each turn of a session, or the one before it, is to each memory."""
    near = saved @ np.stack([embed(turn.content) for turn in one.turns]).T
    return [near[:, max(0, turn - 1) : turn + 1].max(axis=1) for turn in range(len(one.turns))]


def list_rows(examples: Sequence[Example], number: int, memory: int) -> Iterator[Row]:
    """Yield the sentences of a session, with the signs that they change the memory of an example."""
    one, saved = examples[number], examples[memory].saved
    for turn, (text, near) in enumerate(zip(one.turns, measure_turns(embed(saved)[None], one), strict=True)):
        said = Said(text.content, text.role, list_before(one.turns, turn))
        for at in range(changes.count_sentences(text.content)):
            yield Row(number, turn, at, changes.list_signs(saved, said, at, float(near[0])))


# Fitting -------------------------------------------------------------------------------------------------------------


def fit(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the constant and the weights by sign."""
    rows = [(part, row) for part in parts for row in part.rows]
    others = [row for part in parts for row in part.unrelated]
    names = choose_signs(parts)
    found = [row.signs for _, row in rows] + [row.signs for row in others]
    matrix = Sparse.make(found, names)
    bags: dict[tuple[int, int], list[int]] = defaultdict(list)
    negative, weights = list(range(len(rows), len(found))), [UNRELATED] * len(others)
    for number, (part, row) in enumerate(rows):
        example = part.examples[row.example]
        if example.label == "changes" and row.turn in example.right:
            bags[id(part), row.example].append(number)
        else:
            negative.append(number)
            weights.append(UNSURE if example.label == "changes" else PLAIN)
    scores = np.array([guess(signs) for signs in found])
    # A sign is held back in its standard deviations, one that is words less than that.
    rows_of = np.array([1.0] * len(rows) + [0.0] * len(others))
    mean, square = (np.bincount(matrix.columns, rows_of[matrix.rows] * matrix.values**n) / len(rows) for n in (1, 2))
    spread = np.array([1.0 / WORDS if is_words(name) else 0.0 for name in names] + [0.0])
    ridge = RIDGE * np.where(spread > 0, spread**2, square - mean**2)
    ridge[-1] = TINY
    beta = np.zeros(len(names) + 1)
    for _ in range(ROUNDS):
        positive = {max(bag, key=lambda number: scores[number]) for bag in bags.values()}
        there = np.zeros(len(found))
        there[negative] = weights
        there[list(positive)] = PLAIN
        labels = np.array([float(number in positive) for number in range(len(found))])
        beta = regress(matrix, labels, there, ridge, beta)
        scores = matrix.times(beta)
    return {
        "bias": round(float(beta[-1]), 3),
        "weights": {
            name: round(float(one), 3) for name, one in zip(names, beta, strict=False) if abs(one) >= LEAST_WEIGHT
        },
    }


def choose_signs(parts: Sequence[Part]) -> list[str]:
    """Return the signs that enough examples have."""
    cases = Counter(
        name for part in parts for name, _ in {(name, row.example) for row in part.rows for name in row.signs}
    )
    return sorted(name for name, count in cases.items() if count >= LEAST_CASES)


def is_words(name: str) -> bool:
    return name.startswith(changes.WORDS)


def guess(signs: Mapping[str, float]) -> float:
    """Return a score for the first round."""
    words = ("near", "words shared", "other value", "new name for a name", "(ended)", "(changed)", "(from now on)")
    return sum(signs.get(name, 0.0) for name in words) - 2 * signs.get("asks", 0.0)


class Sparse(NamedTuple):
    """The signs of rows: of each that is there the row, the column and the value."""

    size: tuple[int, int]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Numbers

    @classmethod
    def make(cls, found: Sequence[Mapping[str, float]], names: Sequence[str]) -> "Sparse":
        """Return signs with a last column of ones."""
        columns = {name: number for number, name in enumerate(names)} | {"": len(names)}
        there = [
            (row, columns[name], value)
            for row, signs in enumerate(found)
            for name, value in (*signs.items(), ("", 1.0))
            if name in columns
        ]
        rows, places, values = map(np.array, zip(*there, strict=True))
        return cls((len(found), len(columns)), rows, places, values)

    def times(self, factors: Numbers) -> Numbers:
        return np.bincount(self.rows, self.values * factors[self.columns], self.size[0])

    def sum(self, shares: Numbers) -> Numbers:
        return np.bincount(self.columns, self.values * shares[self.rows], self.size[1])


def regress(matrix: Sparse, labels: Numbers, weights: Numbers, ridge: Numbers, beta: Numbers) -> Numbers:
    """Return the factors that are likeliest, by Newton's steps, each solved by conjugate gradients."""
    for _ in range(NEWTON):
        shares = 1 / (1 + np.exp(-np.clip(matrix.times(beta), -30, 30)))
        rest = -(matrix.sum(weights * (shares - labels)) + ridge * beta)
        curve = weights * shares * (1 - shares)
        step, way = np.zeros_like(beta), rest.copy()
        for _ in range(CONJUGATE):
            if (size := rest @ rest) < TINY:
                break
            bent = matrix.sum(curve * matrix.times(way)) + ridge * way
            length = size / (way @ bent)
            step, rest = step + length * way, rest - length * bent
            way = rest + (rest @ rest) / size * way
        beta = beta + step
    return beta


# Worth ---------------------------------------------------------------------------------------------------------------


def rate(signs: Mapping[str, float], table: Mapping[str, Any]) -> float:
    score = table["bias"] + sum(table["weights"].get(name, 0.0) * value for name, value in signs.items())
    return float(1 / (1 + np.exp(-score)))


def find_best(rows: Iterable[Row], table: Mapping[str, Any]) -> dict[int, tuple[float, int]]:
    """Return for each example how sure its surest turn is, and which one."""
    best: dict[int, tuple[float, int]] = {}
    for row in rows:
        best[row.example] = max(best.get(row.example, (0.0, 0)), (rate(row.signs, table), row.turn))
    return best


def print_worth(part: Part, table: Mapping[str, Any]) -> None:
    examples = part.examples
    alone = find_best(part.rows, table)
    groups = (*CHANGED, "hard", EASY)
    of = Counter(one.group for one in examples)
    lines = []
    for least in (LIKELY, MAYBE):
        told = Counter(
            one.group
            for number, one in enumerate(examples)
            for sure, turn in [alone.get(number, (0.0, 0))]
            if sure >= least and (one.label != "changes" or turn in one.right)
        )
        lines.append([f"{least:.2f}", *(f"{told[group]}/{of[group]}" for group in groups)])
    print(format_table(["SURE", *(name.upper() for name in groups)], lines))


def describe_stores(examples: Sequence[Example], table: Mapping[str, Any]) -> str:
    """Return what becomes of the pairs in stores that have the memories of many cases."""
    ranks: list[int] = []
    taken: dict[int, float] = {}
    whole = range(0, len(examples) - STORE + 1, STORE)
    for first in whole:
        store = examples[first : first + STORE]
        saved = np.stack([embed(one.saved) for one in store])
        for number, one in enumerate(store):
            for turn, (text, near) in enumerate(zip(one.turns, measure_turns(saved, one), strict=True)):
                order = np.argsort(-near)
                if one.label == "changes" and turn in one.right:
                    ranks.append(int(np.flatnonzero(order == number)[0]))
                said = Said(text.content, text.role, list_before(one.turns, turn))
                for at in range(changes.count_sentences(text.content)):
                    sure, other = max(
                        (rate(changes.list_signs(store[k].saved, said, at, float(near[k])), table), int(k))
                        for k in order[:NEAREST]
                    )
                    if other != number:
                        taken[first + other] = max(taken.get(first + other, 0.0), sure)
    memories = len(whole) * STORE
    return (
        f"stores of {STORE}: of {len(ranks)} statements {sum(rank < NEAREST for rank in ranks)} have their memory among"
        f" the nearest {NEAREST}; of {memories} memories {sum(sure >= MAYBE for sure in taken.values())} get a turn of"
        f" another case, {sum(sure >= LIKELY for sure in taken.values())} as a likely change\n"
    )


if __name__ == "__main__":
    main()
