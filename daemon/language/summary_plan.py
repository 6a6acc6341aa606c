"""Fit a conversation into a budget of tokens by summarising its older messages. Pure functions.

An assistant's message with tool calls and the results of these form a unit, which is never split. The last unit stays,
and so does the newest message of the user, which the assistant has to answer. If these are too long, the middle of
their longest texts is cut out. A message costs the tokens of its texts plus `OVERHEAD` for the chat format.
"""

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Message, RunningSummary, Summarize, Summarized
from memoryd.daemon.language import condensing, rating

SUMMARY_ID = "memoryd-summary"
PREFIX = "Summary of the conversation so far:\n"
OVERHEAD = 4
_GAP = " […] "
_BREATH_S = 0.0005  # after each message that is read for a summary, since the rules hold the interpreter's lock
_READ_MESSAGES = 400  # at most so many messages are summarised, the newest
_FORMER, _USER, _RECENT = 0.1, 0.05, 0.1  # added to the importance of a sentence
_FAILURE = ("error", "fail", "exception", "denied")  # the only part of a tool's result that is kept

TokenCounter = Callable[[str], int]


class SummaryPlan(NamedTuple):
    """The plan for a conversation: `older` messages are summarised, `kept` ones stay."""

    system: Message | None
    older: list[Message]
    kept: list[Message]
    running: RunningSummary | None


# Planning ------------------------------------------------------------------------------------------------------------


def make_plan(call: Summarize, count: TokenCounter) -> SummaryPlan:
    """Decide which messages are summarised; raise `Invalid` for invalid messages or limits."""
    if call.max_summary_tokens >= call.max_tokens:
        raise Invalid("max_summary_tokens must be less than max_tokens.")
    messages = [message for message in call.messages if message.id != SUMMARY_ID]
    system = messages.pop(0) if messages and messages[0].role == "system" else None
    pending = _find_pending(messages, call.running_summary)
    running = call.running_summary
    total = sum(cost(message, count) for message in pending)
    frame = cost(system, count) if system else 0
    summary = cost(summary_message(running.summary), count) if running and running.summary else 0
    before = min(call.max_tokens_before_summary or call.max_tokens, call.max_tokens)
    if total < before and frame + summary + total <= call.max_tokens:
        return SummaryPlan(system, [], pending, running)
    room = call.max_tokens - frame - call.max_summary_tokens
    cut = _cut(_find_units(pending), before, room, [cost(message, count) for message in pending])
    asked = next((message for message in reversed(pending) if message.role == "user"), None)
    older = [message for message in pending[:cut] if message is not asked]
    aside = [message for message in pending[:cut] if message is asked]
    return SummaryPlan(system, older, [*aside, *pending[cut:]], running)


def _find_pending(messages: Sequence[Message], running: RunningSummary | None) -> list[Message]:
    """Return the messages that are not summarised yet."""
    ids = [message.id for message in messages]
    if not all(ids):
        raise Invalid(f"Message {ids.index('') + 1} has no id; every message needs one.")
    if len(set(ids)) < len(ids):
        twice = next(id for at, id in enumerate(ids) if id in ids[:at])
        raise Invalid(f"Two messages have the id {twice[:80]!r}.")
    if running is None:
        return list(messages)
    done, last = set(running.summarized_ids), ids.index(running.last_id) if running.last_id in ids else -1
    for id in ids[last + 1 :]:
        if id in done:
            raise Invalid(f"The message {id[:80]!r} has been summarised already.")
    return [message for message in messages if message.id not in done]


