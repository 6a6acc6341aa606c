"""Prompts that a host offers its user, for example as commands: recall and remember, one row each in `PROMPTS`.

Reading a prompt changes nothing: `remember` asks the agent to save.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from memoryd.client import calls
from memoryd.client.programs.mcp import resources
from memoryd.client.programs.mcp.session import ProjectSession

_SUMMARY = resources.uri("summary")


class PromptEntry(NamedTuple):
    """A prompt as a host shows it, its only argument, which is optional, and the function that returns its text."""

    title: str
    description: str
    argument: str
    about: str
    write: Callable[[ProjectSession, str], Awaitable[str]]


async def _recall(session: ProjectSession, topic: str) -> str:
    if topic:
        call = calls.context(topic, max_tokens=resources.BUDGET, session=session.id, fresh=True)
        text = (await session.call(call)).text or "Nothing relevant is remembered.\n"
    else:
        text = await resources.read(session, _SUMMARY)
    subject = topic or "this project"
    return f"What is remembered from earlier sessions about {subject}:\n\n{text}\nUse what matters for our work."


async def _remember(session: ProjectSession, what: str) -> str:
    task = (
        f"Save this with memory_save:\n\n{what}\n\n"
        if what
        else "Go through our conversation and save with memory_save what a later session would want to know: decisions"
        " with their reasons, preferences, corrections, lessons. "
    )
    return (
        f"{task}Save one thing per call, in a sentence that is understood without this conversation; no secrets."
        " Then say in a line what was saved."
    )


PROMPTS: Mapping[str, PromptEntry] = {
    "recall": PromptEntry(
        "Recall",
        "What is remembered about a topic; without one, what matters most in this project.",
        "topic",
        "what to recall, in plain words",
        _recall,
    ),
    "remember": PromptEntry(
        "Remember",
        "Save something for later sessions; without a text, what this conversation brought.",
        "what",
        "what to remember",
        _remember,
    ),
}
