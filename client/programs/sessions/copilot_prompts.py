"""Classify a prompt of Copilot CLI by its text; `copilot` names the sources of the rules."""

import re

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.prompts import (
    ARGUMENT,
    COMMAND,
    CONTEXT,
    NOTICE,
    TYPED,
    Judged,
    clean_prompt,
)

# Elements that Copilot adds to a message for the model (`transformedContent`).
_BESIDE = compile_late(
    r"<(current_datetime|system_reminder|tools_changed_notice|tagged_files)>.*?(?:</\1>\s*|\Z)", re.DOTALL
)
_NOTICE = "<system_notification>"
_COMMAND = compile_late(r"/[\w:-]+(?:\s+(.*))?\Z", re.DOTALL)


def judge(text: str) -> Judged:
    """Classify a text that Copilot CLI presents as a prompt."""
    rest = _BESIDE.sub("", text) if "<" in text else text
    if not rest.strip() or rest.lstrip().startswith(_NOTICE):
        return Judged(NOTICE)
    if command := _COMMAND.match(rest.strip()):
        return Judged(ARGUMENT, command[1].strip()) if command[1] else Judged(COMMAND)
    said = clean_prompt(rest)
    return Judged(TYPED, said) if said else Judged(CONTEXT)
