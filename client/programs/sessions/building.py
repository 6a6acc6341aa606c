"""What the readers share: a session as it is made of utterances, and reading files line by line.

An **utterance** is what somebody said: the person (typed, queued while the agent worked, a reply to a question, the
reason of a refusal, the argument of a command), the agent (an answer: its last words before the person or a program
speaks next; a plan that was accepted), or a program (notices, peers, output of tools …). Only words of the person and
the agent's answers and plans are kept; everything else is counted by kind.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late
from memoryd.client.programs.hooks.answering import (
    MAX_SESSION_CHARS,
    MAX_TEXT_CHARS,
    MOST_BYTES,
    MOST_FILES,
    is_path,
)
from memoryd.client.programs.sessions.compressed import unpack
from memoryd.client.programs.sessions.prompts import COMMAND, TYPED, clean_prompt
from memoryd.client.times import seconds

TOOLS, THINKING, BETWEEN = "output of tools", "thinking", "said between tools"
HOST, SUBAGENT, UNREADABLE = "commands, and what the agent's program added", "turns of subagents", "unreadable lines"
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 256 * 1024 * 1024  # of one that is read as a whole
BIG_LINE_BYTES = 1024 * 1024  # beyond it a line is judged by its ends
END_BYTES = 2048
_CLOCKS_DIFFER_S = 300.0
UNKNOWN_TIME = 0.0  # until `date` gives a better one
_LATEST = 253402300799.0  # the year 9999
_MILLISECONDS_FROM = 1e11
_UUID = compile_late(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A text that is one element, as programs put beside prompts: <environment_context>, <session_context>.
_ADDED = compile_late(r"\s*<([a-z][\w-]*)(?:\s[^>]*)?>.*</\1>\s*", re.DOTALL)
# Of a long line: plain fields at its end, and what is left of a character at a cut.
_LAST_FIELDS = compile_late(r'[}\]"],((?:"\w+":(?:"[^"\\]*"|true|false|null|-?\d[\d.]*),?)+)\}\s*\Z')
_CUT_CHARACTER = compile_late(r"\\u[0-9a-fA-F]{0,3}\Z")
_DRIVE = compile_late(r"[A-Za-z]:[\\/]")
_TEMPLATE = compile_late(r"\[\[ ## \w+ ## \]\]")

PERSON, AGENT = "person", "agent"
ANSWER, PLAN = "answer", "plan"


class Utterance(NamedTuple):
    """Who said what, when (UTC seconds) and in which folder (empty: that of the session).

    `kind` is one of those above. `files` were written by the agent's tools for this answer. `question` is what a reply
    replies to. `to_program`: the answer follows what a program said, not the person. `taken_back`: the person rewound
    the session to before it. `offset` is where its line begins in a file of lines, else its time in milliseconds.
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
        """Return the role of the turn that it becomes."""
        return "user" if self.who == PERSON else "assistant"

    @property
    def content(self) -> str:
        """Return the text as it is kept: a reply with its question, without which "Harbor" says nothing."""
        return f"{self.question}\n{self.text}" if self.question else self.text


