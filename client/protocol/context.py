"""Context: what an agent needs to know at the start of a task, as text for its prompt."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, Scoped, rpc

MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS = 16, 100_000
MAX_TEXTS = 1000


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
    """the model whose tokenizer counted, an encoding, or bytes (two to a token)"""
    ids: list[str] = []
    """the memories in it, in order"""
    stable_chars: int = 0
    """how many characters of its beginning stay the same from call to call"""
    omitted: int = 0
    """relevant memories that did not fit"""
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

    Pinned memories and corrections come first, then decisions, preferences, facts, lessons, notes and recent turns that
    are relevant; of one subject the newest first, what it disagrees with below it. Each line has a date, the beginning
    of the id and the source. A `session` is not given the same text twice; `fresh` says that it has lost what it was
    given, as after a compaction. What was said in the session itself is left out of its contexts. `opening` is for the
    start of a session, when nobody has said yet what is to be done: the latest summary of a session and what is most
    important of late go with what is relevant. What comes up in an `opening`, or in a context that is `unasked`, is
    held to more: no turn of low importance, and by the confidence of its hits a short prompt gets much, at most 50
    tokens, or nothing. `compact` leaves out the frame and the sources. Without `touch` it counts no access of anything.
    """

    task: str
    """what is to be done, in plain words"""
    max_tokens: Annotated[int, Meta(ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)] = 800
    """the budget of the text"""
    session: str = ""
    """the conversation that it is for; empty: none"""
    fresh: bool = False
    """the session has lost what it was given before"""
    opening: bool = False
    """it is the start of a session: give what matters without a task, too"""
    unasked: bool = False
    """nobody asked for it, as when a prompt is given what matters to it: only what is surely about it comes up"""
    compact: bool = False
    """without the frame and the sources"""
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """the search stops then with what it has"""
    touch: bool = True
    """count an access of each memory in it"""


class TokenCounts(Struct, kw_only=True):
    """How many tokens each text has, in order, by `tokenizer`."""

    counts: list[int]
    """tokens of each text, in order"""
    tokenizer: str
    """the model whose tokenizer counted, an encoding, or bytes (two to a token)"""


@rpc("within", reads=True, page=True)
class CountTokens(Scoped[TokenCounts], kw_only=True, frozen=True):
    """Count the tokens of texts as `get_context` does, for whoever puts memories into a budget of their own."""

    texts: Annotated[list[str], Meta(max_length=MAX_TEXTS)]
    """at most 1000"""
    tokenizer: str = ""
    """what counts: see `summarize`"""
