"""Search: find memories, and see how they were found or why not."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Choice, Filtered, Fraction, Limit, Listed, R, Reach, Scoped, rpc
from memoryd.client.protocol.memories import Memory

ProfileName = Literal["default", "memweave", "memori", "swarm", "cache"]


class Related(Struct, kw_only=True):
    """What a hit is shown with: what it replies to, its answers, facts drawn from it, the turns that it was drawn from.

    What it replies to is its `question`, or a `prompt` if that does not ask. An answer is the agent's, or that of a
    person with a name: what a person without one says next is none.
    Of a fact, a turn or the same question in other words only the id is given: it was found too, with a lower score.
    """

    id: str
    """id of the memory or turn"""
    kind: Literal["question", "prompt", "answer", "fact", "turn"]
    """what it is to the hit"""
    content: str = ""
    """the text of what it replies to or of an answer, at most 4,000 characters"""


class Hit(Memory, kw_only=True):
    """A memory found by a search. `score` ranks it: 0 to 1, times the factor that feedback gives it (`usefulness`).

    `similarity` (cosine) and `bm25` are there where that arm found it. What belongs together is one hit: `related`.
    """

    score: float
    """0 to 1, as ranked; it depends on what else is stored, so compare it within one search only"""
    similarity: float | None = None
    """cosine with the query, if the vectors found it"""
    bm25: float | None = None
    """full-text score, if the words found it"""
    confidence: float = 0.0
    """how likely it is what was asked for, 0 to 1, whatever the other hits are"""
    confidence_word: str = ""
    """the same in a word: `likely`, `maybe`, `a guess`, or `unlikely`, which `memctl search` shows only with `--all`"""
    newer_than: str = ""
    """id of an older memory whose place and confidence it has: it replaces that one, or tells what became of it"""
    related: list[Related] = []
    """what belongs to it: its question, its latest answers, facts or turns"""


class StageTrace(Struct, kw_only=True):
    """One stage of a retrieval: its time, how many candidates entered and left, what it decided."""

    name: str
    """name of the stage"""
    took_ms: float
    """its time"""
    entered: int
    """candidates before it"""
    left: int
    """candidates after it"""
    notes: dict[str, Any] = {}
    """what it decided"""


class CandidateTrace(Struct, kw_only=True):
    """One candidate's way through the stages. `lost` is empty for a hit, else `stage: reason`.

    `origins` says what brought it: `words`, `meaning`, `hot`, `L0`, `graph`. `score` contains the factor
    `usefulness`.
    """

    id: str
    """id of the memory"""
    preview: str
    """the beginning of its text"""
    similarity: float | None = None
    """cosine with the query"""
    bm25: float | None = None
    """full-text score"""
    score: float | None = None
    """as ranked"""
    confidence: float = 0.0
    """of a hit: how likely it is what was asked for, 0 to 1"""
    confidence_word: str = ""
    """of a hit: the same in a word"""
    parts: dict[str, float] = {}
    """what the score is made of: `meaning`, `words`, and each of the `cues` that raised it; feedback, and a place
    before or behind another memory, come on top"""
    usefulness: float = 1.0
    """the factor of its score that feedback gives"""
    tier: str = ""
    """where the memory is kept"""
    origins: list[str] = []
    """what brought it: `words`, `meaning`, `hot`, `graph`, `L0`"""
    cues: list[str] = []
    """what in the question raised its score: `speaker`, `subject`, `role`, `date`, `when`, `identifier`; what lowered
    it: `asks` (it is a question that nobody answered), `unknown` (it says that it does not know), `tool` (a tool
    printed it, or it is a log that was pasted)"""
    lost: str = ""
    """`stage: reason`, empty for a hit"""
    outcome: str = ""
    """what became of it, in words"""
    reasons: list[str] = []
    """what brought it and what raised or lowered its score, in words"""


class Trace(Struct, kw_only=True):
    """A kept retrieval: the query, its parameters, each stage and each candidate."""

    id: str
    """its id"""
    query: str
    """what was looked for"""
    at: float
    """when"""
    namespace: str
    """the caller's place"""
    reach: Reach
    """what it saw from there"""
    model: str | None
    """the embedding model, null without one"""
    stages: list[StageTrace]
    """in order"""
    candidates: list[CandidateTrace]
    """best first"""
    degraded: list[str] = []
    """what was left out"""
    took_ms: float = 0.0
    """time in the daemon"""
    kind: str = ""
    """the call that searched: `search`, `get_context` or `get_unasked`"""
    session: str = ""
    """the conversation that it was for; empty: none was named"""
    token: str = ""
    """name of the token of who searched"""
    touch: bool = True
    """whether it left a mark: false for a look at what would be found"""
    given: list[str] = []
    """ids of what was returned: the hits, or the memories of the context"""
    left_out: dict[str, str] = {}
    """of a prompt's `get_unasked`: ids of what was found and not given, each with the reason in words"""


