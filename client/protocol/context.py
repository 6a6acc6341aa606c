"""Context: what an agent needs to know for a task, and what it is told unasked, as text for its prompt."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, Limit, Listed, Scoped, Seconds, rpc

MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS = 16, 100_000
Agent = Annotated[str, Meta(max_length=64)]


class ContextText(Struct, kw_only=True):
    """A context: `text` has `tokens` tokens by `tokenizer` and is empty when nothing is relevant.

    The first `stable_chars` characters stay the same as long as no pinned memory and no correction changes. `omitted`
    counts what was relevant and did not fit, `repeated` what the session has already.
    """

    text: str
    """for a prompt; empty: nothing is relevant"""
    tokens: int
    """of the text, at most max_tokens"""
    tokenizer: str
    """the model whose tokenizer counted, or bytes (two to a token)"""
    ids: list[str] = []
    """the memories in it, in order"""
    stable_chars: int = 0
    """how many characters of its beginning stay the same from call to call"""
    omitted: int = 0
    """relevant memories that did not fit"""
    omitted_ids: list[str] = []
    """which they are, the best first"""
    repeated: int = 0
    """relevant memories that the session has already"""
    degraded: list[str] = []
    """what was left out of the search"""
    trace: str = ""
    """id of the search for get_trace"""
    took_ms: float = 0.0
    """time in the daemon"""


@rpc("within", page=True)
class GetContext(Filtered[ContextText], kw_only=True, frozen=True):
    """Return the memories that matter for a task as text for a prompt, strictly within `max_tokens`.

    Pinned memories and corrections come first, then what is relevant: decisions, preferences, facts, lessons, notes and
    what was said in conversations, the group with the best hit first. Of one subject the newest comes first, and below
    it what it disagrees with; what was said on one day stays in its order. A date stands above the lines of a day, with
    month and year where those change. A speaker is named once before lines that follow each other, of which the further
    ones begin with a space; later by as few letters as tell the speakers apart. Several groups have headings. The best
    memories stand with what they answer and with what answers them, others where there is room. A text that is too long
    is cut to whole sentences, and a sentence that is too long by itself to a part with an ellipsis; nothing is there
    twice. `ids` of the result names the memories in order. A `session` is given no text twice; `fresh` says that it has
    lost what it was given, as after a compaction. What was said in the session itself is left out of its contexts.
    Without `touch` it counts no access of anything.
    """

    task: str
    """what is to be done, in plain words"""
    max_tokens: Annotated[int, Meta(ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)] = 800
    """the budget of the text"""
    session: str = ""
    """the conversation that it is for; empty: none"""
    fresh: bool = False
    """the session has lost what it was given before"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """the search stops then with what it has"""
    touch: bool = True
    """count an access of each memory in it"""


class UnaskedLine(Struct, kw_only=True):
    """A line that comes up though nobody asked."""

    id: str
    """the memory or the turn"""
    text: str
    """what is shown of it: whole sentences"""
    why: str
    """why it comes up, in a few words"""
    note: str = ""
    """what stands behind the text: whose words it is, where they are not the person's"""


class Unasked(Struct, kw_only=True):
    """What an agent is told though it did not ask: `text`, which is mostly short and often empty."""

    text: str
    """for the agent's context; empty: nothing is to be said"""
    tokens: int
    """of the text"""
    tokenizer: str
    """what counted them, as in a context"""
    lines: list[UnaskedLine] = []
    """its lines, in order"""
    degraded: list[str] = []
    """what was left out of the search"""
    trace: str = ""
    """id of the search for get_trace; empty at a session's start, and where observing is paused"""
    refused: UnaskedLine | None = None
    """beside a prompt, where nothing is noted: what was nearest to it of all that stays out, and why it does"""
    took_ms: float = 0.0
    """time in the daemon"""

    @property
    def ids(self) -> list[str]:
        """The memories in it, in order."""
        return [line.id for line in self.lines]


@rpc("within", page=False)
class GetUnasked(Scoped[Unasked], kw_only=True, frozen=True):
    """Return what an agent should know though it did not ask: at a session's start, or beside a `prompt`.

    A start holds what is pinned; the rules, preferences, decisions and lessons that were saved on purpose, of one
    subject the newest; and three lines at most on the latest session. A prompt gets what is surely about it and the
    session does not have, in three lines at most, mostly nothing. Of the root only what is pinned or a preference comes
    up elsewhere. Guesses, questions, requests, and what was superseded or contradicted since never come up. The section
    `hooks` of the configuration says how much there may be.
    """

    prompt: str = ""
    """what the user says; empty: the session starts"""
    session: str = ""
    """the conversation, which is given nothing twice; empty: none"""
    agent: Agent = ""
    """the program that asks, such as Claude Code; empty: not known"""
    fresh: bool = False
    """the session has lost what it was given before"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """the search stops then with what it has"""
    touch: bool = True
    """count an access of each memory in it"""
    folder: str = ""
    """the working directory of whoever speaks; where observing is paused there, no trace of the prompt is kept"""


class GivenLine(Struct, kw_only=True):
    """A memory or turn that a session was given."""

    id: str
    """the memory or the turn"""
    namespace: str
    """where it is"""
    type: str
    """what it is"""
    tier: str
    """where in the hierarchy it is"""
    text: str
    """the beginning of its text"""
    at: float
    """when the session was given it"""
    path: str | None = None
    """the file that it came from"""


class GivenSession(Struct, kw_only=True):
    """What one session was given, the latest first. What was deleted since is left out."""

    namespace: str
    """the place of the session"""
    session: str
    """the conversation's name"""
    agent: str
    """the program that asked; empty: not known, or the daemon was started again since"""
    at: float
    """when it was given the latest"""
    lines: list[GivenLine]
    """the latest first"""


class GivenList(Listed[GivenSession], kw_only=True):
    """Sessions that were given something, the latest first."""

    sessions: list[GivenSession]
    """the latest first"""


@rpc("within", reads=True, page=True)
class ListGiven(Scoped[GivenList], kw_only=True, frozen=True):
    """List what agents were given by contexts and unasked, by session, of the last 400 days.

    A session that says that it has lost what it was given begins anew.
    """

    since: Seconds | None = None
    """only what was given then or later"""
    limit: Limit = 20
    """how many sessions at most"""


class UsefulnessMonth(Struct, kw_only=True):
    """What became in a month of the lines that the sessions of a project were told."""

    namespace: str
    """the place of the sessions"""
    month: str
    """in UTC, like 2026-11"""
    sessions: int
    """how many were told something and said something after it"""
    told: int
    """lines, of a session each once"""
    used: int
    """of these, those of which an answer had rare words that nobody had said in the session before"""
    said_again: int
    """those that the person said later in the session all the same"""
    corrected: int
    """those that a turn of the session changes, or that were replaced, changed or deleted until an hour after it"""


class UsefulnessReport(Listed[UsefulnessMonth], kw_only=True):
    """What became of what sessions were told, the earliest month first."""

    months: list[UsefulnessMonth]
    """by month, then by namespace"""


@rpc("within", reads=True, lane="bulk", page=False)
class MeasureUsefulness(Scoped[UsefulnessReport], kw_only=True, frozen=True):
    """Count by project and month what became of the lines that sessions were told by contexts and unasked.

    It is read from the turns that are kept: no labels are needed, and nothing is noted for it. A session that says that
    it has lost what it was given counts from then on.
    """

    since: Seconds | None = None
    """only what was told then or later"""