def _find_units(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which units end: a message with tool calls ends with the last of their results."""
    calls = {call.id: at for at, message in enumerate(messages) for call in message.tool_calls}
    reach = list(range(len(messages)))
    for at, message in enumerate(messages):
        if message.role == "tool" and (origin := calls.get(message.tool_call_id)) is not None and origin < at:
            reach[origin] = at
    ends, end = [], 0
    for at in range(len(messages)):
        end = max(end, reach[at])
        if end == at:
            ends.append(at + 1)
    return ends


def _cut(ends: Sequence[int], before: int, room: int, costs: Sequence[int]) -> int:
    """Return how many messages are summarised: the fewest that are enough for the rest to fit.

    The last unit stays in any case; if the rest cannot fit, all messages before that unit are summarised.
    """
    places = list(ends[:-1])
    upto = [0, *accumulate(costs)]
    for place in places:
        if upto[place] >= before and upto[-1] - upto[place] <= room:
            return place
    return places[-1] if places else 0


# Tokens --------------------------------------------------------------------------------------------------------------


def cost(message: Message, count: TokenCounter) -> int:
    """Return the tokens of a message."""
    called = sum(count(f"{call.name} {call.arguments}") + OVERHEAD for call in message.tool_calls)
    return OVERHEAD + called + (count(message.content) if message.content else 0)


def summary_message(summary: str) -> Message:
    """Return the message that contains a summary."""
    return Message(id=SUMMARY_ID, role="system", content=PREFIX + summary)


def clip(summary: str, max_tokens: int, count: TokenCounter) -> str:
    """Shorten a summary to the limit of its message: to whole lines if possible, else to its beginning."""
    lines = [line for line in summary.strip().split("\n") if line.strip()]
    while len(lines) > 1 and cost(summary_message("\n".join(lines)), count) > max_tokens:
        lines.pop()
    text = "\n".join(lines)
    longest = _find_longest(text, lambda size: cost(summary_message(text[:size]), count) <= max_tokens)
    return text[:longest].rstrip()


def _shorten(text: str, tokens: int, count: TokenCounter) -> str:
    """Shorten a text to so many tokens by cutting out its middle."""
    longest = _find_longest(text, lambda size: count(_cut_ends(text, size)) <= tokens)
    return _cut_ends(text, longest) if longest else ""


def _find_longest(text: str, fits: Callable[[int], bool]) -> int:
    """Return how many characters of a text may stay for it to fit."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    while low and not fits(low):  # more characters may have fewer tokens
        low -= 1
    return low


def _cut_ends(text: str, chars: int) -> str:
    tail = chars // 3
    return text if chars >= len(text) else text[: chars - tail] + _GAP + text[len(text) - tail :]


# The result ----------------------------------------------------------------------------------------------------------


def finish(call: Summarize, plan: SummaryPlan, summary: str | None, count: TokenCounter) -> Summarized:
    """Return the conversation with a new summary (None: the former one), strictly within its budget."""
    running = plan.running
    if summary is not None:
        done = [*(running.summarized_ids if running else []), *(message.id for message in plan.older)]
        # A prompt that was kept before is older than the content of the summary.
        known = set(done)
        last = next(message.id for message in reversed(call.messages) if message.id in known)
        running = RunningSummary(summary=summary, summarized_ids=done, last_id=last)
    head = [plan.system] if plan.system else []
    if running and running.summary:
        # The summary in the call may be longer than its limits allow.
        sentence = clip(running.summary, call.max_summary_tokens, count)
        head += [summary_message(sentence)] if sentence else []
    room = call.max_tokens - sum(cost(message, count) for message in head)
    kept, trimmed = _fit(plan.kept, room, count)
    messages = [*head, *kept]
    return Summarized(
        messages=messages,
        running_summary=running,
        tokens=sum(cost(message, count) for message in messages),
        tokenizer="",
        summarized=len(plan.older) if summary is not None else 0,
        trimmed=trimmed,
    )


def _fit(messages: Sequence[Message], room: int, count: TokenCounter) -> tuple[list[Message], list[str]]:
    """Return the messages within a budget, and which were shortened: the longest first, the newest last."""
    kept, trimmed = list(messages), list[str]()
    costs = [cost(message, count) for message in kept]
    order = sorted(range(len(kept)), key=lambda at: (at == len(kept) - 1, -costs[at]))
    for at in order:
        over = sum(costs) - room
        if over <= 0:
            break
        text = kept[at].content
        if not text:
            continue
        kept[at] = msgspec.structs.replace(kept[at], content=_shorten(text, max(0, count(text) - over), count))
        costs[at] = cost(kept[at], count)
        trimmed.append(kept[at].id)
    if sum(costs) > room:
        raise Invalid(
            f"What has to stay does not fit: it needs {sum(costs)} tokens at least, and {max(0, room)} are left."
        )
    return kept, trimmed


# By rules ------------------------------------------------------------------------------------------------------------


def extract(older: Sequence[Message], former: str, max_tokens: int, count: TokenCounter) -> str:
    """Choose the most important sentences of a former summary and of messages, in order, as lines of a summary."""
    found = [(rating.importance(line) + _FORMER, line) for line in former.split("\n") if line.strip()]
    read = older[-_READ_MESSAGES:]
    for at, message in enumerate(read, 1):
        time.sleep(_BREATH_S)
        bonus = _RECENT * at / len(read) + (_USER if message.role == "user" else 0.0)
        speaker = message.role.capitalize()
        for sentence in _find_sentences(message):
            found.append((rating.importance(sentence) + bonus, f"{speaker}: {' '.join(sentence.split())}"))
    chosen, known, spent = dict[int, str](), set[str](), 0
    for at in sorted(range(len(found)), key=lambda at: -found[at][0]):
        line = found[at][1]
        key = line.partition(": ")[2].casefold() or line.casefold()
        if spent >= max_tokens - OVERHEAD:
            break
        if key in known:
            continue
        attempt = "\n".join(text for _, text in sorted({**chosen, at: line}.items()))
        if cost(summary_message(attempt), count) <= max_tokens:
            chosen[at] = line
            known.add(key)
            spent += count(line)
    if not chosen and found:
        return clip(max(found)[1], max_tokens, count)
    return "\n".join(text for _, text in sorted(chosen.items()))


def _find_sentences(message: Message) -> list[str]:
    """Return the sentences of a message that have content; from a tool's result, only the error."""
    found = condensing.list_telling(message.content)
    if message.role == "tool":
        return [sentence for sentence in found if any(word in sentence.casefold() for word in _FAILURE)][:1]
    return found or [" ".join(message.content.split())][: bool(message.content.strip())]
