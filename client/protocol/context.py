"""Context: what an agent needs to know at the start of a task, as text for its prompt."""

from typing import Annotated

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Filtered, Scoped

MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS = 16, 100_000
MAX_TEXTS = 1000


class ContextText(Struct, kw_only=True):
    """A context: `text` has `tokens` tokens by `tokenizer` and is empty when nothing is relevant.

    The first `stable_chars` characters stay the same as long as no pinned memory and no correction changes. `omitted`
    counts what was relevant and did not fit, `repeated` what the session has already.
    """

    text: str
    tokens: int
    tokenizer: str
    ids: list[str] = []
    stable_chars: int = 0
    omitted: int = 0
    repeated: int = 0
    degraded: list[str] = []
    trace: str = ""
    took_ms: float = 0.0


class GetContext(Filtered[ContextText], kw_only=True, frozen=True):
    """Return the memories that matter for a task as text for a prompt, strictly within `max_tokens`.

    Pinned memories and corrections come first, then decisions, preferences, facts, lessons, notes and recent turns that
    are relevant; of one subject the newest first, what it disagrees with below it. Each line has a date, the beginning
    of the id and the source. A `session` is not given the same text twice; `fresh` says that it has lost what it was
    given, as after a compaction. What was said in the session itself is left out of its contexts. `opening` is for the
    start of a session, when nobody has said yet what is to be done: the latest summary of a session and what is most
    important of late go with what is relevant. `compact` leaves out the frame and the sources.
    """

    task: str
    max_tokens: Annotated[int, Meta(ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)] = 800
    session: str = ""
    fresh: bool = False
    opening: bool = False
    compact: bool = False
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None


class TokenCounts(Struct, kw_only=True):
    """How many tokens each text has, in order, by `tokenizer`."""

    counts: list[int]
    tokenizer: str


class CountTokens(Scoped[TokenCounts], kw_only=True, frozen=True):
    """Count the tokens of texts as `get_context` does, for whoever puts memories into a budget of their own."""

    texts: Annotated[list[str], Meta(max_length=MAX_TEXTS)]
