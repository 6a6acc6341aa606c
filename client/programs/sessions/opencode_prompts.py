"""Classify a prompt of OpenCode by its text; `opencode` names the sources of the rules."""

import re

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.prompts import ARGUMENT, COMMAND, CONTEXT, TYPED, Judged, clean_prompt

# Templates of OpenCode's built-in commands (`packages/opencode/src/command/template`): how they begin, and the text
# before the command's arguments.
_TEMPLATES = (
    ("Create or update `AGENTS.md` for this repository.", "User-provided focus or constraints (honor these):"),
    ("Please analyze this codebase and create an AGENTS.md file containing:", ""),
    ("You are a code reviewer. Your job is to review code changes", "Input: "),
)
_REMINDER = compile_late(r"<system-reminder>.*?(?:</system-reminder>\s*|\Z)", re.DOTALL)


def judge(text: str) -> Judged:
    """Classify a text that OpenCode presents as a prompt."""
    for begins, before in _TEMPLATES:
        if text.lstrip().startswith(begins):
            given = text.partition(before)[2].lstrip().partition("\n")[0].strip() if before else ""
            return Judged(ARGUMENT, given) if given else Judged(COMMAND)
    said = clean_prompt(_REMINDER.sub("", text) if "<system-reminder>" in text else text)
    return Judged(TYPED, said) if said else Judged(CONTEXT if "<" in text else COMMAND)
