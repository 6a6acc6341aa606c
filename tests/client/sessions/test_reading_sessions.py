"""Reading past sessions: what is the user's and the agent's, and what programs put around it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.programs.sessions import claude_code, codex, gemini
from memoryd.client.programs.sessions.building import Session, parse_time

ID = "0b6cf8a4-3c1e-4d1f-9a7e-5f0d2c4b6a81"
AT = "2026-03-01T12:00:00.000Z"


def lines(path: Path, *entries: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def said(session: Session) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in session.utterances if not turn.taken_back]


def claude(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, "cwd": "/w", "timestamp": AT, **fields}


def test_of_answers_before_the_next_prompt_the_last_one_stays(folder: Path) -> None:
    entries = [
        claude("assistant", "I begin without being asked"),
        claude("user", "Fix the test"),
        claude("assistant", [{"type": "text", "text": "I look"}]),
        claude("assistant", [{"type": "tool_use", "id": "a", "name": "Edit", "input": {"file_path": "/w/a.py"}}]),
        claude("assistant", [{"type": "tool_use", "id": "b", "name": "Edit", "input": {"file_path": "b.py"}}]),
        claude("assistant", [{"type": "tool_use", "id": "e", "name": "Edit", "input": {"file_path": "D:\\w\\e.py"}}]),
        claude("assistant", [{"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "/w/c.py"}}]),
        claude("assistant", [{"type": "tool_use", "id": "d", "name": "Edit", "input": {"file_path": "/w/d.py"}}]),
        claude("user", [{"type": "tool_result", "tool_use_id": id, "is_error": id == "d"} for id in "abcde"]),
        claude("assistant", [{"type": "text", "text": "It passes now"}], uuid=ID),
        claude("user", [{"type": "text", "text": "Thanks, and the other one?"}]),
    ]
    (session,) = claude_code.read(lines(folder / "s.jsonl", *entries), folder)
    assert said(session) == [
        ("assistant", "I begin without being asked"),
        ("user", "Fix the test"),
        ("assistant", "It passes now"),
        ("user", "Thanks, and the other one?"),
    ]
    assert session.utterances[2].files == ["/w/a.py", "/w/b.py", "D:\\w\\e.py"], "a path of Windows is whole"
    assert session.utterances[2].id == ID.replace("-", "")
    assert session.left_out["said between tools"] == 1


def codex_message(role: str, text: str) -> dict[str, Any]:
    item = {"type": "message", "role": role, "content": [{"type": f"{'in' * (role == 'user')}put_text", "text": text}]}
    return {"timestamp": AT, "type": "response_item", "payload": item}


def test_a_subagent_of_codex_said_nothing_to_the_user(folder: Path) -> None:
    head = {"type": "session_meta", "payload": {"id": ID, "cwd": "/w", "source": {"subagent": "review"}}}
    (session,) = codex.read(lines(folder / "rollout.jsonl", head, codex_message("user", "Review all of it")), folder)
    assert said(session) == []
    assert session.left_out["turns of subagents"] == 1


@pytest.mark.parametrize(
    ("output", "files"), [("Success. Updated the following files:\nA a.py\n", ["/w/a.py"]), ("error: no", [])]
)
def test_a_patch_of_codex_names_its_files_once_it_is_applied(output: str, files: list[str], folder: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"
    call = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": patch}
    items = [call, {"type": "custom_tool_call_output", "call_id": "c", "output": output}]
    entries = [{"type": "response_item", "timestamp": AT, "payload": item} for item in items]
    head = {"type": "session_meta", "payload": {"id": ID, "cwd": "/w"}}
    path = lines(folder / "rollout.jsonl", head, codex_message("user", "Add it"), *entries)
    with path.open("a") as file:
        file.write(json.dumps(codex_message("assistant", "I did what I could")) + "\n")
    (session,) = codex.read(path, folder)
    assert session.utterances[1].files == files


def test_a_session_of_a_former_gemini_is_one_object_and_its_folder_a_digest(folder: Path) -> None:
    digest = hashlib.sha256(b"/home/me/shop").hexdigest()
    messages = [
        {"id": "1", "timestamp": AT, "type": "user", "content": "Where are the prices?"},
        {"id": "2", "timestamp": AT, "type": "info", "content": "An update is there"},
        {"id": "3", "timestamp": AT, "type": "gemini", "content": "In prices.toml.", "toolCalls": []},
    ]
    path = folder / "tmp" / digest / "chats" / "session-1.json"
    lines(path, {"sessionId": ID, "projectHash": digest, "messages": messages})
    (folder / "trustedFolders.json").write_text('{"/home/me/shop": "TRUST_FOLDER"}')
    (session,) = gemini.read(path, folder)
    assert (session.name, session.folder) == (ID, "/home/me/shop")
    assert said(session) == [("user", "Where are the prices?"), ("assistant", "In prices.toml.")]


@pytest.mark.parametrize(
    ("value", "at"),
    [(1_700_000_000, 1.7e9), (1_700_000_000_000, 1.7e9), ("2023-11-14T22:13:20Z", 1.7e9), ("soon", None), (None, None)],
)
def test_a_time_is_seconds_milliseconds_or_text(value: Any, at: float | None) -> None:
    assert parse_time(value) == at
