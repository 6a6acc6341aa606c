"""Gemini CLI: `tmp/*/chats/session-*`, JSON lines since 2026, before that one JSON object with a list of messages.

A line with the id of an earlier one replaces it, for example when a tool has finished. `$set` repeats the whole list
when a session is resumed, with other times and with thoughts in the text, so the first text and time of each message
are used. `$rewindTo` retracts a message and all later ones (`packages/core/src/services/chatRecordingService.ts`).

The model's history differs from the conversation: a compression replaces messages by a summary, and after a cancelled
request the rest is recorded again, all at one time and with new ids. Therefore messages that are recorded again are
ignored; so are messages that only `$set` has, once other messages were recorded one by one.

The model's prompt is `content`; if the user typed something else, that is `displayContent`. Prompts of the program
itself ("Please continue.", the reason of a hook) repeat the `displayContent` of the prompt before them
(`packages/core/src/core/client.ts`, `sendMessageStream`).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

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
    read_header_and_lines,
    read_object,
)
from memoryd.client.programs.sessions.gemini_prompts import judge
from memoryd.client.programs.sessions.prompts import (
    FEEDBACK,
    NOTICE,
    QUEUED,
    REASON,
    REPLY,
    SYNTHETIC,
)

_WRITES = ("write_file", "replace", "edit")
_MAX_FOLDER_BYTES = 4096
_AT_ONCE_S = 0.02
_FEEDBACK = compile_late(r"Plan rejected\. User feedback: (.*?)(?:\n\nThe plan is stored at:|\Z)", re.DOTALL)
_TYPES = frozenset("info error warning".split())


def read(path: Path, home: Path, start: int = 0) -> Iterator[Session]:
    """Yield the one session of a file from an offset on; nothing if a file of JSON lines continues the session."""
    if path.suffix == ".json" and path.with_suffix(".jsonl").exists():  # copied there when it was resumed
        return
    session = Session("gemini", path.stem)
    chat = _Chat(session, start > 0)
    if path.suffix == ".json":
        chat.take(read_object(path, session.left_out))
    else:
        for chat.offset, line in read_header_and_lines(path, session.left_out, start):
            chat.take(line)
    session.name = get_text(chat.head, "sessionId") or session.name
    session.began = parse_time(chat.head.get("startTime"))
    session.folder = _find_folder(path.parent.parent, get_text(chat.head, "projectHash"), home)
    if chat.head.get("kind") == "subagent":
        session.left_out[SUBAGENT] += len(chat.messages)
    else:
        chat.say_all()
    session.close()
    session.note_automated()
    yield session


class _Chat:
    """State while a chat is read: its messages by id, the offset of each, and those that were retracted."""

    def __init__(self, session: Session, is_part: bool) -> None:
        self.session, self.is_part = session, is_part
        self.offset = 0
        self.offsets: dict[str, int] = {}
        self.head: dict[str, Any] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.taken_back: set[str] = set()
        self.copies: set[str] = set()
        self.is_begun = is_part  # whether messages were recorded one by one
        self.shown = self.sent = ""  # the last prompt: as typed, and as sent to the model

    def take(self, line: dict[str, Any]) -> None:
        """Process a line."""
        if rewound := get_text(line, "$rewindTo"):
            self._rewind(rewound)
        elif "$set" in line:
            self.head |= {name: held for name, held in get_object(line, "$set").items() if name != "messages"}
            self._replace(list_objects(line["$set"], "messages"))
        elif "sessionId" in line:
            self.head = {**self.head, **line}
            self._merge(list_objects(line, "messages"))
        elif "id" in line:
            self.is_begun |= line.get("type") in ("user", "gemini")
            self._merge([line])
        elif line:
            self.session.unknown[f"lines with {next(iter(line))[:40]}"] += 1

    def _replace(self, listed: list[dict[str, Any]]) -> None:
        """Process a repeated list; if messages were recorded one by one, it adds none."""
        self.session.is_torn |= self.is_part and bool(listed)  # finding copies needs the whole file
        if self.is_begun:
            coming = [message for message in listed if get_text(message, "id") in {*self.messages, *self.copies}]
            self.session.left_out[SYNTHETIC] += len(listed) - len(coming)
            listed = coming
            self._find_copies([id for message in listed if (id := get_text(message, "id")) in self.messages])
        self._merge(message for message in listed if get_text(message, "id") not in self.copies)

    def _find_copies(self, listed: list[str]) -> None:
        """Drop messages that were recorded at the same time and repeat the text of a message outside of the list."""
        times = [parse_time(self.messages[id].get("timestamp")) or 0.0 for id in listed]
        earlier = [message for id, message in self.messages.items() if id not in listed]
        for number, id in enumerate(listed):
            near = times[max(0, number - 1) : number] + times[number + 1 : number + 2]
            if any(abs(times[number] - at) < _AT_ONCE_S for at in near):
                message = self.messages[id]
                same = next((at for at, former in enumerate(earlier) if _is_same(message, former)), None)
                if same is not None:
                    self.copies.add(id)
                    del earlier[: same + 1]
        for id in self.copies.intersection(listed):
            del self.messages[id]

    def _merge(self, coming: Iterable[dict[str, Any]]) -> None:
        for message in coming:
            id = get_text(message, "id") or f"{len(self.messages)}"
            former = self.messages.get(id, {})
            names = ("content", "displayContent", "timestamp", "toolCalls")
            kept = {name: former[name] for name in names if former.get(name)}
            calls = message.get("toolCalls")
            self.messages[id] = {**message, **kept, **({"toolCalls": calls} if calls else {})}
            self.offsets.setdefault(id, self.offset)
            self.taken_back.discard(id)

    def _rewind(self, id: str) -> None:
        """Retract a message and all later ones; all messages if its id is unknown."""
        ids = list(self.messages)
        self.session.is_torn |= self.is_part and id not in self.messages
        self.taken_back.update(ids[ids.index(id) if id in self.messages else 0 :])

    def say_all(self) -> None:
        """Convert the messages to utterances; retracted messages do not end the agent's answer."""
        session, back = self.session, [id for id in self.messages if id in self.taken_back]
        for id, message in self.messages.items():
            if id not in self.taken_back:
                session.offset = self.offsets[id]
                self._read_message(message)
        session.close()
        kept, settled = len(session.utterances), session.settled
        self.shown = self.sent = ""
        for id in back:
            session.offset = self.offsets[id]
            self._read_message(self.messages[id])
        session.close()
        session.settled = settled
        session.utterances[kept:] = [said._replace(taken_back=True) for said in session.utterances[kept:]]

    def _read_message(self, message: dict[str, Any]) -> None:
        session, kind = self.session, message.get("type")
        at, key = parse_time(message.get("timestamp")), get_text(message, "id")
        if any("functionResponse" in part for part in list_objects(message, "content")):
            session.left_out[TOOLS] += 1
            if (judged := judge(_join(message, "content"))).kind == QUEUED:  # text that was typed while the tool ran
                session.drop_interim()
                session.says(QUEUED, judged.text, at, key)
        elif kind == "user":
            self._read_prompt(message, at, key)
        elif kind == "gemini":
            session.left_out[THINKING] += len(list_objects(message, "thoughts"))
            calls = list_objects(message, "toolCalls")
            session.agent_says(_join(message, "content"), at, key)
            for call in calls:
                self._read_call(call, at, key)
        elif kind in _TYPES:
            session.left_out[NOTICE] += 1
        else:
            session.unknown[f"messages of type {str(kind)[:40]}"] += 1

    def _read_prompt(self, message: dict[str, Any], at: float | None, key: str) -> None:
        sent, shown = _join(message, "content"), _join(message, "displayContent")
        if shown and shown == self.shown and sent != self.sent and not sent.startswith(shown):
            settled = self.session.settled
            self.session.program_says(FEEDBACK if sent != "Please continue." else SYNTHETIC)
            self.session.settled = settled  # the next reading needs the prompt before to recognise this one
            return
        self.shown, self.sent = shown or sent, sent
        self.session.prompt(judge(shown or sent), at, key)

    def _read_call(self, call: dict[str, Any], at: float | None, key: str) -> None:
        session, name, is_done = self.session, call.get("name"), call.get("status") in (None, "success")
        given, at = get_object(call, "args"), parse_time(call.get("timestamp")) or at
        key = f"{key}\0{get_text(call, 'id')}"
        if name in _WRITES and is_done:
            session.write(given.get("file_path"))
        elif name == "ask_user" and is_done:
            answers = _find_answers(call)
            asked = [
                (get_text(question, "question"), reply)
                for number, question in enumerate(list_objects(given, "questions"))
                if (reply := get_text(answers, f"{number}").strip())
            ]
            if asked:
                questions, replies = zip(*asked, strict=True)
                session.drop_interim()
                session.says(REPLY, "\n".join(replies), at, key, question="\n".join(questions))
        elif name == "exit_plan_mode" and (found := _FEEDBACK.match(_find_output(call))):
            session.drop_interim()
            session.says(REASON, found[1].strip(), at, key)


