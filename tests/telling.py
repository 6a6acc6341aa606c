"""Hosts as the daemon meets them: a session with its file, and the events that tell of it."""

import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

from memoryd.client.protocol import NewTurn
from memoryd.client.protocol.backfill import Listen
from memoryd.client.times import iso
from memoryd.daemon.backfill.listening import ReadQueue
from memoryd.daemon.core.core import Core
from waiting import wait_until
from workbench import ask

SESSION = "0f0e8a52-6a52-4d2c-9a53-5d1f3f1b7a01"


class Told:
    """A session of Claude Code: its file, and the events that the host sends."""

    agent, place = "claude-code", "projects/-code-api/{}.jsonl"

    def __init__(self, core: Core, home: Path, session: str = SESSION) -> None:
        self.core, self.session, self.home = core, session, home
        self.path = home / self.place.format(session)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.folder = home / "code"
        self.folder.mkdir(exist_ok=True)
        self.last: str | None = None
        self.begin()

    def begin(self) -> None:
        """Write what a host writes before anybody speaks."""

    def entry(self, type: str, content: Any, **fields: Any) -> str:
        id = str(uuid.uuid4())
        value = {"parentUuid": self.last, "isSidechain": False, "type": type, "uuid": id, "cwd": str(self.folder)}
        value |= {"sessionId": self.session, "timestamp": iso(self.core.clock()), "version": "2.1.100"}
        if content is not None:
            value["message"] = {"role": type, "content": content}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**value, **fields}) + "\n")
        self.last = id
        return id

    def types(self, text: str, **fields: Any) -> str:
        return self.entry("user", text, **fields)

    def says(self, text: str) -> str:
        return self.entry("assistant", [{"type": "text", "text": text}])

    def queues(self, text: str) -> str:
        attached = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        return self.entry("attachment", None, attachment=attached)

    def notice(self) -> str:
        return self.types("<task-notification><status>completed</status></task-notification>")

    def listen(self, moment: str = "turn", role: str = "", text: str = "", **fields: Any) -> None:
        given = [NewTurn(role=role, content=text, created_at=self.core.clock())] if text else []
        size = self.path.stat().st_size if self.path.exists() else 0
        call: dict[str, Any] = {"agent": self.agent, "file": str(self.path), "session": self.session, "size": size}
        call |= {"namespace": "api", "folder": str(self.folder), "moment": moment, "turns": given, **fields}
        ask(self.core, Listen(**call))
        reading = self.core.state(ReadQueue, self.core)
        wait_until(lambda: not reading._is_running)

    def prompt(self, text: str) -> None:
        self.listen(role="user", text=text)

    def stop(self, text: str = "") -> None:
        self.listen(role="assistant" if text else "", text=text)


class _Timed(Told):
    """A host whose messages have times, none the same."""

    ms = 0

    def tick(self) -> int:
        self.ms = max(self.ms + 1, int(self.core.clock() * 1000))
        return self.ms

    def types(self, text: str, **fields: Any) -> str:
        return self.message("user", text, **fields)

    def says(self, text: str, **fields: Any) -> str:
        return self.message("assistant", text, **fields)

    def queues(self, text: str) -> str:
        return self.types(text)

    def message(self, role: str, text: str, **fields: Any) -> str:
        raise NotImplementedError


