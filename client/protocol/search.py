"""Search: find memories, and see how a search found them or why not."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Choice, Filtered, Fraction, Limit, Listed, R, Reach, Scoped, rpc
from memoryd.client.protocol.memories import Memory

ProfileName = Literal["default", "memweave", "memori", "swarm", "cache"]


class Related(Struct, kw_only=True):
    """A memory or turn that belongs to a hit and is shown with it.

    It is what the hit replies to (a `question`, or a `prompt` that asks nothing), an `answer` to the hit, a `fact` that
    was derived from it, or a `turn` that it was derived from. Answers are the agent's or those of a person with a name.
    A fact, a turn, and the same question in other words have their id alone: the search found them too, with a lower
    score.
    """

    id: str
    """id of the memory or turn"""
    kind: Literal["question", "prompt", "answer", "fact", "turn"]
    """its relation to the hit"""
    content: str = ""
    """text of a question, prompt or answer, at most 4,000 characters"""


class Hit(Memory, kw_only=True):
    """A memory found by a search. Memories that belong together are one hit, with the others in `related`."""

    score: float
    """the rank's score: 0 to 1, times the factor of `usefulness`; compare it within one search only, because it depends
    on what else is stored"""
    similarity: float | None = None
    """cosine with the query; null: the search by vectors did not find it"""
    bm25: float | None = None
    """full-text score; null: the search by words did not find it"""
    confidence: float = 0.0
    """probability that it is what was asked for, 0 to 1, independent of the other hits"""
    confidence_word: str = ""
    """the confidence as a word: `likely`, `maybe`, `a guess`, or `unlikely`, which `memctl search` shows with `--all`
    alone"""
    newer_than: str = ""
    """id of an older memory that it replaces or updates, and whose place and confidence it was given"""
    related: list[Related] = []
    """its question, its latest answers, facts or turns"""


class StageTrace(Struct, kw_only=True):
    """One stage of a search."""

    name: str
    """name of the stage"""
    took_ms: float
    """milliseconds that it took"""
    entered: int
    """candidates before it"""
    left: int
    """candidates after it"""
    notes: dict[str, Any] = {}
    """what it decided"""


class CandidateTrace(Struct, kw_only=True):
    """One candidate on its way through the stages."""

    id: str
    """id of the memory"""
    preview: str
    """the beginning of its text"""
    similarity: float | None = None
    """cosine with the query"""
    bm25: float | None = None
    """full-text score"""
    score: float | None = None
    """the rank's score, with the factor `usefulness`"""
    confidence: float = 0.0
    """of a hit: probability that it is what was asked for, 0 to 1"""
    confidence_word: str = ""
    """of a hit: the confidence as a word"""
    parts: dict[str, float] = {}
    """the parts of the score: `meaning`, `words`, and each of the `cues` that raised it. Feedback, and being placed
    before or after another memory, change the score further"""
    usefulness: float = 1.0
    """the factor of its score that feedback gives"""
    tier: str = ""
    """the tier that it is in"""
    origins: list[str] = []
    """what found it: `words`, `meaning`, `hot`, `graph`, `L0`"""
    cues: list[str] = []
    """cues that raised its score: `date`, `when`, `identifier`; and that lowered it: `asks` (it is a question that
    nobody answered), `unknown` (it says that somebody does not know), `tool` (a tool printed it, or it is a pasted
    log)"""
    lost: str = ""
    """`stage: reason` where it was dropped; empty for a hit"""
    outcome: str = ""
    """a sentence: how it ended"""
    reasons: list[str] = []
    """in words: what found it, and what raised or lowered its score"""


class Trace(Struct, kw_only=True):
    """The trace of a search: the query, its parameters, each stage and each candidate."""

    id: str
    """its id"""
    query: str
    """the query"""
    at: float
    """when"""
    namespace: str
    """the caller's namespace"""
    reach: Reach
    """which memories it saw from there"""
    model: str | None
    """the embedding model; null: there was none"""
    stages: list[StageTrace]
    """in order"""
    candidates: list[CandidateTrace]
    """best first"""
    degraded: list[str] = []
    """what the search had to do without"""
    took_ms: float = 0.0
    """time in the daemon"""
    kind: str = ""
    """the call that searched: `search`, `get_context` or `get_unasked`"""
    session: str = ""
    """the conversation that it was for; empty: none was named"""
    token: str = ""
    """name of the caller's token"""
    touch: bool = True
    """whether accesses were counted; false for a preview"""
    given: list[str] = []
    """ids that were returned: the hits, or the memories of the context"""
    left_out: dict[str, str] = {}
    """of a prompt's `get_unasked`: ids of memories that were found and not shown, each with the reason"""


