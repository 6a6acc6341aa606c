"""The state of one retrieval, passed from stage to stage."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memoryd.client.protocol import Hit, LaterStatement, Memory, Query
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.lexical import TextQuery
from memoryd.daemon.config import SearchConfig
from memoryd.daemon.embedding.embedder import Embedding
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.search.effects import Effects
from memoryd.daemon.search.hints import NO_HINTS, Hints
from memoryd.daemon.search.profiles import Profile
from memoryd.daemon.search.remotes import Asked
from memoryd.daemon.search.traces import Candidate, Origin, TraceStore
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.turns import StoredTurn
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.system.timekeeper import Timekeeper
from memoryd.daemon.tiers.active import Active
from memoryd.daemon.tiers.hot import HotBuffer

LEAST_DEPTH = 50
DEPTH_PER_HIT = 4  # candidates of each arm for a hit that is wanted
_ENOUGH_WORDS = 0.4  # this share of the weight of the query's words makes up for a missing cosine …
_NEARLY = 0.15  # … or for one that is this much below the floor


class Sources(NamedTuple):
    """The parts of the daemon that stages use."""

    store: Store
    arrays: Arrays
    embedding: Embedding
    config: SearchConfig
    traces: TraceStore
    clock: Timekeeper
    active: Active  # L0
    hot: HotBuffer
    effects: Effects
    state: Callable[[type[Any]], Any]  # of rooms in RAM, by its class
    caller: Caller = USER


def elapsed_ms(began: float) -> float:
    """Return the milliseconds since a reading of the performance counter."""
    return round((time.perf_counter() - began) * 1000, 3)


class NearRows(NamedTuple):
    """The rows nearest to the query, nearest first, with exact cosines; `measured` has the cosines of more rows."""

    rows: list[int]
    similarities: dict[int, float]
    measured: dict[int, float]


@dataclass(slots=True)
class Retrieval:
    """One search: the call, the mask, the candidates so far, and the hits."""

    call: Query[Any]
    chosen: Filter
    now: float
    passed: float  # memories that have expired by then are left out
    depth: int
    deadline: float | None  # on the monotonic clock
    allowed: Mask  # the rows that pass the filters
    profile: Profile
    wanted: int  # length of the ranking: offset plus limit
    turns: list[StoredTurn] = field(default_factory=list)  # of L0, read before `allowed` was made
    within: Mask | None = None  # all rows within reach, None for all rows
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    generation: Generation | None = None
    scale: Callable[[float], float] = float  # maps cosines of this model to the scale of the default model
    vector: Vector | None = None
    embedding: "Future[Vector] | None" = None  # the pending vector
    near: "Future[NearRows] | None" = None  # the pending search of the index
    nearest: dict[int, float] = field(default_factory=dict)  # cosines of the rows nearest to the query
    method: str = ""  # of fusion
    weight: float = 0.0  # of the cosine in the fused score
    full_bm25: float = 0.0  # the BM25 that counts as 1
    hints: Hints = NO_HINTS
    question: TextQuery | None = None  # for full text
    words: dict[int, tuple[int, float]] = field(default_factory=dict)  # row: rank and BM25
    recent: dict[int, Row] = field(default_factory=dict)  # by negative numbers turns of L0, and what is `elsewhere`
    excluded: str = ""  # id of the memory named by `like`
    candidates: dict[int, Candidate] = field(default_factory=dict)
    contradictions: dict[str, dict[str, str]] = field(default_factory=dict)  # of the hits, by id
    later: dict[str, LaterStatement] = field(default_factory=dict)  # statements that seem to change a hit, by its id
    ranked: list[Candidate] = field(default_factory=list)
    asked: Sequence[Asked] = ()  # shared roots that were asked
    is_prompt: bool = False  # no root is asked; what this machine has of them in RAM is used
    elsewhere: dict[int, Memory] = field(default_factory=dict)  # their memories, by the numbers they have in `recent`
    vectors: dict[int, Vector] = field(default_factory=dict)  # of these
    began: float = field(default_factory=time.monotonic)
    hits: list[Hit] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)  # of the running stage, for the trace

    def ensure_candidate(self, row: int, origin: Origin) -> Candidate:
        """Return the candidate of a row; if no other arm has found it, it is created with its rank by words."""
        candidate = self.candidates.get(row)
        if candidate is None:
            rank, bm25 = self.words.get(row, (None, None))
            candidate = self.candidates[row] = Candidate(row, bm25=bm25, bm25_rank=rank)
        candidate.origins += (origin,)
        return candidate

    def read_vectors(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Vector]:
        """Return the vectors of rows, of this machine or elsewhere, that have one of this model."""
        elsewhere = {number: self.vectors[number] for number in numbers if number in self.vectors}
        if self.generation is None:
            return {}
        here, matrix = self.generation.read_exact(connection, [number for number in numbers if number > 0])
        return {**dict(zip(here, matrix, strict=True)), **elsewhere}

    def list_alive(self) -> list[Candidate]:
        """Return the candidates that no stage has dropped."""
        return [candidate for candidate in self.candidates.values() if not candidate.lost]

    def is_relevant(self, similarity: float | None, bm25: float | None) -> bool:
        """Return whether a hit is relevant: by the model's floor, or by most of the query's rare words."""
        whole = self.question.weight if self.question else 0.0  # the BM25 of a text with each word once
        has_words = bool(whole) and (bm25 or 0.0) / whole >= _ENOUGH_WORDS
        if similarity is None or self.generation is None:
            return has_words
        floors = self.generation.embedder.floors
        nearly = floors.rescale(similarity) >= floors.rescale(floors.relevant) - _NEARLY
        return similarity >= floors.relevant or (nearly and has_words)

    def rescale(self, similarity: float | None) -> float:
        """Return a cosine on the scale of the default model, 0 for None."""
        return 0.0 if similarity is None else max(0.0, self.scale(similarity))

    def degrade(self, part: str) -> None:
        """Record that a part of the search was left out."""
        if part not in self.degraded:
            self.degraded.append(part)

    def remaining_s(self) -> float | None:
        """Return the seconds until the deadline, never negative; None if there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