class ToldGemini(_Timed):
    """A session of Gemini CLI: lines that are added. Its answer at an event has all that was said in the turn."""

    agent, place = "gemini", "tmp/api/chats/session-{}.jsonl"

    def begin(self) -> None:
        self.add({"sessionId": self.session, "projectHash": "x", "startTime": iso(self.core.clock()), "kind": "main"})
        (self.path.parent.parent / ".project_root").write_text(str(self.folder))

    def add(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def message(self, role: str, text: str, **fields: Any) -> str:
        id = str(uuid.uuid4())
        content = [{"text": text}] if role == "user" else text
        type = "user" if role == "user" else "gemini"
        self.add({"id": id, "timestamp": iso(self.tick() / 1000), "type": type, "content": content, **fields})
        return id

    def queues(self, text: str) -> str:
        return self.types(f"User steering update:\n<user_input>\n{text}\n</user_input>\nInternal instruction: go on.")

    def asks(self, question: str, reply: str) -> None:
        asked = {"questions": [{"question": question}]}
        output = json.dumps({"answers": {"0": reply}})
        result = [{"functionResponse": {"name": "ask_user", "response": {"output": output}}}]
        call = {"id": "a1", "name": "ask_user", "args": asked, "status": "success", "result": result}
        self.says("", toolCalls=[call])

    def takes_back(self, id: str) -> None:
        self.add({"$rewindTo": id})

    def stop(self, text: str = "") -> None:
        self.listen("stop", role="assistant", text=f"Let me look at the report first\n{text}")


class ToldOpenCode(_Timed):
    """A session of OpenCode: rows of a database, beside those of other sessions."""

    agent, place = "opencode", "opencode.db"

    def begin(self) -> None:
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE IF NOT EXISTS session (id text, parent_id text, directory text, version text, revert text,"
            " permission text, time_created integer);"
            "CREATE TABLE IF NOT EXISTS message (id text, session_id text, time_created integer, data text);"
            "CREATE TABLE IF NOT EXISTS part"
            " (id text, message_id text, session_id text, time_created integer, data text)"
        )
        row = (self.session, None, str(self.folder), "1.18.33", None, None, self.tick())
        self.connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def message(self, role: str, text: str, **fields: Any) -> str:
        created = self.tick()
        id = f"msg_{created}_{self.session}"
        done = {"completed": created} if role == "assistant" else {}
        info = {"role": role, "time": {"created": created, **done}, "path": {"cwd": str(self.folder)}, **fields}
        self.connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?)", (id, self.session, created, json.dumps(info))
        )
        self.part(id, {"type": "text", "text": text})
        return id

    def part(self, message: str, held: dict[str, Any]) -> None:
        created = self.tick()
        row = (f"prt_{created}", message, self.session, created, json.dumps(held))
        self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)

    def asks(self, question: str, reply: str) -> None:
        state = {"status": "completed", "input": {"questions": [{"question": question}]}}
        state["metadata"] = {"answers": [[reply]]}
        self.part(self.says("I ask", finish="tool-calls"), {"type": "tool", "tool": "question", "state": state})

    def reverts(self, id: str | None) -> None:
        held = id and json.dumps({"messageID": id})
        self.connection.execute("UPDATE session SET revert = ? WHERE id = ?", (held, self.session))

    def takes_back(self, id: str) -> None:
        """Do what the next prompt does with what was reverted."""
        for table, name in (("part", "message_id"), ("message", "id")):
            self.connection.execute(f"DELETE FROM {table} WHERE session_id = ? AND {name} >= ?", (self.session, id))
        self.reverts(None)


class ToldCline(_Timed):
    """A session of Cline: a document that is written anew with each message."""

    agent, place = "cline", "data/sessions/{0}/{0}.messages.json"

    def begin(self) -> None:
        self.messages: list[dict[str, Any]] = []
        described = {"cwd": str(self.folder), "interactive": True}
        self.path.with_name(f"{self.session}.json").write_text(json.dumps(described))

    def message(self, role: str, text: Any, **fields: Any) -> str:
        id, given = str(uuid.uuid4()), f'<user_input mode="act">{text}</user_input>' if role == "user" else text
        self.put({"id": id, "role": role, "ts": self.tick(), "content": [{"type": "text", "text": given}], **fields})
        return id

    def put(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.path.write_text(json.dumps({"version": 1, "agent": "lead", "messages": self.messages}))

    def asks(self, question: str, reply: str) -> None:
        call = {"type": "tool_use", "id": "c1", "name": "ask_question", "input": {"question": question}}
        self.says("", content=[call])
        result = {"type": "tool_result", "tool_use_id": "c1", "content": reply}
        self.put({"id": str(uuid.uuid4()), "role": "user", "ts": self.tick(), "content": [result]})


HOSTS: dict[str, type[Told]] = {told.agent: told for told in (Told, ToldGemini, ToldOpenCode, ToldCline)}
