"""What a prompt of Codex is, by its text alone; `codex` says which sources that follows."""

import re

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.prompts import (
    COMMAND,
    CONTEXT,
    FEEDBACK,
    HANDED_PLAN,
    NOTICE,
    PEER,
    TYPED,
    Judged,
    clean_prompt,
)

# What Codex puts among the messages of the user: START_MARKER of each fragment in `codex-rs/core/src/context`, and
# `<user_action>` (`review_exit_*.xml`).
FRAGMENTS = compile_late(
    r"\s*(?:<(environment_context|user_instructions|turn_aborted|subagent_notification|user_shell_command|skill"
    r"|hook_prompt|goal_context|extension_context|codex_internal_context|user_action|recommended_plugins"
    r"|apps_instructions|skills_instructions|plugins_instructions|external_[^<>\s]*)\b[^>]*>.*</\1>"
    r"|# AGENTS\.md instructions\b.*<INSTRUCTIONS>.*</INSTRUCTIONS>)\s*",
    re.DOTALL | re.IGNORECASE,
)
_KINDS = {
    "turn_aborted": NOTICE,
    "user_action": NOTICE,
    "subagent_notification": PEER,
    "hook_prompt": FEEDBACK,
    "user_shell_command": COMMAND,
}
# Before what was typed beside an editor (`USER_MESSAGE_BEGIN`).
_REQUEST = "## My request for Codex:"
_HANDED_OVER = "A previous agent produced the plan below to accomplish the user's task."  # …_CLEAR_CONTEXT_PREFIX


def judge(text: str) -> Judged:
    """Return what a text is that Codex presents as a prompt."""
    if found := FRAGMENTS.fullmatch(text):
        return Judged(_KINDS.get((found[1] or "").lower(), CONTEXT))
    if text.startswith(_HANDED_OVER):
        return Judged(HANDED_PLAN)
    head, found_request, request = text.partition(_REQUEST)
    said = clean_prompt(request if found_request and head.lstrip().startswith(("#", "<")) else text)
    return Judged(TYPED, said) if said else Judged(COMMAND)
