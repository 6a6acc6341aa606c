"""Classify a prompt of Codex by its text; `codex` names the sources of the rules."""

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

# Fragments that Codex adds to the messages of the user: their tags in `codex-rs/core/src/context`, and `<user_action>`
# (`review_exit_*.xml`).
_FRAGMENTS = {
    "environment_context": CONTEXT,
    "user_instructions": CONTEXT,
    "skill": CONTEXT,
    "goal_context": CONTEXT,
    "extension_context": CONTEXT,
    "codex_internal_context": CONTEXT,
    "recommended_plugins": CONTEXT,
    "apps_instructions": CONTEXT,
    "skills_instructions": CONTEXT,
    "plugins_instructions": CONTEXT,
    "turn_aborted": NOTICE,
    "user_action": NOTICE,
    "subagent_notification": PEER,
    "hook_prompt": FEEDBACK,
    "user_shell_command": COMMAND,
}
_EXTERNAL = "external_"  # prefix of the tags that front ends add
_OPENED = compile_late(r"<([A-Za-z_]\w*)[\s>]")
_INSTRUCTIONS = "# AGENTS.md instructions", "</INSTRUCTIONS>"
# Precedes the typed text in a prompt from an editor (`USER_MESSAGE_BEGIN`).
_REQUEST = "## My request for Codex:"
# Begins a plan for a fresh context (`PLAN_IMPLEMENTATION_CLEAR_CONTEXT_PREFIX`); since 0.16x the plan is in a file.
_HANDED_OVER = compile_late(
    r"A previous agent produced the plan below to accomplish the user's task\."
    r"|Read the approved plan at \S.*approved-plan\.md and implement it\.\s*\Z"
)


def find_fragment(text: str) -> str:
    """Return the kind of a text that consists of one of Codex's fragments, empty for any other text."""
    text = text.strip()
    if text.startswith(_INSTRUCTIONS[0]) and text.endswith(_INSTRUCTIONS[1]):
        return CONTEXT
    if not (opened := _OPENED.match(text)) or not text.lower().endswith(f"</{opened[1].lower()}>"):
        return ""
    name = opened[1].lower()
    return CONTEXT if name.startswith(_EXTERNAL) else _FRAGMENTS.get(name, "")


def judge(text: str) -> Judged:
    """Classify a text that Codex presents as a prompt."""
    if kind := find_fragment(text):
        return Judged(kind)
    if _HANDED_OVER.match(text):
        return Judged(HANDED_PLAN)
    head, found_request, request = text.partition(_REQUEST)
    said = clean_prompt(request if found_request and head.lstrip().startswith(("#", "<")) else text)
    return Judged(TYPED, said) if said else Judged(COMMAND)
