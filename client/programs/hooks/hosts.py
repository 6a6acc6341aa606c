"""The table of coding agents: the events that memoryd hooks into, and the formats of their input and output.

Documented at code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks, cursor.com/docs/agent/hooks,
geminicli.com/docs/hooks/reference, opencode.ai/docs/plugins and GitHub's "Copilot CLI hooks reference". The hooks
themselves and the installer read this table. docs/agents.md lists the versions that were tested.
"""

from typing import Any

from msgspec import Struct

# The events, by the names that `memctl hook` accepts.
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
    """An event of an agent: the agent's name for it, the time limit of its hook, and a filter by tool or source."""

    name: str
    timeout_s: int
    matcher: str = ""


_TIMEOUTS_S = {START: 10, END: 3}  # Codex allows no more than 3 s at the end of a session
_OTHER_TIMEOUT_S = 5
_NAMES = "SessionStart UserPromptSubmit PostToolUse PreCompact Stop SessionEnd"


def _list_events(names: str, start: str = "", tool: str = "") -> dict[str, HostEvent]:
    """Build the events of a host from its names for `EVENTS`, in their order, with matchers for two of them."""
    matchers = {START: start, TOOL: tool}
    return {
        event: HostEvent(name, _TIMEOUTS_S.get(event, _OTHER_TIMEOUT_S), matchers.get(event, ""))
        for event, name in zip(EVENTS, names.split(), strict=True)
    }


class Host(Struct, frozen=True):
    """A coding agent: its events, its configuration files with our entries, and the formats of its input and output.

    `files` are relative to the user's home or a project, each with the kinds of entries in it: `hooks`, `server` (of
    MCP), or `plugin`: a file that is entirely ours and has the hooks, and the server if the agent supports that. `home`
    is an environment variable that replaces the first folder of their paths. `project_files` are the files of a project
    if they differ.
    """

    title: str
    events: dict[str, HostEvent]
    files: dict[str, str]
    project_files: dict[str, str] | None = None
    home: str = ""
    advice: str = "Running sessions use it once they are restarted."
    # Entries in files
    head: tuple[tuple[str, Any], ...] = ()  # members that a new file of hooks begins with
    unit: int = 1  # how many units of the agent's time limits make a second
    named: bool = False  # whether an entry has a name
    flat: bool = False  # whether entries are not in groups, as in Cursor
    # Input and output
    session: tuple[str, ...] = ("session_id",)  # fields that may name the session
    message: str = "last_assistant_message"  # field of the agent's answer
    context: str = ""  # field of the output for the context; empty: the format of Claude Code
    injects: tuple[str, ...] = (START, PROMPT)
    silence: bytes = b""  # the output without an answer
    prompts: str = ""  # module of `sessions` that recognises the person's prompts; empty: `clean_prompt` does
    # The folder of the sessions: an environment variable with the path below it, else the path below the user's home.
    keeps: tuple[str, str] = ("", "")
    file: str = ""  # path of a session's file there, a format for the session's name, if events do not contain the path
    joins: bool = False  # whether the answer in an event includes earlier messages, which are separate in the file
    compactions: tuple[str, ...] = ()  # triggers of a compaction that count; empty: all do

    def answer(self, event: str, text: str) -> dict[str, Any]:
        """Return the output that adds a text to the agent's context."""
        if self.context:
            return {self.context: text}
        return {"hookSpecificOutput": {"hookEventName": self.events[event].name, "additionalContext": text}}

    def answer_nothing(self, event: str) -> bytes:
        """Return the output that has no effect on the agent."""
        return b'{"continue":true}' if self.flat and event == PROMPT else self.silence


HOSTS = {
    "claude-code": Host(
        "Claude Code",
        _list_events(_NAMES, "startup|resume|clear|compact", "Write|Edit|MultiEdit"),
        {".claude/settings.json": "hooks", ".claude.json": "server"},
        # Not settings.json and other files that a team shares, since the entries contain paths of this machine.
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
        injects=(START,),  # `beforeSubmitPrompt` can only stop a prompt
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
        _list_events("setup beforeRun afterTool - afterRun SIGTERM"),  # plugins get no event for a compaction (3.0)
        {".cline/plugins/memoryd.js": "plugin", ".cline/data/settings/cline_mcp_settings.json": "server"},
        project_files={".cline/plugins/memoryd.js": "plugin"},  # MCP servers can only be configured for all projects
        prompts="cline_prompts",
        keeps=("CLINE_DIR", ".cline"),
        file="data/sessions/{0}/{0}.messages.json",
    ),
    "copilot": Host(
        "Copilot CLI",
        _list_events(
            _NAMES, tool="create|edit|apply_patch"
        ),  # events with these names have the same fields as Claude Code's
        {".copilot/hooks/memoryd.json": "hooks", ".copilot/mcp-config.json": "server"},
        project_files={".github/copilot/settings.local.json": "hooks", ".mcp.json": "server"},
        home="COPILOT_HOME",
        prompts="copilot_prompts",
        keeps=("COPILOT_HOME", ".copilot"),
        file="session-state/{0}/events.jsonl",
        context="additionalContext",
    ),
}
