"""Cline (3.0 and later): `data/sessions/*/*.messages.json`, next to a file with the folder of the session.

Elements, fields of `metadata` and sentences are those of the packages `@cline/shared` (`prompt/format`) and
`@cline/core` 0.0.86. Typed text is in `<user_input>`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

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
from memoryd.client.programs.sessions.cline_prompts import judge
from memoryd.client.programs.sessions.prompts import COMPACTION, NOTICE, REPLY, SYNTHETIC

_ENDING = ".messages.json"
_LEAD = "lead"  # the main agent, unlike subagents
# `kind` of messages that the program writes in the user's role.
_KINDS = frozenset("completion_reminder loop_detection_notice mistake_stop_notice recovery_notice".split())
_SHOWN = ("system", "status", "error")  # `displayRole` of messages of the program
_BLOCKS = frozenset("text thinking reasoning redacted_thinking tool_use tool_result image file document".split())


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the one session of a file."""
    session = Session("cline", path.name.removesuffix(_ENDING))
    held = read_object(path, session.left_out)
    beside = path.with_name(f"{session.name}.json")
    described = read_object(beside, session.left_out) if beside.exists() else {}
    session.folder = get_text(described, "cwd") or get_text(described, "workspace_root")
    session.version = get_text(get_object(held, "origin"), "version")
    session.began = parse_time(described.get("started_at"))
    messages = list_objects(held, "messages")
    if get_text(held, "agent") not in ("", _LEAD):
        session.left_out[SUBAGENT] += len(messages)
        messages = []
    reading = _Reading(session)
    for number, message in enumerate(messages):
        reading.take(message, f"{number}")
    session.close()
    session.note_automated("one prompt without a terminal" if described.get("interactive") is False else "")
    yield session


class _Reading:
    """State while the messages of a session are read; `calls` are those without a result yet, by id."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.calls: dict[str, dict[str, Any]] = {}

    def take(self, message: dict[str, Any], number: str) -> None:
        """Process a message; one in the user's role may contain nothing but results of tools."""
        session, role, shown = self.session, message.get("role"), get_object(message, "metadata")
        at, key = parse_time(message.get("ts")), get_text(message, "id") or number
        session.offset = int(at * 1000) if at else session.offset
        blocks = list_objects(message, "content")
        text = "\n".join(get_text(block, "text") for block in blocks if block.get("type") == "text")
        text = text or get_text(message, "content")
        for block in blocks:
            self._read_block(block, at, key)
        kind = get_text(shown, "kind")
        if "compaction" in kind:
            session.left_out[COMPACTION] += 1
        elif kind in _KINDS and role == "user":
            session.program_says(NOTICE)
        elif shown.get("displayRole") in _SHOWN or shown.get("displayOnly"):
            session.left_out[NOTICE if role == "user" else SYNTHETIC] += 1
        elif role == "assistant":
            session.agent_says(text, at, key)
        elif role == "user" and text.strip():
            session.prompt(judge(text), at, key)
        elif role != "user":
            session.unknown[f"messages of {str(role)[:40]}"] += 1

    def _read_block(self, block: dict[str, Any], at: float | None, key: str) -> None:
        session, kind = self.session, block.get("type")
        if kind in ("thinking", "reasoning", "redacted_thinking"):
            session.left_out[THINKING] += 1
        elif kind == "tool_use":
            self.calls[get_text(block, "id")] = block
        elif kind == "tool_result":
            session.left_out[TOOLS] += 1
            id = get_text(block, "tool_use_id")
            call = self.calls.pop(id, {})
            given = get_object(call, "input")
            if block.get("is_error"):
                return
            if call.get("name") == "editor":
                session.write(given.get("path"))
            elif call.get("name") == "ask_question" and (reply := _find_reply(block)):
                session.drop_interim()
                session.says(REPLY, reply, at, f"{key}\0{id}", question=get_text(given, "question"))
        elif kind not in _BLOCKS:
            session.unknown[f"blocks of type {str(kind)[:40]}"] += 1


def _find_reply(block: dict[str, Any]) -> str:
    """Return the user's answer: the result of the tool, or a field of it."""
    text = get_text(block, "content") or "\n".join(get_text(part, "text") for part in list_objects(block, "content"))
    try:
        held = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text.strip()
    return (held if isinstance(held, str) else get_text(held, "result") or text).strip()