class TraceSummary(Struct, kw_only=True):
    """One retrieval of those that are kept, without its stages and candidates."""

    id: str
    """its id, for `get_trace`"""
    query: str
    """what was looked for, at most 1,000 characters"""
    at: float
    """when"""
    namespace: str
    """the caller's place"""
    kind: str
    """the call that searched: `search`, `get_context` or `get_unasked`"""
    session: str
    """the conversation that it was for; empty: none was named"""
    token: str
    """name of the token of who searched"""
    given: int
    """how many memories were returned"""
    touch: bool = True
    """whether it left a mark: false for a look at what would be found"""
    took_ms: float
    """time in the daemon"""
    degraded: list[str] = []
    """what was left out"""


class TraceList(Listed[TraceSummary], kw_only=True):
    """Retrievals that are kept, newest first."""

    traces: list[TraceSummary]
    """newest first"""


class Hits(Listed[Hit], kw_only=True):
    """Hits, best first. `degraded` names what was left out (`vector`, `fulltext`) or incomplete."""

    hits: list[Hit]
    """best first"""
    degraded: list[str] = []
    """what was left out: `vector`, `fulltext`, `deadline`; `pending_embeddings`: some of the texts searched,
    turns of L0 included, have no vector yet, so only words find these; `shared:NAME`: that shared root did not answer
    in time; `unreadable:NAME`: something there could not be read and was left out"""
    trace: str = ""
    """id of the kept trace, for `get_trace`"""
    explanation: Trace | None = None
    """the trace itself, where `explain` asked for it"""
    took_ms: float = 0.0
    """time in the daemon"""

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Meant(Struct, kw_only=True):
    """A memory that some words may mean."""

    id: str
    """its id"""
    text: str
    """the beginning of its text"""


class Why(Struct, kw_only=True):
    """Why a memory is or is not among the hits of a query: the stage that lost it and the reason."""

    id: str
    """full id of the memory"""
    found: bool
    """whether it is among the hits"""
    rank: int | None = None
    """its place among the hits, from 1"""
    namespace: str = ""
    """where it is"""
    shown_with: str = ""
    """the hit that shows it too: its answer, its question, what was drawn from it"""
    stage: str = ""
    """the stage that lost it"""
    reason: str = ""
    """why; of a hit that is hardly likely, what that may come from"""
    similarity: float | None = None
    """cosine with the query"""
    similarity_rank: int | None = None
    """its place among all by cosine"""
    bm25: float | None = None
    """full-text score"""
    bm25_rank: int | None = None
    """its place among all by words"""
    score: float | None = None
    """as ranked"""
    confidence: float | None = None
    """how likely it is what was asked for, 0 to 1; unlikely hits are found, and mostly not shown"""
    confidence_reason: str = ""
    """what the confidence comes from"""
    parts: dict[str, float] = {}
    """what the score is made of: `meaning`, `words`, and what raised it"""
    last_hit_score: float | None = None
    """what the last hit had"""
    last_hit_confidence: float | None = None
    """how likely the last hit is what was asked for"""
    said: list[str] = []
    """what became of it, in sentences"""
    figures: dict[str, str] = {}
    """the figures that this comes from, as text"""
    others: list[Meant] = []
    """other memories that the words given for it may mean"""


