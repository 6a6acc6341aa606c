"""Classify a prompt of Cline by its text; `cline` names the sources of the rules."""

import re

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.prompts import ARGUMENT, COMMAND, CONTEXT, SYNTHETIC, TYPED, Judged, clean_prompt

_TYPED = compile_late(r"<user_input\b[^<>]*>(.*?)(?:</user_input>|\Z)", re.DOTALL)
_COMMAND = compile_late(r"<user_command\b[^<>]*>(.*?)(?:</user_command>|\Z)", re.DOTALL)
_TEAM = "spawn a team of agents for the following task:"  # precedes the arguments of /team
_BESIDE = compile_late(r"<(mode_notice|file_content)\b[^<>]*>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_OF_PROGRAM = ("[TASK RESUMPTION]", "The user approved switching to act mode. Continue with the approved plan now.")


def judge(text: str) -> Judged:
    """Classify a text that Cline presents as a prompt."""
    if command := _COMMAND.search(text):
        given = command[1].strip()
        given = given[len(_TEAM) :].strip() if given.lower().startswith(_TEAM) else given
        return Judged(ARGUMENT, given) if given else Judged(COMMAND)
    inner = "\n".join(_TYPED.findall(text)) or text
    if inner.lstrip().startswith(_OF_PROGRAM):
        return Judged(SYNTHETIC)
    said = clean_prompt(_BESIDE.sub("", inner))
    return Judged(TYPED, said) if said else Judged(CONTEXT if "<" in inner else COMMAND)
