"""Search: queries, hits, and how they were found."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, Fraction, Limit, R, Reach, Scoped
from memoryd.client.protocol.memories import Memory

ProfileName = Literal["default", "memweave", "memori", "swarm", "cache"]


class Hit(Memory, kw_only=True):
    """A memory found by a search: `score` as ranked, 0..1 times what feedback makes of it (`usefulness`).

    `similarity` (cosine) and `bm25` where that arm found it.
    """

    score: float
    similarity: float | None = None
    bm25: float | None = None


class Hits(Struct, kw_only=True):
    """Results of a search, best first. `degraded` names what was left out (`vector`, `fulltext`)."""

    hits: list[Hit]
    degraded: list[str] = []
    trace: str = ""
    took_ms: float = 0.0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class StageTrace(Struct, kw_only=True):
    """One stage of a retrieval: its time, how many candidates entered and left, what it decided."""

    name: str
    took_ms: float
    entered: int
    left: int
    notes: dict[str, Any] = {}


class CandidateTrace(Struct, kw_only=True):
    """One candidate's way through the stages. `lost` is empty for a hit, else `stage: reason`.

    `origins` says what brought it: `words`, `meaning`, `hot`, `L0`, `graph`. `score` contains the factor `usefulness`.
    """

    id: str
    preview: str
    similarity: float | None = None
    bm25: float | None = None
    score: float | None = None
    usefulness: float = 1.0
    tier: str = ""
    origins: list[str] = []
    lost: str = ""


class Trace(Struct, kw_only=True):
    """A kept retrieval: the query, its parameters, each stage and each candidate."""

    id: str
    query: str
    at: float
    namespace: str
    reach: Reach
    model: str | None
    stages: list[StageTrace]
    candidates: list[CandidateTrace]
    degraded: list[str] = []
    took_ms: float = 0.0


class Explanation(Struct, kw_only=True):
    """The hits of a search together with its whole trace."""

    hits: list[Hit]
    trace: Trace


class Why(Struct, kw_only=True):
    """Why a memory is or is not among the hits of a query: the stage that lost it and the reason."""

    id: str
    found: bool
    rank: int | None = None
    stage: str = ""
    reason: str = ""
    similarity: float | None = None
    similarity_rank: int | None = None
    bm25: float | None = None
    bm25_rank: int | None = None
    score: float | None = None
    last_hit_score: float | None = None


class Query(Filtered[R], kw_only=True, frozen=True):
    """The parameters that every kind of search takes.

    `fusion` is `weighted` (`vector_weight` x cosine + the rest x BM25 / best BM25) or `rrf` (k = 60). `min_score` cuts
    on the fused score, `min_similarity` on the cosine. The search stops at `deadline_ms` with the best finished answer.

    `profile` is a named set of all of this. `half_life_days` multiplies the score by 2^(-age / half-life), except for
    what is pinned or from a file that is not dated. `mmr_lambda` below 1 trades score for variety. `graph` adds
    memories that were often retrieved together with the best hits. `session` names the conversation that the hits are
    for, so that hearing them again there is not taken for news. Without `touch` the search leaves no mark.
    """

    query: str
    limit: Limit = 10
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    fusion: Literal["weighted", "rrf"] | None = None
    vector_weight: Fraction | None = None
    min_score: Fraction | None = None
    min_similarity: Annotated[float, Meta(ge=-1.0, le=1.0)] | None = None
    candidate_multiplier: Annotated[int, Meta(ge=1, le=100)] | None = None
    profile: ProfileName = "default"
    half_life_days: Annotated[float, Meta(gt=0.0)] | None = None
    mmr_lambda: Fraction = 1.0
    graph: bool = True
    session: str = ""
    touch: bool = True


class Search(Query[Hits], kw_only=True, frozen=True):
    """Find memories by meaning and by words, best first."""


class Explain(Query[Explanation], kw_only=True, frozen=True):
    """Run a search and return its whole trace with the hits."""


class WhyNot(Query[Why], kw_only=True, frozen=True):
    """Say why the memory `id` is or is not among the hits of a search, naming the stage that lost it."""

    id: str


class GetTrace(Scoped[Trace], kw_only=True, frozen=True):
    """Return the kept trace of an earlier search; without an id the latest one."""

    id: str | None = None
