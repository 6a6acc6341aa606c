"""Copilot CLI: `session-state/*/events.jsonl`, a line for each event of a session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.programs.sessions.building import (
    HOST,
    SUBAGENT,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_objects,
)

_WRITES = ("create", "edit")


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the one session of a file."""
    session = Session("copilot", path.parent.name)
    writes: dict[str, Any] = {}  # by call: the file that a tool is to write
    for event in read_objects(path, session.left_out):
        _read_event(session, get_text(event, "type"), event, writes)
    session.close()
    yield session


def _read_event(session: Session, kind: str, event: dict[str, Any], writes: dict[str, Any]) -> None:
    data, at = get_object(event, "data"), parse_time(event.get("timestamp"))
    call = get_text(data, "toolCallId")
    if kind in ("session.start", "session.resume"):
        session.folder = get_text(get_object(data, "context"), "cwd") or session.folder
    elif data.get("parentToolCallId"):
        session.left_out[SUBAGENT] += kind.endswith(".message")
    elif kind == "user.message" and not get_text(data, "source").startswith("skill"):
        session.person(get_text(data, "content"), at, get_text(event, "id"))
    elif kind == "assistant.message":
        session.agent_says(get_text(data, "content"), at, get_text(event, "id"))
    elif kind.endswith(".message"):
        session.left_out[HOST] += 1
    elif kind == "tool.execution_start" and data.get("toolName") in _WRITES:
        writes[call] = get_object(data, "arguments").get("path")
    elif kind == "tool.execution_complete":
        session.left_out[TOOLS] += 1
        written = writes.pop(call, None)
        edits = [edit.get("path") for edit in list_objects(data, "fileEdits")] or [written]
        for path in edits if data.get("success") else ():
            session.write(path)
