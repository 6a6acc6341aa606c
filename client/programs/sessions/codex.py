"""Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, a line for each item of the conversation, of which messages are read.

Until late 2025 lines were the items themselves, later they are in `payload`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.programs.hooks.answering import PATCHED
from memoryd.client.programs.sessions.building import (
    HOST,
    SUBAGENT,
    THINKING,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_objects,
)

# What the program puts beside prompts, in messages of the user.
_ADDED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "<subagent_", "# AGENTS.md instructions")
_DONE = "Updated the following files"  # what a patch says that was applied
_ID_CHARS = 36  # at the end of a file's name


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the one session of a file."""
    session, is_subagent = Session("codex", path.stem[-_ID_CHARS:]), False
    patches: dict[str, list[str]] = {}
    for number, line in enumerate(read_objects(path, session.left_out)):
        item = get_object(line, "payload") or line
        kind = line.get("type") if "payload" in line else "response_item"
        if kind == "session_meta" or number == 0:
            is_subagent = is_subagent or isinstance(item.get("source"), dict)
        if kind in ("session_meta", "turn_context"):
            session.folder = get_text(item, "cwd") or session.folder
        elif kind == "response_item" and is_subagent:
            session.left_out[SUBAGENT] += item.get("type") == "message"
        elif kind == "response_item":
            _read_item(session, item, parse_time(line.get("timestamp")), f"{number}", patches)
    session.close()
    yield session


def _read_item(
    session: Session, item: dict[str, Any], at: float | None, key: str, patches: dict[str, list[str]]
) -> None:
    match item.get("type"), item.get("role"):
        case "message", "user":
            texts = [text for part in list_objects(item, "content") if (text := get_text(part, "text"))]
            said = [text for text in texts if not text.lstrip().startswith(_ADDED)]
            session.left_out[HOST] += not said
            if said:
                session.person("\n".join(said), at, key)
        case "message", "assistant":
            session.agent_says("\n".join(get_text(part, "text") for part in list_objects(item, "content")), at, key)
        case "message", _:
            session.left_out[HOST] += 1
        case "reasoning", _:
            session.left_out[THINKING] += 1
        case "function_call" | "custom_tool_call", _:
            patches[get_text(item, "call_id")] = _find_patched(item)
        case "function_call_output" | "custom_tool_call_output", _:
            session.left_out[TOOLS] += 1
            patched = patches.pop(get_text(item, "call_id"), [])
            for path in patched if _DONE in str(item.get("output")) else ():
                session.write(path)


def _find_patched(call: dict[str, Any]) -> list[str]:
    """Return the files of a patch, which a tool of its own takes, or a command of the shell."""
    text = get_text(call, "input") or get_text(call, "arguments")
    if "*** Begin Patch" not in text:
        return []
    lines = text.replace("\\n", "\n") if text.lstrip().startswith("{") else text
    return [path.strip() for path in PATCHED.findall(lines)]
