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
    """A coding agent: its events, its files and what is written into them, how it asks and is answered.

    `files` are below the user's home or a project, each with what of ours it holds: `hooks`, `server` (of MCP). With
    `home` they are in the folder that this variable names. `project_files`: a project's, where they are others.
    """

    title: str
    events: dict[str, HostEvent]
    files: dict[str, str]
    project_files: dict[str, str] | None = None
    home: str = ""
    advice: str = "Sessions that run take it up when they are started again."
    # An entry of a file
    head: tuple[tuple[str, Any], ...] = ()  # members that the file of hooks must begin with
    unit: int = 1  # in which part of a second limits are given
    named: bool = False  # whether an entry has a name
    flat: bool = False  # whether an entry is in no group, and an answer one object, as Cursor has it
    # Its JSON
    session: tuple[str, ...] = ("session_id",)  # fields that may name the session
    message: str = "last_assistant_message"  # field of the agent's answer
    injects: tuple[str, ...] = (START, PROMPT)
    silence: bytes = b""  # what says nothing at an event
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
        {".claude/settings.json": "hooks", ".claude.json": "server"},
        # Not settings.json and what else a team shares: paths of this machine are written there.
        project_files={".claude/settings.local.json": "hooks", ".mcp.json": "server"},
        home="CLAUDE_CONFIG_DIR",
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
        {".codex/hooks.json": "hooks", ".codex/config.toml": "server"},
        home="CODEX_HOME",
        advice="Codex asks you to trust the hooks when it starts next (see /hooks there).",
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
        {".cursor/hooks.json": "hooks", ".cursor/mcp.json": "server"},
        advice="Cursor reads it at once; its chats are given memories when they begin.",
        head=(("version", 1),),
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
        {".gemini/settings.json": "hooks server"},
        unit=1000,
        named=True,
        message="prompt_response",
        silence=b"{}",
        compactions=("manual",),  # `auto` comes before every prompt, whether anything is compressed or not (0.61)
    ),
}
