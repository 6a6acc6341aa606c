"""Cline (3.0 and later): `data/sessions/*/*.messages.json`, beside it a file that names the folder of the session."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.building import (
    SUBAGENT,
    THINKING,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_object,
)

_ENDING = ".messages.json"
_LEAD = "lead"  # the agent that the user talks to
_TYPED = compile_late(r"<user_input[^<>]*>(.*?)(?:</user_input>|\Z)", re.DOTALL)


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the one session of a file."""
    session = Session("cline", path.name.removesuffix(_ENDING))
    held = read_object(path, session.left_out)
    beside = path.with_name(f"{session.name}.json")
    described = read_object(beside, session.left_out) if beside.exists() else {}
    session.folder = get_text(described, "cwd") or get_text(described, "workspace_root")
    messages = list_objects(held, "messages")
    if get_text(held, "agent") not in ("", _LEAD):
        session.left_out[SUBAGENT] += len(messages)
        messages = []
    edits: dict[str, Any] = {}  # by call: the file that the editor is to write
    for message in messages:
        _read_message(session, message, edits)
    session.close()
    yield session


def _read_message(session: Session, message: dict[str, Any], edits: dict[str, Any]) -> None:
    at, key, texts = parse_time(message.get("ts")), get_text(message, "id"), []
    for block in list_objects(message, "content"):
        match block.get("type"):
            case "text":
                texts.append(get_text(block, "text"))
            case "thinking" | "reasoning":
                session.left_out[THINKING] += 1
            case "tool_use" if block.get("name") == "editor":
                edits[get_text(block, "id")] = get_object(block, "input").get("path")
            case "tool_result":
                session.left_out[TOOLS] += 1
                written = edits.pop(get_text(block, "tool_use_id"), None)
                session.write(None if block.get("is_error") else written)
    text = "\n".join(texts) or get_text(message, "content")
    if message.get("role") == "assistant":
        session.agent_says(text, at, key)
    elif text:
        session.person("\n".join(_TYPED.findall(text)) or text, at, key)
