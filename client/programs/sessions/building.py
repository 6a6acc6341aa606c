"""What the readers share: a session as it is made of utterances, and reading files line by line.

An **utterance** is what somebody said: the person (typed, queued while the agent worked, a reply to a question, the
reason of a refusal, the argument of a command), the agent (an answer: its last words before the person or a program
speaks next; a plan that was accepted), or a program (notices, peers, output of tools …). Only words of the person and
the agent's answers and plans are kept; everything else is counted by kind.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late
from memoryd.client.programs.hooks.answering import (
    MAX_SESSION_CHARS,
    MAX_TEXT_CHARS,
    MOST_BYTES,
    MOST_FILES,
    clean_prompt,
    is_path,
)
from memoryd.client.times import seconds

TOOLS, THINKING, BETWEEN = "output of tools", "thinking", "said between tools"
HOST, SUBAGENT, UNREADABLE = "commands, and what the agent's program added", "turns of subagents", "unreadable lines"
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 256 * 1024 * 1024  # of one that is read as a whole
_LATEST = 253402300799.0  # the year 9999
_MILLISECONDS_FROM = 1e11
_UUID = compile_late(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A text that is one element, as programs put beside prompts: <environment_context>, <session_context>.
_ADDED = compile_late(r"\s*<([a-z][\w-]*)(?:\s[^>]*)?>.*</\1>\s*", re.DOTALL)


PERSON, AGENT = "person", "agent"
TYPED, QUEUED, REPLY, REASON, ARGUMENT = "typed", "queued", "reply", "reason", "argument"
ANSWER, PLAN = "answer", "plan"


class Utterance(NamedTuple):
    """Who said what, when (UTC seconds) and in which folder (empty: that of the session).

    `kind` is one of those above. `files` were written by the agent's tools for this answer. `question` is what a reply
    replies to. `to_program`: the answer follows what a program said, not the person. `taken_back`: the person rewound
    the session to before it.
    """

    id: str
    who: str
    kind: str
    text: str
    at: float
    folder: str
    files: list[str]
    question: str = ""
    to_program: bool = False
    taken_back: bool = False

    @property
    def role(self) -> str:
        """Return the role of the turn that it becomes."""
        return "user" if self.who == PERSON else "assistant"


class Session:
    """A session while it is read, and then: its utterances that are kept, and how much was left out, by reason.

    `automated` says by what it is seen that a program ran the session, empty where a person did. `unknown` counts the
    kinds of entries that the reader does not know; `version` is that of the host which wrote the last entry.
    """

    def __init__(self, agent: str, name: str, folder: str = "") -> None:
        self.agent, self.folder = agent, folder
        self.name = name[:MAX_SESSION_CHARS]
        self.automated = self.version = ""
        self.utterances: list[Utterance] = []
        self.left_out: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self._answer: Utterance | None = None
        self._files: list[str] = []
        self._to_program = False

    def person(
        self, text: str, at: float | None, key: str, folder: str = "", kind: str = TYPED, question: str = ""
    ) -> None:
        """Take in what the person said; `key` is what the host calls it."""
        if _ADDED.fullmatch(text):
            self.left_out[HOST] += 1
            return
        self.close()
        said = clean_prompt(_clean(text))
        if not said:  # a command, which may be answered too
            self.left_out[HOST] += 1
            return
        self._to_program = False
        self.utterances.append(self._make(PERSON, kind, said, at, key, folder)._replace(question=question))

    def agent_says(self, text: str, at: float | None, key: str, folder: str = "") -> None:
        """Take in what the agent said; only the last of it before the person or a program speaks is an answer."""
        text = _clean(text)
        if not text.strip():
            return
        if self._answer:
            self.left_out[BETWEEN] += 1
        self._answer = self._make(AGENT, ANSWER, text, at, key, folder)

    def agent_plans(self, text: str, at: float | None, key: str, folder: str = "") -> None:
        """Take in a plan of the agent that the person accepted."""
        self.utterances.append(self._make(AGENT, PLAN, _clean(text), at, key, folder))

    def program_says(self, reason: str = HOST) -> None:
        """Count what a program said to the agent, which ends the agent's answer to what was said before."""
        self.close()
        self._to_program = True
        self.left_out[reason] += 1

    def write(self, path: Any, folder: str = "") -> None:
        """Note a file that a tool of the agent wrote."""
        if isinstance(path, str) and path:
            path = os.path.normpath(os.path.join(folder or self.folder, path))
            if is_path(path) and path not in self._files:
                self._files.append(path)

    def close(self) -> None:
        """End what was answered to what was said last."""
        if self._answer:
            files = _limit_files(self._files)
            self.utterances.append(self._answer._replace(files=files, to_program=self._to_program))
            self._answer, self._files = None, []

    def _make(self, who: str, kind: str, text: str, at: float | None, key: str, folder: str) -> Utterance:
        before = self._answer or (self.utterances[-1] if self.utterances else None)
        known = at if at is not None else before.at if before else 0.0
        id = _make_id(self.agent, self.name, key)
        return Utterance(id, who, kind, text[:MAX_TEXT_CHARS], known, folder or self.folder, [])


def _limit_files(files: list[str]) -> list[str]:
    found, size = [], 0
    for path in files[:MOST_FILES]:
        size += len(path.encode(errors="replace"))
        if size <= MOST_BYTES:
            found.append(path)
    return found


def _make_id(agent: str, session: str, key: str) -> str:
    """Return the id of a turn: what its program calls it where that is an UUID, as hooks do, else one made of it."""
    if _UUID.fullmatch(key):
        return key.replace("-", "")
    return hashlib.sha256(f"backfill\0{agent}\0{session}\0{key}".encode(errors="replace")).hexdigest()[:32]


def _clean(text: str) -> str:
    """Return a text without NUL bytes and halves of characters, which no memory has."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Reading -------------------------------------------------------------------------------------------------------------


def read_objects(path: Path, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file of lines; what is none, or is cut off, is counted."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            if line.strip():
                try:
                    yield msgspec.json.decode(line, type=dict[str, Any])
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    left_out[UNREADABLE] += 1


def read_object(path: Path, left_out: Counter[str]) -> dict[str, Any]:
    """Return the JSON object that a file is, empty and counted where it is none."""
    try:
        if path.stat().st_size <= MAX_FILE_BYTES:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    left_out[UNREADABLE] += 1
    return {}


def get_object(value: Any, name: str) -> dict[str, Any]:
    """Return a field that holds an object, empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def get_text(value: Any, name: str) -> str:
    """Return a field that holds text, empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def list_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a field that holds a list."""
    found = value.get(name) if isinstance(value, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def parse_time(value: Any) -> float | None:
    """Return UTC seconds for a time in seconds, milliseconds or as text, None for what is none."""
    try:
        number = float(value) if isinstance(value, int | float) else seconds(value) if isinstance(value, str) else -1.0
    except (Invalid, ValueError, OverflowError):
        return None
    number = number / 1000 if number > _MILLISECONDS_FROM else number
    return number if 0.0 < number <= _LATEST else None