class TraceSummary(Struct, kw_only=True):
    """A trace without its stages and candidates."""

    id: str
    """its id, for `get_trace`"""
    query: str
    """the query, at most 1,000 characters"""
    at: float
    """when"""
    namespace: str
    """the caller's namespace"""
    kind: str
    """the call that searched: `search`, `get_context` or `get_unasked`"""
    session: str
    """the conversation that it was for; empty: none was named"""
    token: str
    """name of the caller's token"""
    given: int
    """how many memories were returned"""
    touch: bool = True
    """whether accesses were counted; false for a preview"""
    took_ms: float
    """time in the daemon"""
    degraded: list[str] = []
    """what the search had to do without"""


class TraceList(Listed[TraceSummary], kw_only=True):
    """The stored traces, newest first."""

    traces: list[TraceSummary]
    """newest first"""


class Hits(Listed[Hit], kw_only=True):
    """Hits, best first."""

    hits: list[Hit]
    """best first"""
    degraded: list[str] = []
    """what the search had to do without. `vector`, `fulltext`: this arm; `deadline`: the stages after the deadline;
    `pending_embeddings`: vectors of some texts, which are found by words alone; `shared:NAME`: that shared root, which
    did not answer in time; `unreadable:NAME`: a row of it that could not be read"""
    trace: str = ""
    """id of the trace, for `get_trace`"""
    explanation: Trace | None = None
    """the trace itself, with `explain`"""
    took_ms: float = 0.0
    """time in the daemon"""

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Meant(Struct, kw_only=True):
    """A memory that given words may mean."""

    id: str
    """its id"""
    text: str
    """the beginning of its text"""


class Why(Struct, kw_only=True):
    """Why a memory is or is not among the hits of a query."""

    id: str
    """full id of the memory"""
    found: bool
    """whether it is among the hits"""
    rank: int | None = None
    """its place among the hits, from 1"""
    namespace: str = ""
    """the namespace that it is in"""
    shown_with: str = ""
    """id of the hit in whose `related` it is"""
    stage: str = ""
    """the stage that dropped it"""
    reason: str = ""
    """why; of an unlikely hit, a possible cause"""
    similarity: float | None = None
    """cosine with the query"""
    similarity_rank: int | None = None
    """its place among all memories by cosine"""
    bm25: float | None = None
    """full-text score"""
    bm25_rank: int | None = None
    """its place among all memories by full-text score"""
    score: float | None = None
    """the rank's score"""
    confidence: float | None = None
    """probability that it is what was asked for, 0 to 1; unlikely hits are found, and mostly not shown"""
    confidence_reason: str = ""
    """what the confidence is based on"""
    parts: dict[str, float] = {}
    """the parts of the score: `meaning`, `words`, and each cue that raised it"""
    last_hit_score: float | None = None
    """score of the last hit"""
    last_hit_confidence: float | None = None
    """confidence of the last hit"""
    said: list[str] = []
    """the explanation, in sentences"""
    figures: dict[str, str] = {}
    """the figures behind the explanation, as text"""
    others: list[Meant] = []
    """other memories that the words given for `id` may mean"""


