"""The table of coding agents: which of their events memoryd hooks into, and how they ask and are answered.

As documented by code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks, cursor.com/docs/agent/hooks,
geminicli.com/docs/hooks/reference, opencode.ai/docs/plugins and GitHub's "Copilot CLI hooks reference". Read by the
hooks themselves and by the installer. docs/agents.md says what was tried with which version.
Codex allows a session's end three seconds and no more.
"""

from typing import Any

from msgspec import Struct

# What a hook does; the names that `memctl hook` takes.
START, PROMPT, TOOL, COMPACT, STOP, END = "session-start", "prompt", "tool", "compact", "stop", "session-end"
EVENTS = {
    START: "print the context that a session begins with",
    PROMPT: "print memories that are about the prompt and new to the session; record the prompt",
    TOOL: "note which files were written; bring the index up to date when one is a memory file",
    COMPACT: "let the session receive again what a compaction takes from it",
    STOP: "record the agent's answer",
    END: "say that the session is over: it is summed up",
}


class HostEvent(Struct, frozen=True):
    """An event of an agent: its name there, after how many seconds it ends the hook, which of them are meant."""

    name: str
    timeout_s: int
    matcher: str = ""


_TIMEOUTS_S = {START: 10, END: 3}
_OTHER_TIMEOUT_S = 5
_NAMES = "SessionStart UserPromptSubmit PostToolUse PreCompact Stop SessionEnd"


def _list_events(names: str, start: str = "", tool: str = "") -> dict[str, HostEvent]:
    """Return the events that a host names in the order of `EVENTS`, with what of two of them is meant."""
    matchers = {START: start, TOOL: tool}
    return {
        event: HostEvent(name, _TIMEOUTS_S.get(event, _OTHER_TIMEOUT_S), matchers.get(event, ""))
        for event, name in zip(EVENTS, names.split(), strict=True)
    }


class Host(Struct, frozen=True):
    """A coding agent: its events, its files and what is written into them, how it asks and is answered.

    `files` are below the user's home or a project, each with what of ours it holds: `hooks`, `server` (of MCP); or it
    is a `plugin`, ours as a whole, which has the hooks, and the server where the agent takes one from it. With `home`
    the folder that this variable names takes the place of the first in their names. `project_files`: a project's, where
    they are others.
    """

    title: str
    events: dict[str, HostEvent]
    files: dict[str, str]
    project_files: dict[str, str] | None = None
    home: str = ""
    advice: str = "Running sessions use it once they are restarted."
    # An entry of a file
    head: tuple[tuple[str, Any], ...] = ()  # members that the file of hooks must begin with
    unit: int = 1  # in which part of a second limits are given
    named: bool = False  # whether an entry has a name
    flat: bool = False  # whether an entry is in no group, as Cursor has it
    # Its JSON
    session: tuple[str, ...] = ("session_id",)  # fields that may name the session
    message: str = "last_assistant_message"  # field of the agent's answer
    context: str = ""  # field of a hook's answer that holds the context; none: it is as Claude Code has it
    injects: tuple[str, ...] = (START, PROMPT)
    silence: bytes = b""  # what says nothing at an event
    prompts: str = ""  # module of `sessions` that tells what a prompt is; none: as `clean_prompt` has it
    # Below which folder it keeps sessions: a variable that moves it with what follows, and the place below the home.
    keeps: tuple[str, str] = ("", "")
    file: str = ""  # the session's file there by the name of its session, where not each event has its path
    joins: bool = False  # whether an event tells the answer with what was said before it; the file has it alone
    compactions: tuple[str, ...] = ()  # triggers of a compaction that report one; none: all do

    def answer(self, event: str, text: str) -> dict[str, Any]:
        """Return what puts a text into the agent's context."""
        if self.context:
            return {self.context: text}
        return {"hookSpecificOutput": {"hookEventName": self.events[event].name, "additionalContext": text}}

    def answer_nothing(self, event: str) -> bytes:
        """Return what leaves the agent as if there were no hook."""
        return b'{"continue":true}' if self.flat and event == PROMPT else self.silence


