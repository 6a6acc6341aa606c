"""Running summaries: a conversation kept within a budget of tokens, its older part as a summary."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Scoped

MIN_SUMMARY_TOKENS = 16


class ToolCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool that an assistant asks for; `arguments` is JSON as text."""

    id: str
    name: str = ""
    arguments: str = ""


class Message(Struct, kw_only=True, forbid_unknown_fields=True):
    """One message of a conversation; `tool_call_id` says which call a tool's result answers."""

    id: str = ""
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: list[ToolCall] = []
    tool_call_id: str = ""


class RunningSummary(Struct, kw_only=True):
    """What a conversation came to, of which messages, and up to which one."""

    summary: str
    summarized_ids: list[str]
    last_id: str


class Summarized(Struct, kw_only=True):
    """A conversation within its budget: the system message, the summary as another one, the rest as it was.

    `by` is `rules` or the model that wrote the summary, empty when nothing new was summarised. `trimmed` are messages
    that were too long to fit and lost their middle.
    """

    messages: list[Message]
    running_summary: RunningSummary | None
    tokens: int
    tokenizer: str
    summarized: int = 0
    by: str = ""
    trimmed: list[str] = []


class Summarize(Scoped[Summarized], kw_only=True, frozen=True):
    """Keep a conversation within `max_tokens`: from `max_tokens_before_summary` on its older part becomes a summary.

    Every message needs an id of its own, apart from a system message at the beginning, which stays. Give
    `running_summary` as the last reply had it, and all messages, or those of the last reply with the new ones. The
    newest message and the newest of the user always stay; a tool's results stay with their call. With the summary of at
    most `max_summary_tokens`, all is at most `max_tokens`. Sentences are chosen by rules, at once; with `wait` a
    language model writes the summary where one is configured. Nothing is stored.
    """

    messages: list[Message]
    running_summary: RunningSummary | None = None
    max_tokens: Annotated[int, Meta(ge=1)]
    max_tokens_before_summary: Annotated[int, Meta(ge=1)] | None = None
    max_summary_tokens: Annotated[int, Meta(ge=MIN_SUMMARY_TOKENS)] = 256
    wait: bool = False