class Session:
    """A session while it is read, and then: its utterances that are kept, and how much was left out, by reason.

    `automated` says by what it is seen that a program ran the session, empty where a person did. `unknown` counts the
    kinds of entries that the reader does not know; `version` is that of the host which wrote the last entry.
    `forked_from` names the session whose beginning this one repeats; `began` is when the file says that it began.
    `worktrees` are those that the host made for it, each with the folder that it left for it.

    The reader sets `offset` to where each line begins, or to the time of each message in milliseconds. `settled` is
    where to read on the next time: nothing before it changes any more what was said there. `is_torn` says that what was
    read since goes on from an entry before it, so only reading the whole file shows what was taken back. `goes_on_from`
    are other files of the same session, of which this one may take something back. `there` are the ids of all that a
    host has of a session which it deletes from when the person takes something back; None: it does not.
    """

    def __init__(self, agent: str, name: str, folder: str = "") -> None:
        self.agent, self.folder = agent, folder
        self.name = name[:MAX_SESSION_CHARS]
        self.automated = self.version = self.forked_from = ""
        self.offset = self.settled = 0
        self.is_torn = False
        self.began: float | None = None
        self.worktrees: dict[str, str] = {}
        self.goes_on_from: list[str] = []
        self.there: set[str] | None = None
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
        said = clean_prompt(_clean(text))
        if not said:
            self.command(HOST)
            return
        self.says(kind, said, at, key, folder, question)

    def says(self, kind: str, text: str, at: float | None, key: str, folder: str = "", question: str = "") -> Utterance:
        """Take in what the person said, as the reader judged it: nothing more is taken out of it."""
        self._open()
        said = self._make(PERSON, kind, _clean(text), at, key, folder)._replace(question=_clean(question))
        self.utterances.append(said)
        return said

    @property
    def is_answered(self) -> bool:
        """Return whether the agent has said something to what was said last."""
        return self._answer is not None

    def command(self, reason: str = COMMAND) -> None:
        """Count what the person had the host do without words for the agent, which may answer it."""
        self._open()
        self.left_out[reason] += 1

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
        self._open()
        self.utterances.append(self._make(AGENT, PLAN, _clean(text), at, key, folder))

    def program_says(self, reason: str = HOST) -> None:
        """Count what a program said to the agent, which ends the agent's answer to what was said before."""
        self._open()
        self._to_program = True
        self.left_out[reason] += 1

    def _open(self) -> None:
        """End the answer to what was said before: somebody speaks to the agent."""
        self.close()
        self._to_program = False
        self.settled = self.offset

    def write(self, path: Any, folder: str = "") -> None:
        """Note a file that a tool of the agent wrote."""
        if isinstance(path, str) and path:
            if not _DRIVE.match(path):  # else a whole path of Windows
                path = os.path.normpath(os.path.join(folder or self.folder, path))
            if is_path(path) and path not in self._files:
                self._files.append(path)

    @property
    def answer(self) -> str:
        """Return what the agent said last to what was said last."""
        return self._answer.text if self._answer else ""

    def drop_interim(self) -> None:
        """Count what the agent said last as said between tools: it goes on working when the person speaks."""
        self.drop_answer(BETWEEN)

    def drop_answer(self, reason: str) -> None:
        """Count what the agent said last as something that is not kept."""
        if self._answer:
            self.left_out[reason] += 1
            self._answer = None

    def close(self) -> None:
        """End what was answered to what was said last."""
        if self._answer:
            files = _limit_files(self._files)
            self.utterances.append(self._answer._replace(files=files, to_program=self._to_program))
            self._answer, self._files = None, []

    def note_automated(self, doubt: str = "") -> None:
        """Note that a program ran the session: it has one prompt, which a program's template made, or there is a doubt.

        One sign alone says nothing: people have sessions with one prompt, and sessions through other programs.
        """
        prompts = [said for said in self.utterances if said.who == PERSON]
        if len(prompts) == 1 and not self.automated:
            self.automated = doubt or ("a prompt of a program" if _is_template(prompts[0].text) else "")

    def date(self, began: float | None, now: float) -> None:
        """Give utterances without a time, or with one in the future, that of a neighbour, else when the file began."""
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


def _is_template(prompt: str) -> bool:
    """Return whether a program's template made a prompt: it begins with a field as the adapters of DSPy write them.

    See ChatAdapter on https://dspy.ai; evaluation harnesses have taken the form over.
    """
    return bool(_TEMPLATE.match(prompt))


def _limit_files(files: list[str]) -> list[str]:
    found, size = [], 0
    for path in files[:MOST_FILES]:
        size += len(path.encode(errors="replace"))
        if size <= MOST_BYTES:
            found.append(path)
    return found


def make_id(agent: str, session: str, key: str) -> str:
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
    for _, entry in read_lines(path, left_out):
        yield entry


def read_lines(path: Path, left_out: Counter[str], start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file of lines from an offset on, each with the offset of its line.

    What is none, or is cut off, is counted. Of a line of more than 1 MB only both ends are decoded, and no more of it
    is held: see `read_ends`.
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
    """Return a JSON object, also of a text with bytes that are no UTF-8 or with halves of characters, as cut ones have.

    Raise ValueError or RecursionError for anything else.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = json.loads(text.decode(errors="replace"))
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise OSError for anything else, such as a FIFO, without waiting for it."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    file = os.fdopen(number, "rb")
    return unpack(file) if path.suffix == ".zst" else file


def read_ends(head: bytes, tail: bytes) -> dict[str, Any]:
    """Return what both ends of a long JSON object say: the beginning as far as it goes, plain fields at the end.

    A text that goes on beyond the beginning is cut; what stands in the middle is not there.
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
    """Yield a beginning of a JSON object made whole: as it is, else without what stands after its last commas."""
    closing: list[str] = []
    commas: list[tuple[int, str]] = []  # where a value ended, and what closes the rest there
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
    """Return the JSON object that a file is, empty and counted where it is none."""
    try:
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size <= MAX_FILE_BYTES:
                return decode_object(file.read())
    except (ValueError, RecursionError):
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
