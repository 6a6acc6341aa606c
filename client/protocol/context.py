"""Context: the memories for a task, and those that an agent is shown automatically, as text for its prompt."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, Limit, Listed, Scoped, Seconds, rpc

MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS = 16, 100_000
Agent = Annotated[str, Meta(max_length=64)]


class ContextText(Struct, kw_only=True):
    """A context: `text` has `tokens` tokens by `tokenizer` and is empty when nothing is relevant.

    The first `stable_chars` characters stay the same as long as no pinned memory and no correction changes. `omitted`
    counts relevant memories that did not fit, `repeated` those that the session was given before.
    """

    text: str
    """text for a prompt; empty: nothing is relevant"""
    tokens: int
    """tokens of the text, at most max_tokens"""
    tokenizer: str
    """the model whose tokenizer counted, or bytes (two to a token)"""
    ids: list[str] = []
    """ids of the memories in the text, in order"""
    stable_chars: int = 0
    """how many characters at its beginning stay the same from call to call"""
    omitted: int = 0
    """relevant memories that did not fit"""
    omitted_ids: list[str] = []
    """their ids, the best first"""
    repeated: int = 0
    """relevant memories that the session was given before"""
    degraded: list[str] = []
    """what the search had to do without"""
    trace: str = ""
    """id of the search for get_trace"""
    took_ms: float = 0.0
    """time in the daemon"""


@rpc("within", page=True)
class GetContext(Filtered[ContextText], kw_only=True, frozen=True):
    """Return the memories that matter for a task as text for a prompt, strictly within `max_tokens`.

    Pinned memories and corrections come first, then the relevant memories in groups: decisions, preferences, facts,
    lessons, notes and conversations, the group with the best hit first. Several groups have headings. Within a subject
    the newest memory comes first, and below it those that it disagrees with; turns of one day keep their order.

    Lines of one day have its date above them, with month and year where these change. A speaker is named once for
    consecutive lines, of which all but the first begin with a space, and is later shortened to as few letters as tell
    the speakers apart. The best memories are shown with their questions and answers, others where there is room. A text
    that is too long is cut to whole sentences, a single long sentence to a part with an ellipsis; nothing is repeated.

    A `session` is given no text twice; `fresh` says that it has lost what it was given, as after a compaction. Turns of
    the session itself are left out. Without `touch` no access is counted.
    """

    task: str
    """the task, in plain words"""
    max_tokens: Annotated[int, Meta(ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)] = 800
    """the budget of the text"""
    session: str = ""
    """the conversation that it is for; empty: none"""
    fresh: bool = False
    """the session has lost what it was given before"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """the search stops then with the results so far"""
    touch: bool = True
    """count an access of each memory in the text"""


class UnaskedLine(Struct, kw_only=True):
    """A line that is shown automatically."""

    id: str
    """id of the memory or turn"""
    text: str
    """the part of it that is shown: whole sentences"""
    why: str
    """why it is shown, in a few words"""
    note: str = ""
    """shown after the text: whose words these are; empty: the person's"""


class Unasked(Struct, kw_only=True):
    """What an agent is shown automatically: `text`, which is mostly short and often empty."""

    text: str
    """text for the agent's context; empty: there is nothing to show"""
    tokens: int
    """tokens of the text"""
    tokenizer: str
    """what counted the tokens, as in a context"""
    lines: list[UnaskedLine] = []
    """its lines, in order"""
    degraded: list[str] = []
    """what the search had to do without"""
    trace: str = ""
    """id of the search for get_trace; empty at a session's start, and where observing is paused"""
    refused: UnaskedLine | None = None
    """for a prompt, without `touch`: the nearest memory that is not shown, and why not"""
    took_ms: float = 0.0
    """time in the daemon"""

    @property
    def ids(self) -> list[str]:
        """The ids of the memories in it, in order."""
        return [line.id for line in self.lines]


@rpc("within", page=False)
class GetUnasked(Scoped[Unasked], kw_only=True, frozen=True):
    """Return what an agent is to be shown automatically, at a session's start or with a `prompt`.

    At a start these are the pinned memories; the rules, preferences, decisions and lessons that were saved on purpose,
    the newest of each subject; and at most three lines on the latest session. With a prompt these are at most three
    memories, mostly none, that are surely about it and that the session was not given before. Of the root's memories
    other namespaces are shown only those that are pinned or preferences. Guesses, questions, requests, and memories
    that were superseded or contradicted are never shown. The section `hooks` of the configuration sets the limits.
    """

    prompt: str = ""
    """the user's prompt; empty: the session starts"""
    session: str = ""
    """the conversation, which is given nothing twice; empty: none"""
    agent: Agent = ""
    """the program that asks, such as Claude Code; empty: unknown"""
    fresh: bool = False
    """the session has lost what it was given before"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """the search stops then with the results so far"""
    touch: bool = True
    """count an access of each memory that is shown"""
    folder: str = ""
    """the agent's working directory; if observing is paused there, no trace of the prompt is kept"""


class GivenLine(Struct, kw_only=True):
    """A memory or turn that a session was given."""

    id: str
    """id of the memory or turn"""
    namespace: str
    """where it is"""
    type: str
    """its type"""
    tier: str
    """its tier"""
    text: str
    """the beginning of its text"""
    at: float
    """when the session was given it"""
    path: str | None = None
    """the file that it came from"""


class GivenSession(Struct, kw_only=True):
    """What one session was given, the latest first, without memories that were deleted since."""

    namespace: str
    """the session's namespace"""
    session: str
    """the conversation's name"""
    agent: str
    """the program that asked; empty: unknown, or the daemon was restarted since"""
    at: float
    """when it was given the latest of its lines"""
    lines: list[GivenLine]
    """the latest first"""


class GivenList(Listed[GivenSession], kw_only=True):
    """Sessions that were given something, the latest first."""

    sessions: list[GivenSession]
    """the latest first"""


@rpc("within", reads=True, page=True)
class ListGiven(Scoped[GivenList], kw_only=True, frozen=True):
    """List what agents were given by contexts and automatically within the last 400 days, session by session.

    The list of a session that reported the loss of its context (`fresh`) begins after that.
    """

    since: Seconds | None = None
    """only lines given then or later"""
    limit: Limit = 20
    """how many sessions at most"""


class UsefulnessMonth(Struct, kw_only=True):
    """How useful the lines were that the sessions of a project were shown in a month."""

    namespace: str
    """namespace of the sessions"""
    month: str
    """the month in UTC, like 2026-11"""
    sessions: int
    """sessions that were shown a line and had a turn after it"""
    told: int
    """lines that were shown, each counted once per session"""
    used: int
    """lines whose rare words an answer had although nobody had said them in the session before"""
    said_again: int
    """lines that the person stated again later in the session"""
    corrected: int
    """lines that a turn of the session changes, or whose memory was replaced, changed or deleted during the session or
    within an hour after it"""


class UsefulnessReport(Listed[UsefulnessMonth], kw_only=True):
    """How useful the lines were that sessions were shown, the earliest month first."""

    months: list[UsefulnessMonth]
    """by month, then by namespace"""


@rpc("within", reads=True, lane="bulk", page=False)
class MeasureUsefulness(Scoped[UsefulnessReport], kw_only=True, frozen=True):
    """Count by project and month how many of the lines shown to sessions were used, said again or corrected.

    The counts come from the stored turns; no labels and no further records are needed. Of a session that reported the
    loss of its context (`fresh`) only the part after that counts.
    """

    since: Seconds | None = None
    """only lines shown then or later"""