def _join(message: dict[str, Any], name: str) -> str:
    """Return the text of a field, which is a text or a list of texts and of objects with text, without thoughts."""
    held = message.get(name)
    if isinstance(held, str):
        return held
    parts = held if isinstance(held, list) else [held]
    said = (part for part in parts if not (isinstance(part, dict) and part.get("thought")))
    texts = (part if isinstance(part, str) else get_text(part, "text") for part in said)
    return "\n".join(filter(None, texts))


def _is_same(message: dict[str, Any], former: dict[str, Any]) -> bool:
    return message.get("type") == former.get("type") and _join(message, "content") == _join(former, "content")


def _find_output(call: dict[str, Any]) -> str:
    """Return the result of a tool as text."""
    outputs = (
        get_text(get_object(get_object(part, "functionResponse"), "response"), "output")
        for part in list_objects(call, "result")
    )
    return next(filter(None, outputs), "")


def _find_answers(call: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to the questions of `ask_user`, by number."""
    with suppress(msgspec.MsgspecError, RecursionError):
        return get_object(msgspec.json.decode(_find_output(call)), "answers")
    return {}


def _find_folder(project: Path, digest: str, home: Path) -> str:
    """Return the folder of a session, which a file next to it names; else the known folder with this SHA-256."""
    with suppress(OSError, UnicodeDecodeError), (project / ".project_root").open(encoding="utf-8") as file:
        return file.read(_MAX_FOLDER_BYTES).strip()
    for file_name in ("projects.json", "trustedFolders.json"):
        with suppress(OSError):
            known = read_object(home / file_name, Session("gemini", "").left_out)
            for folder in {**known, **get_object(known, "projects")}:
                if hashlib.sha256(folder.encode(errors="replace")).hexdigest() == digest:
                    return folder
    return ""
