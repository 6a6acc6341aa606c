"""Sessions of coding agents on the real model: what was learnt in one is in the context of the next.

Each event has the fields that the agent's documentation gives it, in the order in which the agent sends them.
"""

import json
from pathlib import Path

import pytest

from hosting import Agent, Answered
from memoryd.client.programs.hooks.hosts import HOSTS
from waiting import wait_until
from workbench import Process

LESSON = (
    "Lesson learnt: run the migrations with --lock-timeout 5s, else the deploy of the billing service hangs for good"
)
ANSWER = "Understood. From now on I run the billing migrations with --lock-timeout 5s before each deploy."
QUESTION = "I am about to deploy the billing service with its migrations, what do I have to watch out for?"
SMALL_TALK = "What a lovely sunny morning it is"


def project(real: Process, name: str) -> Path:
    made = real.folder / name
    (made / ".git").mkdir(parents=True)
    return made


def settled(real: Process, namespace: str) -> None:
    """Wait until what was said is thought through."""

    def is_quiet() -> bool:
        with real.client(namespace) as client:
            tiers = client.tiers()
            return not any(tiers.waiting.values()) and not any(tiers.resting.values())

    wait_until(is_quiet, limit_s=60)


def fine(answered: Answered) -> Answered:
    assert (answered.code, answered.err) == (0, "")
    return answered


@pytest.mark.slow
def test_a_lesson_of_a_claude_code_session_is_in_the_context_of_the_next(shared_real: Process) -> None:
    place = project(shared_real, "billing")
    first = Agent("claude-code", shared_real.folder, place, "7f3a-first")
    mode = {"permission_mode": "default"}
    opening = fine(first.hook("session-start", source="startup", model="claude-opus-5")).said
    assert opening == "" or "memctl observe off" in opening  # whichever session of this daemon is the first
    assert fine(first.hook("prompt", prompt=LESSON, **mode)).out == ""
    fine(
        first.hook(
            "tool",
            tool_name="Write",
            tool_input={"file_path": str(place / "deploy.md"), "content": "…"},
            tool_response={"filePath": str(place / "deploy.md"), "success": True},
            tool_use_id="toolu_01",
            **mode,
        )
    )
    assert fine(first.hook("compact", trigger="manual", custom_instructions="")).out == ""
    assert fine(first.hook("stop", stop_hook_active=False, last_assistant_message=ANSWER, **mode)).out == ""
    fine(first.hook("prompt", prompt="And write the runbook of the billing deploy into deploy.md, please", **mode))
    fine(first.hook("stop", stop_hook_active=False, last_assistant_message="The runbook is in deploy.md.", **mode))
    assert fine(first.hook("session-end", reason="prompt_input_exit")).out == ""
    settled(shared_real, "billing")

    second = Agent("claude-code", shared_real.folder, place, "9c1b-second")
    opened = fine(second.hook("session-start", source="startup", model="claude-opus-5"))
    answer = json.loads(opened.out)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert "--lock-timeout 5s" in answer["additionalContext"]
    assert answer["additionalContext"].startswith("<memories>\n")
    assert answer["additionalContext"].endswith("</memories>\n")
    assert LESSON in opened.said
    assert LESSON not in fine(second.hook("prompt", prompt=QUESTION, **mode)).said
    assert fine(second.hook("prompt", prompt=SMALL_TALK, **mode)).out == ""
    fine(second.hook("compact", trigger="auto"))
    assert "--lock-timeout 5s" in fine(second.hook("session-start", source="compact")).said

    elsewhere = Agent("claude-code", shared_real.folder, project(shared_real, "website"), "1d2e-other")
    assert fine(elsewhere.hook("session-start", source="startup")).out == ""
    assert fine(elsewhere.hook("prompt", prompt=QUESTION, **mode)).out == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HOSTS if name != "claude-code"])
def test_a_lesson_of_a_session_is_in_the_context_of_the_next_with_each_agent(name: str, shared_real: Process) -> None:
    place = project(shared_real, f"billing-{name}")
    first = Agent(name, shared_real.folder, place, f"{name}-first")
    quiet = {"{}", "", '{"continue":true}'}
    greeted = fine(first.hook("session-start", source="startup"))
    assert greeted.out in quiet or greeted.said.startswith("memoryd keeps what is said")
    assert fine(first.hook("prompt", prompt=LESSON)).out in quiet
    assert fine(first.hook("stop", **{HOSTS[name].message: ANSWER, "stop_hook_active": False})).out in quiet
    assert fine(first.hook("session-end", reason="exit")).out in quiet
    settled(shared_real, place.name)

    second = Agent(name, shared_real.folder, place, f"{name}-second")
    opened = fine(second.hook("session-start", source="startup"))
    assert "--lock-timeout 5s" in opened.said
    assert fine(second.hook("prompt", prompt=SMALL_TALK)).out in quiet
    with shared_real.client(place.name) as client:
        client.add(LESSON, type="lesson")  # beside a prompt comes what was saved
    third = Agent(name, shared_real.folder, place, f"{name}-third")
    asked = fine(third.hook("prompt", prompt=QUESTION))
    if "prompt" in HOSTS[name].injects:
        assert "--lock-timeout 5s" in asked.said
    else:
        assert asked.out == '{"continue":true}'


@pytest.mark.slow
def test_what_an_agent_repeats_of_its_context_is_not_learnt_again(shared_real: Process) -> None:
    place = project(shared_real, "ledger")
    with shared_real.client("ledger") as client:
        client.add("The ledger keeps amounts in cents as integers, never as floats", type="decision")
    agent = Agent("claude-code", shared_real.folder, place, "echo-session")
    said = agent.hook("prompt", prompt="How does the ledger keep amounts of money?").said
    assert "in cents as integers" in said
    with shared_real.client("ledger") as client:  # what the session was given is noted after the reply
        wait_until(lambda: [memory.access_count for memory in client.list()] == [1])
    agent.hook("stop", last_assistant_message="The ledger keeps amounts in cents as integers, never as floats")
    with shared_real.client("ledger") as client:
        assert [turn.role for turn in client.turns()] == ["user"]
        assert client.stats().memories == 1
