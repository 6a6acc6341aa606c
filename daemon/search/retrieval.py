"""The state of one retrieval, passed from stage to stage."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memoryd.client.protocol import Hit, LaterStatement, Query
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
_MOST_WORDS = 0.4  # of what the query's words weigh: makes up for no cosine …
_NEARLY = 0.15  # … or for one that is so much below the floor


class Sources(NamedTuple):
    """What the stages draw from."""

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
    """The rows nearest to the query, nearest first, with their exact cosines; `measured` has those of others, too."""

    rows: list[int]
    similarities: dict[int, float]
    measured: dict[int, float]


@dataclass(slots=True)
class Retrieval:
    """One search: what is asked, what was found so far, what was left out."""

    call: Query[Any]
    chosen: Filter
    now: float
    passed: float  # what expires by then is left out
    depth: int
    deadline: float | None  # on the monotonic clock
    allowed: Mask  # what the filters leave
    profile: Profile
    wanted: int  # of the ranking: the hits, and those that its offset skips
    turns: list[StoredTurn] = field(default_factory=list)  # of L0 when it began, before `allowed` was made
    within: Mask | None = None  # all that is within reach, None where that is everything
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    generation: Generation | None = None
    scale: Callable[[float], float] = float  # of its cosines, to that of the default model
    vector: Vector | None = None
    embedding: "Future[Vector] | None" = None  # of the vector
    near: "Future[NearRows] | None" = None  # begun as soon as the vector is there
    nearest: dict[int, float] = field(default_factory=dict)  # cosines of the rows nearest to the query
    method: str = ""  # of fusion
    weight: float = 0.0  # of the cosine in the fused score
    full_bm25: float = 0.0  # what counts as 1
    hints: Hints = NO_HINTS
    question: TextQuery | None = None  # for full text
    words: dict[int, tuple[int, float]] = field(default_factory=dict)  # row: rank and BM25
    recent: dict[int, Row] = field(default_factory=dict)  # turns of L0, by the negative of their number
    excluded: str = ""  # id of the memory that the hits are to be like
    candidates: dict[int, Candidate] = field(default_factory=dict)
    contradictions: dict[str, dict[str, str]] = field(default_factory=dict)  # of the hits, by id
    later: dict[str, LaterStatement] = field(default_factory=dict)  # what seems to change a hit, by its id
    ranked: list[Candidate] = field(default_factory=list)
    window: slice = field(default_factory=lambda: slice(None))  # of the hits, once other places have answered
    asked: Sequence[Asked] = ()  # other places, whose answers are to come
    elsewhere: list[Hit] = field(default_factory=list)  # what they answered
    began: float = field(default_factory=time.monotonic)
    hits: list[Hit] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)  # of the stage under way

    def ensure_candidate(self, row: int, origin: Origin) -> Candidate:
        """Return the candidate of a row, new if it is the first arm that brings it."""
        candidate = self.candidates.get(row)
        if candidate is None:
            candidate = self.candidates[row] = Candidate(row)
        candidate.origins += (origin,)
        return candidate

    def list_alive(self) -> list[Candidate]:
        """Return the candidates that no stage has dropped."""
        return [candidate for candidate in self.candidates.values() if not candidate.lost]

    def is_relevant(self, similarity: float | None, bm25: float | None) -> bool:
        """Return whether a hit is relevant: by the model's floor, or by most of the query's rare words."""
        whole = self.question.weight if self.question else 0.0  # the BM25 of one place for each word
        has_words = bool(whole) and (bm25 or 0.0) / whole >= _MOST_WORDS
        if similarity is None or self.generation is None:
            return has_words
        floors = self.generation.embedder.floors
        nearly = floors.rescale(similarity) >= floors.rescale(floors.relevant) - _NEARLY
        return similarity >= floors.relevant or (nearly and has_words)

    def rescale(self, similarity: float | None) -> float:
        """Return a cosine on the scale of scores, which is that of the default model; 0 where there is none."""
        return 0.0 if similarity is None else max(0.0, self.scale(similarity))

    def degrade(self, part: str) -> None:
        """Note that a part was left out."""
        if part not in self.degraded:
            self.degraded.append(part)

    def remaining_s(self) -> float | None:
        """Return the seconds until the deadline, never negative; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
