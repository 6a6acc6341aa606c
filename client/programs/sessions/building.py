"""Shared code of the readers: building a session from utterances, and reading files line by line.

An **utterance** is a message of the person (typed, queued while the agent worked, a reply to a question, the reason for
a refusal, the argument of a command), of the agent (an answer: its last message before the person or a program speaks
next; an accepted plan), or of a program (notices, peers, output of tools …). Only the person's messages and the agent's
answers and plans are kept; all others are counted by kind.
"""

import errno
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.client.programs.hooks.answering import (
    MAX_SESSION_CHARS,
    MAX_TEXT_CHARS,
    MOST_BYTES,
    MOST_FILES,
    is_path,
)
from memoryd.client.programs.sessions.compressed import unpack
from memoryd.client.programs.sessions.prompts import COMMAND, Judged
from memoryd.client.times import parse_seconds

TOOLS, THINKING, BETWEEN = "output of tools", "thinking", "said between tools"
HOST, SUBAGENT, UNREADABLE = "commands, and what the agent's program added", "turns of subagents", "unreadable lines"
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 256 * 1024 * 1024  # the largest file that is read as a whole
BIG_LINE_BYTES = 1024 * 1024  # if a line is longer, only its two ends are read
END_BYTES = 2048
_CLOCKS_DIFFER_S = 300.0
UNKNOWN_TIME = 0.0  # replaced by `date`
_UUID = compile_late(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# For the two ends of a long line: the scalar fields at its end, and an incomplete escape where its beginning was cut.
_LAST_FIELDS = compile_late(r'[}\]"],((?:"\w+":(?:"[^"\\]*"|true|false|null|-?\d[\d.]*),?)+)\}\s*\Z')
_CUT_CHARACTER = compile_late(r"\\u[0-9a-fA-F]{0,3}\Z")
_DRIVE = compile_late(r"[A-Za-z]:[\\/]")
_TEMPLATE = compile_late(r"\[\[ ## \w+ ## \]\]")

PERSON, AGENT = "person", "agent"
ANSWER, PLAN = "answer", "plan"


class Utterance(NamedTuple):
    """A message with its speaker, time (UTC seconds) and folder (empty: that of the session).

    `kind` is one of the constants above. `files` were written by the agent's tools before this answer. `question` is
    the question that a reply answers. `to_program`: the agent answers a program, not the person. `taken_back`: the
    person rewound the session to a point before this message. `offset` is where the message's line begins in the file,
    or the message's time in milliseconds.
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
    offset: int = 0

    @property
    def role(self) -> str:
        """Return the role of its turn."""
        return "user" if self.who == PERSON else "assistant"

    @property
    def content(self) -> str:
        """Return the text of its turn: a reply includes its question, without which "Harbor" means nothing."""
        return f"{self.question}\n{self.text}" if self.question else self.text


class Session:
    """A session, built while it is read: the utterances that are kept, and counts of the others by reason.

    `automated` is the evidence that a program ran the session, empty if a person did. `unknown` counts unknown kinds of
    entries; `version` is that of the host that wrote the last entry. `forked_from` is the session whose beginning this
    one repeats. `began` is when the session started, according to the file. `worktrees` maps each worktree that the
    host created for the session to the folder in which the session was before.

    The reader sets `offset` to the beginning of each line, or to the time of each message in milliseconds. `settled` is
    where the next reading starts: later entries cannot affect anything before it. `is_torn`: an entry continues from
    one before the start of this reading, so the whole file must be read to find what was retracted. `continues` are
    other files of the session, whose entries this one may retract. `there` has the ids of all entries if the host
    deletes retracted entries; it is None for other hosts.
    """

    def __init__(self, agent: str, name: str, folder: str = "") -> None:
        self.agent, self.folder = agent, folder
        self.name = name[:MAX_SESSION_CHARS]
        self.automated = self.version = self.forked_from = ""
        self.offset = self.settled = 0
        self.is_torn = False
        self.began: float | None = None
        self.worktrees: dict[str, str] = {}
        self.continues: list[str] = []
        self.there: set[str] | None = None
        self.utterances: list[Utterance] = []
        self.left_out: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self._answer: Utterance | None = None
        self._files: list[str] = []
        self._to_program = False

    def says(self, kind: str, text: str, at: float | None, key: str, folder: str = "", question: str = "") -> Utterance:
        """Add a message of the person; `key` is the host's id."""
        self._open()
        said = self._make(PERSON, kind, _clean(text), at, key, folder)._replace(question=_clean(question))
        self.utterances.append(said)
        return said

    def prompt(self, judged: Judged, at: float | None, key: str) -> None:
        """Add the person's words in a prompt, or count it if it has none."""
        if judged.is_person:
            self.says(judged.kind, judged.text, at, key)
        elif judged.kind == COMMAND:
            self.command()
        else:
            self.program_says(judged.kind)

    @property
    def is_answered(self) -> bool:
        """Return whether the agent has replied to the last message."""
        return self._answer is not None

    def command(self, reason: str = COMMAND) -> None:
        """Count a command of the person to the host, which the agent may answer."""
        self._open()
        self.left_out[reason] += 1

    def agent_says(self, text: str, at: float | None, key: str, folder: str = "") -> None:
        """Set the agent's pending answer, which replaces any earlier one since the person or a program last spoke."""
        text = _clean(text)
        if not text.strip():
            return
        if self._answer:
            self.left_out[BETWEEN] += 1
        self._answer = self._make(AGENT, ANSWER, text, at, key, folder)

    def agent_plans(self, text: str, at: float | None, key: str, folder: str = "") -> None:
        """Add a plan of the agent that the person accepted."""
        self._open()
        self.utterances.append(self._make(AGENT, PLAN, _clean(text), at, key, folder))

    def program_says(self, reason: str) -> None:
        """Count a message of a program to the agent, which ends the agent's pending answer."""
        self._open()
        self._to_program = True
        self.left_out[reason] += 1

    def _open(self) -> None:
        """Add the pending answer, since a new message to the agent begins."""
        self.close()
        self._to_program = False
        self.settled = self.offset

    def write(self, path: Any, folder: str = "") -> None:
        """Add a file that a tool of the agent wrote."""
        if isinstance(path, str) and path:
            if not _DRIVE.match(path):  # an absolute path of Windows is kept as it is
                path = os.path.normpath(os.path.join(folder or self.folder, path))
            if is_path(path) and path not in self._files:
                self._files.append(path)

    @property
    def answer(self) -> str:
        """Return the text of the pending answer."""
        return self._answer.text if self._answer else ""

    def drop_interim(self) -> None:
        """Count the pending answer as said between tools: the agent continues to work when the person speaks."""
        self.drop_answer(BETWEEN)

    def drop_answer(self, reason: str) -> None:
        """Count the pending answer under a reason instead of keeping it."""
        if self._answer:
            self.left_out[reason] += 1
            self._answer = None

    def close(self) -> None:
        """Add the pending answer, if there is one."""
        if self._answer:
            files = _limit_files(self._files)
            self.utterances.append(self._answer._replace(files=files, to_program=self._to_program))
            self._answer, self._files = None, []

    def note_automated(self, doubt: str = "") -> None:
        """Mark the session as automated if it has one prompt and a second sign: `doubt`, or a prompt from a template.

        One sign is not enough: people have sessions with one prompt, and sessions through other programs.
        """
        prompts = [said for said in self.utterances if said.who == PERSON]
        if len(prompts) == 1 and not self.automated:
            # DSPy's adapters and harnesses for evaluation begin prompts with a field (ChatAdapter on https://dspy.ai)
            self.automated = doubt or ("a prompt of a program" if _TEMPLATE.match(prompts[0].text) else "")

    def date(self, began: float | None, now: float) -> None:
        """Replace a missing or future time by that of the preceding utterance, at first by the start of the session."""
        times = [said.at if UNKNOWN_TIME < said.at <= now + _CLOCKS_DIFFER_S else None for said in self.utterances]
        if late := sum(said.at > now + _CLOCKS_DIFFER_S for said in self.utterances):
            self.unknown["times in the future"] += late
        known = next((at for at in times if at is not None), min(began or now, now))
        for number, at in enumerate(times):
            known = at if at is not None else known
            self.utterances[number] = self.utterances[number]._replace(at=known)

    def _make(self, who: str, kind: str, text: str, at: float | None, key: str, folder: str) -> Utterance:
        before = self._answer or (self.utterances[-1] if self.utterances else None)
        known = at if at is not None else before.at if before else UNKNOWN_TIME
        id = make_id(self.agent, self.name, key)
        return Utterance(id, who, kind, text[:MAX_TEXT_CHARS], known, folder or self.folder, [], offset=self.offset)


def _limit_files(files: list[str]) -> list[str]:
    found, size = [], 0
    for path in files[:MOST_FILES]:
        size += len(path.encode(errors="replace"))
        if size <= MOST_BYTES:
            found.append(path)
    return found


def make_id(agent: str, session: str, key: str) -> str:
    """Return the id of a turn: the host's id if it is a UUID, as in hooks, else a hash of it."""
    if _UUID.fullmatch(key):
        return key.replace("-", "")
    return hashlib.sha256(f"backfill\0{agent}\0{session}\0{key}".encode(errors="replace")).hexdigest()[:32]


def _clean(text: str) -> str:
    """Return a text without NUL bytes and lone surrogates, which memories cannot contain."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Reading -------------------------------------------------------------------------------------------------------------


def read_header_and_lines(path: Path, left_out: Counter[str], start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the first line of a file, which describes the session, then the lines from an offset on."""
    if start:
        yield from islice(read_lines(path, left_out), 1)
    yield from read_lines(path, left_out, start)


def read_lines(path: Path, left_out: Counter[str], start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (offset of the line, JSON object) for each line of a file from an offset on; count invalid lines.

    If a line has more than 1 MB, only its two ends are read and decoded (`read_ends`).
    """
    with open_file(path) as file:
        if start:
            file.seek(start)
        while line := file.readline(BIG_LINE_BYTES):
            offset = start
            start += len(line)
            if not line.endswith(b"\n") and len(line) == BIG_LINE_BYTES:
                head, tail = line[:END_BYTES], b""
                while not line.endswith(b"\n") and (line := file.readline(BIG_LINE_BYTES)):
                    start += len(line)
                    tail = (tail + line)[-END_BYTES:]
                yield offset, read_ends(head, tail)
            elif line.strip():
                try:
                    yield offset, decode_object(line)
                except (ValueError, RecursionError):
                    left_out[UNREADABLE] += 1


def decode_object(text: bytes) -> dict[str, Any]:
    """Decode a JSON object, tolerating invalid UTF-8 and lone surrogates, which cut texts contain.

    Raise ValueError or RecursionError if it is not a JSON object.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = json.loads(text.decode(errors="replace"))
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise OSError for anything else, such as a FIFO, without blocking."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    file = os.fdopen(number, "rb")
    return unpack(file) if path.suffix == ".zst" else file


def read_ends(head: bytes, tail: bytes) -> dict[str, Any]:
    """Decode both ends of a long JSON object: its beginning, and the scalar fields at its end.

    A text that extends beyond the beginning is cut; fields in the middle are missing.
    """
    text = head.decode(errors="ignore")
    found: dict[str, Any] = {}
    for cut in _list_cuts(text):
        with suppress(msgspec.MsgspecError, RecursionError):
            found = msgspec.json.decode(cut, type=dict[str, Any])
            break
    if fields := _LAST_FIELDS.search(tail.decode(errors="ignore")):
        with suppress(msgspec.MsgspecError):
            found |= msgspec.json.decode("{" + fields[1] + "}", type=dict[str, Any])
    return found


def _list_cuts(text: str) -> Iterator[str]:
    """Yield possible completions of a cut JSON object: of all its text, then up to each of the last commas."""
    closing: list[str] = []
    commas: list[tuple[int, str]] = []  # the end of a value, and the brackets to close there
    in_text = escaped = False
    for at, character in enumerate(text):
        if in_text:
            in_text = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_text = True
        elif character in "{[":
            closing.append("}" if character == "{" else "]")
        elif character in "}]" and closing:
            closing.pop()
        elif character == ",":
            commas.append((at, "".join(reversed(closing))))
    rest = "".join(reversed(closing))
    if in_text:
        whole = text[:-1] if escaped else _CUT_CHARACTER.sub("", text)
        yield whole + '"' + rest
    yield text + rest
    for at, rest in reversed(commas[-4:]):
        yield text[:at] + rest


def read_object(path: Path, left_out: Counter[str]) -> dict[str, Any]:
    """Return the JSON object in a file; if the file has none, count it as unreadable and return an empty object."""
    try:
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size <= MAX_FILE_BYTES:
                return decode_object(file.read())
    except (ValueError, RecursionError):
        pass
    left_out[UNREADABLE] += 1
    return {}


def get_object(value: Any, name: str) -> dict[str, Any]:
    """Return an object field, empty if missing."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def get_text(value: Any, name: str) -> str:
    """Return a text field, empty if missing."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def list_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list field."""
    found = value.get(name) if isinstance(value, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def parse_time(value: Any) -> float | None:
    """Convert a time in seconds, milliseconds or text to UTC seconds; return None if it is not a time."""
    return parse_seconds(value) or None