HOSTS = {
    "claude-code": Host(
        "Claude Code",
        _list_events(_NAMES, "startup|resume|clear|compact", "Write|Edit|MultiEdit"),
        {".claude/settings.json": "hooks", ".claude.json": "server"},
        # Not settings.json and what else a team shares: paths of this machine are written there.
        project_files={".claude/settings.local.json": "hooks", ".mcp.json": "server"},
        home="CLAUDE_CONFIG_DIR",
        prompts="claude_code_prompts",
        keeps=("CLAUDE_CONFIG_DIR", ".claude"),
    ),
    "codex": Host(
        "Codex",
        _list_events(_NAMES, "startup|resume|clear|compact", "apply_patch|Edit|Write"),
        {".codex/hooks.json": "hooks", ".codex/config.toml": "server"},
        home="CODEX_HOME",
        prompts="codex_prompts",
        keeps=("CODEX_HOME", ".codex"),
        advice="Codex asks you to trust the hooks when it starts next (see /hooks there).",
    ),
    "cursor": Host(
        "Cursor",
        _list_events("sessionStart beforeSubmitPrompt afterFileEdit preCompact afterAgentResponse sessionEnd"),
        {".cursor/hooks.json": "hooks", ".cursor/mcp.json": "server"},
        advice="Cursor reads it at once; its chats receive memories when they begin.",
        head=(("version", 1),),
        session=("conversation_id", "session_id"),
        message="text",
        context="additional_context",
        injects=(START,),  # `beforeSubmitPrompt` may stop a prompt and say why, no more
        silence=b"{}",
        flat=True,
    ),
    "gemini": Host(
        "Gemini CLI",
        _list_events("SessionStart BeforeAgent AfterTool PreCompress AfterAgent SessionEnd", tool="write_file|replace"),
        {".gemini/settings.json": "hooks server"},
        unit=1000,
        named=True,
        message="prompt_response",
        prompts="gemini_prompts",
        keeps=("GEMINI_CLI_HOME/.gemini", ".gemini"),
        joins=True,
        silence=b"{}",
        compactions=("manual",),  # `auto` comes before every prompt, whether anything is compressed or not (0.61)
    ),
    "opencode": Host(
        "OpenCode",
        _list_events("session.created chat.message tool.execute.after session.compacted session.idle dispose"),
        {".config/opencode/plugins/memoryd.js": "plugin"},
        project_files={".opencode/plugins/memoryd.js": "plugin"},
        home="XDG_CONFIG_HOME",
        prompts="opencode_prompts",
        keeps=("XDG_DATA_HOME/opencode", ".local/share/opencode"),
        file="opencode.db",
    ),
    "cline": Host(
        "Cline",
        _list_events("setup beforeRun afterTool - afterRun SIGTERM"),  # no plugin hears of a compaction (3.0)
        {".cline/plugins/memoryd.js": "plugin", ".cline/data/settings/cline_mcp_settings.json": "server"},
        project_files={".cline/plugins/memoryd.js": "plugin"},  # its MCP servers are those of all projects
        prompts="cline_prompts",
        keeps=("CLINE_DIR", ".cline"),
        file="data/sessions/{0}/{0}.messages.json",
    ),
    "copilot": Host(
        "Copilot CLI",
        _list_events(_NAMES, tool="create|edit|apply_patch"),  # names like these have fields like Claude Code's
        {".copilot/hooks/memoryd.json": "hooks", ".copilot/mcp-config.json": "server"},
        project_files={".github/copilot/settings.local.json": "hooks", ".mcp.json": "server"},
        home="COPILOT_HOME",
        prompts="copilot_prompts",
        keeps=("COPILOT_HOME", ".copilot"),
        file="session-state/{0}/events.jsonl",
        context="additionalContext",
    ),
}
