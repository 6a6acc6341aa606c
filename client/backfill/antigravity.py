"""Antigravity: `brain/*/.system_generated/logs/transcript_full.jsonl`, a line for each step of a session.

Beside it `transcript.jsonl` has the same steps with what tools are given cut and quoted again; it is read where it is
alone. In which folder a session was is in the log of prompts (`history.jsonl`), else where its commands ran.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.backfill.building import (
    HOST,
    THINKING,
    TOOLS,
    PastSession,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_objects,
)

_FULL = "transcript_full.jsonl"
_WRITES = ("write_to_file", "replace_file_content", "multi_replace_file_content")
_REQUEST = "<USER_REQUEST>", "</USER_REQUEST>"


def read(path: Path, home: Path) -> Iterator[PastSession]:
    """Yield the one session of a file."""
    if path.name != _FULL and path.with_name(_FULL).exists():
        return
    conversation = path.parents[2]
    session = PastSession("antigravity", conversation.name)
    steps = list(read_objects(path, session.left_out))
    session.folder = _find_folder(conversation.parents[1] / "history.jsonl", conversation.name, steps)
    for step in steps:
        _read_step(session, get_text(step, "source"), get_text(step, "type"), step)
    session.close()
    yield session


def _read_step(session: PastSession, source: str, kind: str, step: dict[str, Any]) -> None:
    at, key, text = parse_time(step.get("created_at")), str(step.get("step_index")), get_text(step, "content")
    if source == "USER_EXPLICIT" and kind == "USER_INPUT":
        session.ask(_find_request(text), at, key)
    elif source == "MODEL" and kind == "PLANNER_RESPONSE":
        session.left_out[THINKING] += bool(step.get("thinking"))
        for call in list_objects(step, "tool_calls"):
            if get_text(call, "name").rpartition(":")[2] in _WRITES and _get_argument(call, "IsArtifact") is not True:
                session.write(_get_argument(call, "TargetFile"))
        session.answer(text, at, key)
    else:
        session.left_out[TOOLS if source == "MODEL" else HOST] += 1


def _find_request(text: str) -> str:
    """Return what the user said, which stands between marks before what the program added."""
    begin, end = _REQUEST
    return (text.partition(begin)[2] or text).partition(end)[0].strip()


def _get_argument(call: dict[str, Any], name: str) -> Any:
    """Return an argument of a tool, also one that is quoted again."""
    value = get_object(call, "args").get(name)
    if isinstance(value, str):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(value)
    return value


def _find_folder(history: Path, conversation: str, steps: list[dict[str, Any]]) -> str:
    """Return the folder of a session, empty where nothing says it."""
    with suppress(OSError):
        for prompt in read_objects(history, PastSession("antigravity", "").left_out):
            if prompt.get("conversationId") == conversation and get_text(prompt, "workspace"):
                return get_text(prompt, "workspace")
    commands = (_get_argument(call, "Cwd") for step in steps for call in list_objects(step, "tool_calls"))
    return next((folder for folder in commands if isinstance(folder, str) and folder.startswith("/")), "")