class SearchOptions(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of a search for experiments and special programs; an unknown name is refused.

    `fusion` is `weighted` or `rrf` (k = 60). `weighted` is `vector_weight` x cosine + (1 - `vector_weight`) x BM25 / B,
    with the cosine of every model scaled to that of the default one; B is the best BM25, but at least half the weight
    of the query's words. `min_score` is a limit of the fused score, `min_similarity` of the cosine. `half_life_days`
    multiplies the score by 2^(-age / half-life), except for pinned memories and those from a file without a date.
    `profile` is a named set of these options.
    """

    vector: Annotated[list[float], Meta(max_length=65536)] = []
    """find memories near this vector of the model in use; a query is then used for the words alone"""
    profile: ProfileName = "default"
    """a named set of parameters"""
    fusion: Literal["weighted", "rrf"] | None = None
    """how words and meaning are combined; left out: as in the profile"""
    vector_weight: Fraction | None = None
    """share of the cosine in a `weighted` score; left out: as the daemon is configured"""
    min_score: Fraction | None = None
    """leave out hits with a lower score"""
    min_similarity: Annotated[float, Meta(ge=-1.0, le=1.0)] | None = None
    """leave out hits with a lower cosine"""
    half_life_days: Annotated[float, Meta(gt=0.0)] | None = None
    """the score is halved after this many days; left out: age does not count"""
    mmr_lambda: Fraction = 1.0
    """below 1 variety counts: mmr_lambda x score - (1 - mmr_lambda) x the similarity to better hits"""
    graph: bool = True
    """also find memories that were often retrieved together with the best hits"""
    distinct: bool = True
    """equal texts are one hit, the newest; false: each is a hit of its own"""
    include_vectors: bool = False
    """return the vector of each hit"""


class Query(Filtered[R], kw_only=True, frozen=True):
    """The parameters of every kind of search.

    A relevant hit counts as an access of that memory, unless `touch` is false. It is relevant if its cosine reaches the
    model's floor, or if it has most of the query's rare words. Stop words are not searched for: a query of stop words
    alone has no hits by words.
    """

    query: str = ""
    """the query, in plain words; it may be empty with `like` or a vector"""
    like: str = ""
    """id or unique prefix of a memory: find memories near it by its vector, without itself; a query is then used for
    the words alone"""
    mode: Literal["hybrid", "lexical", "dense"] = "hybrid"
    """by words and meaning, by words alone, by meaning alone (the score is the cosine)"""
    limit: Limit = 10
    """how many hits at most"""
    offset: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """how many of the best to skip"""
    floor: Fraction | None = None
    """leave out hits with a lower confidence; 0.02 leaves out most that have nothing to do with the query"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """stop then with the results so far; `degraded` says what is missing"""
    session: str = ""
    """the conversation that the hits are for: if it repeats them, that is not recorded as new"""
    touch: bool = True
    """count an access of each relevant hit"""
    options: SearchOptions = SearchOptions()
    """options for experiments"""


@rpc("within", reads=True, page=True)
class Search(Query[Hits], kw_only=True, frozen=True):
    """Find memories by meaning and by words, best first.

    If the memories are large, fewer than asked for are returned; the next page begins at `offset` + their number.
    """

    explain: bool = False
    """return the whole trace too: how the hits were found, stage by stage"""


class CountedText(Struct, kw_only=True):
    """The words of a query in a text."""

    length: float
    """words of the text"""
    counts: dict[str, float] = {}
    """how often it has the stems of the query, weighted by where"""


class FoundMemory(Memory, kw_only=True):
    """A memory that may be a hit, with what another machine needs to rank it."""

    similarity: float | None = None
    """cosine with the query on the scale of the default model; null: it has no vector, or there is no model"""
    texts: list[CountedText] = []
    """its text, then those of memories that it superseded"""
    float16: str = ""
    """its vector by `model`: little-endian float16 in base64; empty: it has none"""


class Candidates(Struct, kw_only=True):
    """The memories of one machine that may be hits, and how common the words of the query are there."""

    found: list[FoundMemory]
    """best first, by what is known there"""
    model: str = ""
    """the embedding model; empty: there is none"""
    documents: int = 0
    """how many memories are within reach"""
    average: float = 1.0
    """their average length in words"""
    holding: dict[str, int] = {}
    """how many of them have each stem of the query"""
    degraded: list[str] = []
    """what the search had to do without"""


@rpc("within", reads=True, page=False)
class FindCandidates(Query[Candidates], kw_only=True, frozen=True):
    """Return what another machine needs to rank the memories here among its own: some more than `limit`."""


@rpc("within", reads=True, page=True)
class WhyNot(Query[Why], kw_only=True, frozen=True):
    """Explain why the memory `id` is or is not among the hits of a search, and name the stage that dropped it.

    Instead of an id, words name the memory that has all of them, else the nearest one, even if it is superseded or
    expired.
    """

    id: str
    """id or unique prefix of the memory in question, or words of it"""


@rpc("within", reads=True, page=True)
class GetTrace(Scoped[Trace], kw_only=True, frozen=True):
    """Return the trace of an earlier search; without an id the latest one with `touch`."""

    id: str | None = None
    """id or prefix of the trace; left out: the latest one with `touch`"""


@rpc("within", reads=True, page=True)
class Traces(Scoped[TraceList], kw_only=True, frozen=True):
    """List the stored traces of searches and contexts, newest first; the root lists those of all namespaces."""

    kind: Choice = []
    """only traces of these calls: `search`, `get_context`, `get_unasked`"""
    limit: Limit = 20
    """how many at most"""
