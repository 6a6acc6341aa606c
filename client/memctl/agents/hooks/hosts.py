"""The table of coding agents: which of their events memoryd hooks into, and how they ask and are answered.

As documented by code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks, cursor.com/docs/agent/hooks and
geminicli.com/docs/hooks/reference. Read by the hooks themselves and by the installer.
Tried with Claude Code 2.1, Codex 0.169 and Gemini CLI 0.61. Codex allows a session's end three seconds and no more.
"""

from typing import Any, NamedTuple

# What a hook does; the names that `memctl hook` takes.
START, PROMPT, TOOL, COMPACT, STOP, END = "session-start", "prompt", "tool", "compact", "stop", "session-end"
EVENTS = {
    START: "give the context that a session begins with",
    PROMPT: "give what matters for a prompt and is new to the session; take note of the prompt",
    TOOL: "note which files were written; bring the index up to date when one is a memory file",
    COMPACT: "have the session be given again what a compaction takes from it",
    STOP: "take note of the agent's answer",
    END: "say that the session is over: it is summed up",
}


class HostEvent(NamedTuple):
    """An event of an agent: its name there, after how many seconds it ends the hook, which of them are meant."""

    name: str
    timeout_s: int
    matcher: str = ""


class Host(NamedTuple):
    """A coding agent. `session`, `message`: names of fields of its JSON; `silence`: what says nothing at an event."""

    title: str
    events: dict[str, HostEvent]
    session: tuple[str, ...] = ("session_id",)
    message: str = "last_assistant_message"
    injects: tuple[str, ...] = (START, PROMPT)
    silence: bytes = b""
    flat: bool = False  # whether an answer is one object, as Cursor has it
    compactions: tuple[str, ...] = ()  # triggers of a compaction that report one; none: all do

    def answer(self, event: str, text: str) -> dict[str, Any]:
        """Return what puts a text into the agent's context."""
        if self.flat:
            return {"additional_context": text}
        return {"hookSpecificOutput": {"hookEventName": self.events[event].name, "additionalContext": text}}

    def answer_nothing(self, event: str) -> bytes:
        """Return what leaves the agent as if there were no hook."""
        return b'{"continue":true}' if self.flat and event == PROMPT else self.silence


HOSTS = {
    "claude-code": Host(
        "Claude Code",
        {
            START: HostEvent("SessionStart", 10, "startup|resume|clear|compact"),
            PROMPT: HostEvent("UserPromptSubmit", 5),
            TOOL: HostEvent("PostToolUse", 5, "Write|Edit|MultiEdit"),
            COMPACT: HostEvent("PreCompact", 5),
            STOP: HostEvent("Stop", 5),
            END: HostEvent("SessionEnd", 3),
        },
    ),
    "codex": Host(
        "Codex",
        {
            START: HostEvent("SessionStart", 10, "startup|resume|clear|compact"),
            PROMPT: HostEvent("UserPromptSubmit", 5),
            TOOL: HostEvent("PostToolUse", 5, "apply_patch|Edit|Write"),
            COMPACT: HostEvent("PreCompact", 5),
            STOP: HostEvent("Stop", 5),
            END: HostEvent("SessionEnd", 3),
        },
    ),
    "cursor": Host(
        "Cursor",
        {
            START: HostEvent("sessionStart", 10),
            PROMPT: HostEvent("beforeSubmitPrompt", 5),
            TOOL: HostEvent("afterFileEdit", 5),
            COMPACT: HostEvent("preCompact", 5),
            STOP: HostEvent("afterAgentResponse", 5),
            END: HostEvent("sessionEnd", 3),
        },
        session=("conversation_id", "session_id"),
        message="text",
        injects=(START,),  # `beforeSubmitPrompt` may stop a prompt and say why, no more
        silence=b"{}",
        flat=True,
    ),
    "gemini": Host(
        "Gemini CLI",
        {
            START: HostEvent("SessionStart", 10),
            PROMPT: HostEvent("BeforeAgent", 5),
            TOOL: HostEvent("AfterTool", 5, "write_file|replace"),
            COMPACT: HostEvent("PreCompress", 5),
            STOP: HostEvent("AfterAgent", 5),
            END: HostEvent("SessionEnd", 3),
        },
        message="prompt_response",
        silence=b"{}",
        compactions=("manual",),  # `auto` comes before every prompt, whether anything is compressed or not (0.61)
    ),
}
