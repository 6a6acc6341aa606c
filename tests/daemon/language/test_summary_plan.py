"""Running summaries: what is summarised, what stays, and that all of it is within its budget."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Message, RunningSummary, Summarize, Summarized, ToolCall
from memoryd.daemon.language import summary_plan
from memoryd.daemon.language.summary_plan import SUMMARY_ID

WORDS = "Build seven of the parser is done and we keep it".split()


def count(text: str) -> int:
    return len(text.split())


def message(id: str, words: int = 6, role: Any = "user", **fields: Any) -> Message:
    """A message that costs ten tokens unless it is told otherwise."""
    return Message(id=id, role=role, content=" ".join((WORDS * words)[:words]), **fields)


def talk(number: int, start: int = 1) -> list[Message]:
    return [message(f"m{n}", role="user" if n % 2 else "assistant") for n in range(start, start + number)]


def called(id: str, *calls: str) -> Message:
    return message(id, role="assistant", tool_calls=[ToolCall(id=call, name="look") for call in calls])


def result(id: str, call: str, words: int = 6) -> Message:
    return message(id, words, role="tool", tool_call_id=call)


def summarized(messages: list[Message], former: RunningSummary | None = None, **limits: Any) -> Summarized:
    given_limits = {"max_tokens": 100, "max_summary_tokens": 30, **limits}
    call = Summarize(messages=messages, running_summary=former, **given_limits)
    plan = summary_plan.make_plan(call, count)
    text = None
    if plan.older:
        text = summary_plan.extract(plan.older, former.summary if former else "", call.max_summary_tokens, count)
    return summary_plan.finish(call, plan, text, count)


def ids(done: Summarized) -> list[str]:
    return [message.id for message in done.messages]


# What is summarised --------------------------------------------------------------------------------------------------


def test_what_fits_stays_as_it_is() -> None:
    messages = talk(6)
    done = summarized(messages)
    assert (done.messages, done.running_summary, done.summarized) == (messages, None, 0)


def test_the_first_summary_takes_the_oldest_and_leaves_the_rest() -> None:
    done = summarized(talk(12), max_tokens_before_summary=60)
    assert ids(done) == [SUMMARY_ID, *(f"m{n}" for n in range(7, 13))]
    assert done.running_summary is not None
    assert done.running_summary.summarized_ids == [f"m{n}" for n in range(1, 7)]
    assert (done.running_summary.last_id, done.summarized) == ("m6", 6)
    assert done.messages[0].role == "system"
    assert "parser" in done.messages[0].content


def test_a_threshold_above_the_budget_does_not_let_it_be_exceeded() -> None:
    done = summarized(talk(12), max_tokens_before_summary=1000)
    assert done.summarized > 0
    assert done.tokens <= 100


def test_the_system_message_stays_and_is_not_summarised() -> None:
    done = summarized([message("", role="system"), *talk(12)])
    assert done.messages[0].role == "system"
    assert done.messages[0].content.startswith("Build")
    assert done.running_summary is not None
    assert "" not in done.running_summary.summarized_ids
    assert done.tokens <= 100


def test_a_second_round_goes_on_from_the_first_with_all_messages() -> None:
    messages = talk(12)
    first = summarized(messages)
    second = summarized([*messages, *talk(10, 13)], first.running_summary)
    assert first.running_summary is not None
    assert second.running_summary is not None
    assert set(second.running_summary.summarized_ids) > set(first.running_summary.summarized_ids)
    assert second.tokens <= 100
    assert ids(second)[-1] == "m22"


def test_a_second_round_goes_on_from_the_messages_of_the_last_reply() -> None:
    first = summarized(talk(12))
    second = summarized([*first.messages, *talk(10, 13)], first.running_summary)
    assert ids(second).count(SUMMARY_ID) == 1
    assert second.summarized > 0
    assert second.tokens <= 100


def test_a_prompt_that_was_held_back_is_summarised_after_what_followed_it() -> None:
    messages = [message("asked"), *(message(f"a{n}", 30, role="assistant") for n in range(3))]
    first = summarized(messages)
    assert first.running_summary is not None
    assert "asked" not in first.running_summary.summarized_ids
    messages.append(message("next"))
    second = summarized(messages, first.running_summary, max_tokens_before_summary=1)
    assert second.running_summary is not None
    assert second.running_summary.summarized_ids[-1] == "asked"
    assert summarized([*messages, *talk(12)], second.running_summary).tokens <= 100


def test_what_a_former_summary_says_is_not_forgotten() -> None:
    former = RunningSummary(summary="User: We decided to release on May 12.", summarized_ids=["a"], last_id="a")
    done = summarized([message("a"), *talk(12)], former)
    assert done.running_summary is not None
    assert "May 12" in done.running_summary.summary


# Refusals ------------------------------------------------------------------------------------------------------------


def test_every_message_needs_an_id() -> None:
    with pytest.raises(Invalid, match="Message 2 has no id"):
        summarized([message("a"), message("")])


def test_no_id_may_come_twice() -> None:
    with pytest.raises(Invalid, match="Two messages"):
        summarized([message("a"), message("a")])


def test_a_message_that_is_summarised_already_may_not_come_again() -> None:
    former = RunningSummary(summary="x", summarized_ids=["a", "b"], last_id="b")
    with pytest.raises(Invalid, match="summarised already"):
        summarized([message("b"), message("a")], former)


def test_a_summary_must_be_smaller_than_the_budget() -> None:
    with pytest.raises(Invalid, match="less than max_tokens"):
        summarized(talk(1), max_tokens=30, max_summary_tokens=30)


def test_a_system_message_that_leaves_no_room_is_said_to() -> None:
    with pytest.raises(Invalid, match="has to stay"):
        summarized([message("s", 200, role="system"), *talk(2)])


# What stays ----------------------------------------------------------------------------------------------------------


def test_results_stay_with_their_call_also_of_calls_side_by_side() -> None:
    messages = [*talk(8), called("c", "x", "y"), result("rx", "x"), result("ry", "y"), message("last")]
    for before in range(10, 121, 5):
        done = summarized(messages, max_tokens_before_summary=before)
        kept = set(ids(done)) & {"c", "rx", "ry"}
        assert kept in (set(), {"c", "rx", "ry"})


def test_the_newest_message_stays_however_long_it_is() -> None:
    done = summarized([*talk(4), message("long", 500)])
    assert ids(done)[-1] == "long"
    assert done.trimmed == ["long"]
    assert done.messages[-1].content.startswith("Build")
    assert done.tokens <= 100
    assert done.summarized == 4


def test_one_message_alone_that_is_too_long_loses_its_middle_and_nothing_is_summarised() -> None:
    done = summarized([message("long", 500)])
    assert (ids(done), done.summarized, done.running_summary) == (["long"], 0, None)
    assert done.tokens <= 100


def test_the_newest_message_of_the_user_is_not_swallowed_in_a_loop_of_tools() -> None:
    loop = [m for n in range(8) for m in (called(f"c{n}", f"x{n}"), result(f"r{n}", f"x{n}"))]
    done = summarized([*talk(4), message("question"), *loop])
    assert "question" in ids(done)
    assert done.running_summary is not None
    assert "question" not in done.running_summary.summarized_ids
    assert ids(done)[-1] == "r7"


def test_the_summary_goes_on_growing_in_a_loop_of_tools() -> None:
    messages, former = [*talk(2), message("question")], None
    lengths = []
    for n in range(30):
        messages += [called(f"c{n}", f"x{n}"), result(f"r{n}", f"x{n}")]
        done = summarized(messages, former)
        former = done.running_summary
        lengths.append(len(former.summarized_ids) if former else 0)
        assert done.tokens <= 100
        assert {"question", f"c{n}", f"r{n}"} <= set(ids(done))
    assert len(set(lengths)) > 5


# Properties ----------------------------------------------------------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    made = [message("", draw(st.integers(0, 8)), role="system")] if draw(st.booleans()) else []
    for n in range(draw(st.integers(0, 12))):
        words = draw(st.integers(0, 60))
        kind = draw(st.sampled_from(["user", "assistant", "tools"]))
        if kind != "tools":
            made.append(message(f"{n}", words, role=kind))
            continue
        calls = [f"{n}.{k}" for k in range(draw(st.integers(1, 3)))]
        made.append(called(f"{n}", *calls))
        made += [result(f"r{call}", call, draw(st.integers(0, 40))) for call in draw(st.permutations(calls))]
    return made


@pytest.mark.slow
@given(conversations(), st.integers(80, 300), st.integers(1, 400), st.integers(1, 4))
def test_never_over_budget_the_newest_kept_and_no_result_alone(
    messages: list[Message], budget: int, before: int, rounds: int
) -> None:
    former: RunningSummary | None = None
    for part in range(1, rounds + 1):
        said = messages[: max(1, len(messages) * part // rounds)]
        # Cut only where no call waits for its results.
        answered = {m.tool_call_id for m in said}
        if not said or any(call.id not in answered for m in said for call in m.tool_calls):
            continue
        done = summarized(said, former, max_tokens=budget, max_summary_tokens=20, max_tokens_before_summary=before)
        former = done.running_summary
        kept = ids(done)
        assert sum(summary_plan.cost(m, count) for m in done.messages) == done.tokens <= budget
        assert said[-1].role == "system" or kept[-1] == said[-1].id
        calls = {call.id for m in done.messages for call in m.tool_calls}
        assert calls == {m.tool_call_id for m in done.messages if m.role == "tool"}
        users = [m.id for m in said if m.role == "user"]
        assert not users or users[-1] in kept
        summary = [m for m in done.messages if m.id == SUMMARY_ID]
        assert sum(summary_plan.cost(m, count) for m in summary) <= 20