class SearchOptions(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What only an experiment or a program with needs of its own sets of a search; an unknown name is refused.

    `fusion` is `weighted` or `rrf` (k = 60). `weighted` is `vector_weight` x cosine + the rest x BM25 / B, with the
    cosine of any model on the scale of the default one; B is the best BM25, at least half of what the query's words
    weigh. `min_score` cuts on the fused score, `min_similarity` on the cosine. `half_life_days` multiplies the score by
    2^(-age / half-life), except for what is pinned or from a file that is not dated. `profile` is a named set of these.
    """

    vector: Annotated[list[float], Meta(max_length=65536)] = []
    """look for what is near this vector, of the model in use; with a query, that one is for the words"""
    profile: ProfileName = "default"
    """a named set of parameters"""
    fusion: Literal["weighted", "rrf"] | None = None
    """how words and meaning are combined; left out: as the profile says"""
    vector_weight: Fraction | None = None
    """share of the cosine in a `weighted` score; left out: as the daemon is configured"""
    min_score: Fraction | None = None
    """leave out hits with a lower score"""
    min_similarity: Annotated[float, Meta(ge=-1.0, le=1.0)] | None = None
    """leave out hits with a lower cosine"""
    half_life_days: Annotated[float, Meta(gt=0.0)] | None = None
    """the score is halved after so many days; left out, age does not count"""
    mmr_lambda: Fraction = 1.0
    """below 1 variety counts: mmr_lambda x score - (1 - mmr_lambda) x the likeness to better hits"""
    graph: bool = True
    """also what was often retrieved together with the best hits"""
    distinct: bool = True
    """equal texts are one hit, the newest; false: each by itself"""
    include_vectors: bool = False
    """each hit with its vector"""


class Query(Filtered[R], kw_only=True, frozen=True):
    """The parameters that every kind of search takes.

    `floor` cuts on the confidence. The search stops at `deadline_ms` with the best finished answer. `session` names
    the conversation that the hits are for: what is said there again of them is not taken for news. A relevant hit
    counts as an access of that memory; it is relevant when its cosine reaches the model's floor, or when it has most of
    the query's rare words. Without `touch` nothing is counted.

    `like`, the id of a memory, stands for that memory's vector; with a query, that one is for the words. `mode` leaves
    out an arm; `dense` scores by the cosine alone. Stop words are not looked for: a query of stop words alone has no
    hits by words.
    """

    query: str = ""
    """what to look for, in plain words; empty where `like` or a vector says it"""
    like: str = ""
    """look for what is near this memory: an id or unique prefix; it is not among the hits"""
    mode: Literal["hybrid", "lexical", "dense"] = "hybrid"
    """by words and meaning, by words alone, by meaning alone"""
    limit: Limit = 10
    """how many hits at most"""
    offset: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """how many of the best to skip"""
    floor: Fraction | None = None
    """leave out hits with a lower confidence: 0.02 leaves out most that has nothing to do with the query"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """stop then with the best finished answer; `degraded` says what was left out"""
    session: str = ""
    """the conversation that the hits are for"""
    touch: bool = True
    """count an access of each relevant hit"""
    options: SearchOptions = SearchOptions()
    """what only experiments set"""


@rpc("within", reads=True, page=True)
class Search(Query[Hits], kw_only=True, frozen=True):
    """Find memories by meaning and by words, best first.

    Where memories have large values, fewer come than asked for; the next page begins at `offset` + their number.
    """

    explain: bool = False
    """with the whole trace: how the hits were found, stage by stage"""


@rpc("within", reads=True, page=True)
class WhyNot(Query[Why], kw_only=True, frozen=True):
    """Say why the memory `id` is or is not among the hits of a search; name the stage that lost it.

    Words in place of an id mean the memory that has each of them, else the nearest one, be it superseded or expired.
    """

    id: str
    """id or unique prefix of the memory in question, or words of it"""


@rpc("within", reads=True, page=True)
class GetTrace(Scoped[Trace], kw_only=True, frozen=True):
    """Return the kept trace of an earlier search; without an id the latest one that left a mark (`touch`)."""

    id: str | None = None
    """id or prefix of the trace; left out: the latest that left a mark"""


@rpc("within", reads=True, page=True)
class Traces(Scoped[TraceList], kw_only=True, frozen=True):
    """List the latest searches and contexts whose traces are kept, newest first; the root lists those of everyone."""

    kind: Choice = []
    """only those of these calls: `search`, `get_context`, `get_unasked`"""
    limit: Limit = 20
    """how many at most"""
