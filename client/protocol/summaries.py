"""Summaries: keep a conversation within a budget of tokens, its older part as a summary."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Scoped, rpc

MIN_SUMMARY_TOKENS = 16


class ToolCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool that an assistant asks for; `arguments` is JSON as text."""

    id: str
    """any text of its own"""
    name: str = ""
    """of the tool"""
    arguments: str = ""
    """JSON as text"""


class Message(Struct, kw_only=True, forbid_unknown_fields=True):
    """One message of a conversation; `tool_call_id` says which call a tool's result answers."""

    id: str = ""
    """any text of its own"""
    role: Literal["system", "user", "assistant", "tool"]
    """who speaks"""
    content: str = ""
    """the text"""
    tool_calls: list[ToolCall] = []
    """what an assistant asks for"""
    tool_call_id: str = ""
    """the call that a tool's result answers"""


class RunningSummary(Struct, kw_only=True):
    """What a conversation came to, of which messages, and up to which one."""

    summary: str
    """the text"""
    summarized_ids: list[str]
    """of all messages that are in it"""
    last_id: str
    """of the last one of these"""


class Summarized(Struct, kw_only=True):
    """A conversation within its budget: the system message, the summary as another one, the rest as it was.

    `by` is `rules` or the model that wrote the summary, empty when nothing new was summarised. `trimmed` are messages
    that were too long to fit and lost their middle.
    """

    messages: list[Message]
    """what is left of the conversation, the summary included"""
    running_summary: RunningSummary | None
    """for the next call; null while nothing is summarised"""
    tokens: int
    """of all these messages, 4 for each added"""
    tokenizer: str
    """what counted them"""
    summarized: int = 0
    """messages that were summarised now"""
    by: str = ""
    """who wrote the summary, empty for none now"""
    trimmed: list[str] = []
    """ids of messages that lost their middle"""


@rpc("within", reads=True, lane="bulk", page=False)
class Summarize(Scoped[Summarized], kw_only=True, frozen=True):
    """Keep a conversation within `max_tokens`: from `max_tokens_before_summary` on its older part becomes a summary.

    Every message needs an id of its own, apart from a system message at the beginning, which stays. Give
    `running_summary` as the last reply had it, and all messages, or those of the last reply with the new ones. The
    newest message and the newest of the user always stay; a tool's results stay with their call. With the summary of at
    most `max_summary_tokens`, all is at most `max_tokens`. Sentences are chosen by rules, at once; with `wait` a
    language model writes the summary where one is configured. Nothing is stored.
    """

    messages: list[Message]
    """the conversation, oldest first"""
    running_summary: RunningSummary | None = None
    """as the last reply had it"""
    max_tokens: Annotated[int, Meta(ge=1)]
    """of all messages in the reply"""
    max_tokens_before_summary: Annotated[int, Meta(ge=1)] | None = None
    """nothing is summarised below that; left out: `max_tokens`"""
    max_summary_tokens: Annotated[int, Meta(ge=MIN_SUMMARY_TOKENS)] = 256
    """of the summary's message"""
    wait: bool = False
    """let a language model write the summary, where one is configured"""
