"""Summaries: keep a conversation within a budget of tokens by summarising its older part."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Scoped, rpc

MIN_SUMMARY_TOKENS = 16


class ToolCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A tool call that an assistant requests."""

    id: str
    """a text that is unique in the conversation"""
    name: str = ""
    """name of the tool"""
    arguments: str = ""
    """JSON as text"""


class Message(Struct, kw_only=True, forbid_unknown_fields=True):
    """One message of a conversation."""

    id: str = ""
    """a text that is unique in the conversation"""
    role: Literal["system", "user", "assistant", "tool"]
    """who speaks"""
    content: str = ""
    """the text"""
    tool_calls: list[ToolCall] = []
    """the tool calls that an assistant requests"""
    tool_call_id: str = ""
    """of a tool's result: id of the call that it answers"""


class RunningSummary(Struct, kw_only=True):
    """The summary of the older part of a conversation."""

    summary: str
    """the text"""
    summarized_ids: list[str]
    """ids of the summarised messages"""
    last_id: str
    """id of the last summarised message"""


class Summarized(Struct, kw_only=True):
    """A conversation within its budget: the system message, the summary as a second one, and the other messages."""

    messages: list[Message]
    """the shortened conversation, including the summary"""
    running_summary: RunningSummary | None
    """the summary to give to the next call; null: nothing is summarised yet"""
    tokens: int
    """tokens of these messages, with 4 added for each"""
    tokenizer: str
    """the tokenizer that counted them"""
    summarized: int = 0
    """messages that were summarised now"""
    by: str = ""
    """`rules`, or the model that wrote the summary; empty: nothing new was summarised"""
    trimmed: list[str] = []
    """ids of messages that were too long and lost their middle"""


@rpc("within", reads=True, lane="bulk", page=False)
class Summarize(Scoped[Summarized], kw_only=True, frozen=True):
    """Keep a conversation within `max_tokens`, including the summary of its older part.

    Every message needs a unique id, except for a system message at the beginning, which stays. Give `running_summary`
    from the last reply, and all messages or the last reply's messages with the new ones. The newest message and the
    user's newest message always stay; a tool's results stay with their call. Rules select the summary's sentences at
    once; with `wait` a language model writes the summary, if one is configured. Nothing is stored.
    """

    messages: list[Message]
    """the conversation, oldest first"""
    running_summary: RunningSummary | None = None
    """the one of the last reply"""
    max_tokens: Annotated[int, Meta(ge=1)]
    """the most tokens of all messages in the reply"""
    max_tokens_before_summary: Annotated[int, Meta(ge=1)] | None = None
    """nothing is summarised below this many tokens; left out: `max_tokens`"""
    max_summary_tokens: Annotated[int, Meta(ge=MIN_SUMMARY_TOKENS)] = 256
    """the most tokens of the summary's message"""
    wait: bool = False
    """let a language model write the summary, if one is configured"""
