"""Gemini CLI: `tmp/*/chats/session-*`, of JSON lines since 2026, before one JSON object with a list of messages.

Of lines one that has the id of an earlier one replaces it, as when a tool has ended; `$set` gives the whole list anew
when a session is resumed, with other times and with thoughts among the text: of each message the first text and time
count. A session that was rewound has lost what came after.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

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
    read_object,
    read_objects,
)

_WRITES = ("write_file", "replace", "edit")
_MAX_FOLDER_BYTES = 4096


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the one session of a file."""
    session = Session("gemini", path.stem)
    if path.suffix == ".json":
        lines: Iterable[dict[str, Any]] = [read_object(path, session.left_out)]
    else:
        lines = read_objects(path, session.left_out)
    head: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}
    for line in lines:
        if rewound := get_text(line, "$rewindTo"):
            _rewind(messages, rewound)
        elif "$set" in line:
            _merge(messages, list_objects(line["$set"], "messages"))
        elif "sessionId" in line:
            head = line
            _merge(messages, list_objects(line, "messages"))
        else:
            _merge(messages, [line])
    session.name = get_text(head, "sessionId") or session.name
    session.folder = _find_folder(path.parent.parent, get_text(head, "projectHash"), home)
    if head.get("kind") == "subagent":
        session.left_out[SUBAGENT] += len(messages)
    else:
        for message in messages.values():
            _read_message(session, message)
    session.close()
    yield session


def _merge(messages: dict[str, dict[str, Any]], coming: Iterable[dict[str, Any]]) -> None:
    for message in coming:
        id = get_text(message, "id") or f"{len(messages)}"
        former = messages.get(id, {})
        kept = {name: former[name] for name in ("content", "timestamp", "toolCalls") if former.get(name)}
        messages[id] = {**message, **kept, **({"toolCalls": calls} if (calls := message.get("toolCalls")) else {})}


def _rewind(messages: dict[str, dict[str, Any]], id: str) -> None:
    """Forget a message and what came after it; all, where it is not known."""
    ids = list(messages)
    for later in ids[ids.index(id) if id in messages else 0 :]:
        del messages[later]


def _read_message(session: Session, message: dict[str, Any]) -> None:
    at, key = parse_time(message.get("timestamp")), get_text(message, "id")
    parts = list_objects(message, "content")
    text = get_text(message, "content") or "\n".join(
        get_text(part, "text") for part in parts if not part.get("thought")
    )
    if any("functionResponse" in part for part in parts):
        session.left_out[TOOLS] += 1
    elif text.startswith("<session_context>"):
        session.left_out[HOST] += 1
    elif message.get("type") == "user":
        session.person(text, at, key)
    elif message.get("type") == "gemini":
        session.left_out[THINKING] += len(list_objects(message, "thoughts"))
        for call in list_objects(message, "toolCalls"):
            if call.get("name") in _WRITES and call.get("status") in (None, "success"):
                session.write(get_object(call, "args").get("file_path"))
        session.agent_says(text, at, key)
    else:
        session.left_out[HOST] += 1


def _find_folder(project: Path, digest: str, home: Path) -> str:
    """Return the folder of a session: named beside it, else the one of those that are known with this SHA-256."""
    with suppress(OSError, UnicodeDecodeError), (project / ".project_root").open(encoding="utf-8") as file:
        return file.read(_MAX_FOLDER_BYTES).strip()
    for file_name in ("projects.json", "trustedFolders.json"):
        with suppress(OSError):
            known = read_object(home / file_name, Session("gemini", "").left_out)
            for folder in {**known, **get_object(known, "projects")}:
                if hashlib.sha256(folder.encode(errors="replace")).hexdigest() == digest:
                    return folder
    return ""
