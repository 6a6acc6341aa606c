"""Classify a prompt of Gemini CLI by its text; `gemini` names the sources of the rules."""

import re

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.prompts import (
    ARGUMENT,
    COMMAND,
    CONTEXT,
    FEEDBACK,
    NOTICE,
    QUEUED,
    TYPED,
    Judged,
    clean_prompt,
)

# Contents of files that a prompt refers to with @ (`packages/core/src/utils/constants.ts`), and the output of hooks.
_BESIDE = compile_late(
    r"\n?--- Content from referenced files ---.*?(?:\n--- End of content ---|\Z)"
    r"|<hook_context>.*?(?:</hook_context>|\Z)",
    re.DOTALL,
)
# A prompt that was typed while the agent worked, as the agent gets it (`packages/core/src/utils/fastAckHelper.ts`).
_STEERED = compile_late(r"User (?:steering update|hints):\n<user_input>\n(.*?)\n</user_input>", re.DOTALL)
_BACKGROUND = "Background execution update:\n"
_SETUP = ("<session_context>", "This is the Gemini CLI. We are setting up the context for our chat.")
_EDITOR = ("Here is the user's editor context", "Here is a summary of changes in the user's editor context")
_COMMAND = compile_late(r"/[\w:-]+(?:\s+(.*))?\Z", re.DOTALL)


def judge(text: str) -> Judged:
    """Classify a text that Gemini CLI presents as a prompt."""
    if steered := _STEERED.match(text):
        said = steered[1].replace("\\n", "\n").replace("\\]", "]").replace("<\\/", "</")
        return Judged(QUEUED, said.strip())
    if text.startswith(_BACKGROUND):
        return Judged(NOTICE)
    if text.lstrip().startswith((*_SETUP, *_EDITOR)):
        return Judged(CONTEXT)
    rest = _BESIDE.sub("", text).strip()
    if command := _COMMAND.match(rest):
        return Judged(ARGUMENT, command[1].strip()) if command[1] else Judged(COMMAND)
    said = clean_prompt(rest)
    return Judged(TYPED, said) if said else Judged(FEEDBACK if "<hook_context>" in text else CONTEXT)
