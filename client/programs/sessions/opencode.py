"""OpenCode: `opencode.db`, a SQLite database with sessions, messages and their parts (since 1.2; before, files).

It is read with apsw, which has a recent SQLite, read-only and in one snapshot, also while OpenCode runs. OpenCode's
source is `packages/opencode/src` of github.com/anomalyco/opencode: parts and messages are in `session/message-v2.ts`. A
fork has copies of the messages with other ids and the times of the originals (`fork` in `session/index.ts`). Reverted
messages stay until the next prompt, which deletes them; `revert` of the session has the first of them
(`session/revert.ts`). A message of the agent has a time of completion when it is complete.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.extras import advise
from memoryd.client.programs.hooks.answering import PATCHED
from memoryd.client.programs.sessions.building import (
    SUBAGENT,
    THINKING,
    TOOLS,
    UNREADABLE,
    Session,
    get_object,
    get_text,
    list_objects,
    make_id,
    parse_time,
)
from memoryd.client.programs.sessions.opencode_prompts import judge
from memoryd.client.programs.sessions.prompts import (
    COMMAND,
    COMPACTION,
    CONTEXT,
    NOTICE,
    QUEUED,
    REASON,
    REPLY,
    SYNTHETIC,
    TYPED,
)

if TYPE_CHECKING:
    import apsw

_BUSY_MS = 5000
_COLUMNS = "SELECT name FROM pragma_table_info('session') ORDER BY cid"  # newer versions have more
_SESSIONS = "SELECT * FROM session WHERE ?1 IN ('', id) ORDER BY time_created, id"
_PARTS = (
    "SELECT m.id, m.time_created, m.data, p.id, p.data FROM message m LEFT JOIN part p ON p.message_id = m.id"
    " WHERE m.session_id = ? AND m.time_created >= ? ORDER BY m.time_created, m.id, p.time_created, p.id"
)
_KEYS = (
    "SELECT id, NULL FROM message WHERE session_id = ?1 UNION ALL SELECT message_id, id FROM part WHERE session_id = ?1"
)
_WRITES = ("write", "edit")
# `CorrectedError` in `permission/index.ts`.
_REFUSED = "The user rejected permission to use this specific tool call with the following feedback: "
# Permissions that `opencode run` denies (`cli/cmd/run.ts`), as it is not interactive.
_OF_RUN = {"question", "plan_enter", "plan_exit"}
_TYPES = frozenset("file step-start step-finish snapshot patch agent retry".split())


class _Message(NamedTuple):
    """A message with its parts, each as id and content."""

    id: str
    at: float | None
    offset: int
    info: dict[str, Any]
    parts: list[tuple[str, dict[str, Any]]]


def read(path: Path, home: Path, start: int = 0, only: str = "") -> Iterator[Session]:
    """Yield the sessions of a database, or one session from a time on, with the ids of all its entries."""
    began: dict[tuple[float, str], str] = {}  # time and text of the first message -> session
    with _open(path) as connection:
        names = [str(name) for (name,) in connection.execute(_COLUMNS)]
        for row in connection.execute(_SESSIONS, (only,)).fetchall():
            described = dict(zip(names, row, strict=True))
            session = Session("opencode", str(described["id"]), str(described["directory"]))
            session.version = str(described.get("version") or "")
            session.began = parse_time(described.get("time_created"))
            rows = connection.execute(_PARTS, (described["id"], start))
            _read_session(session, described, _list_messages(session, rows))
            if only:
                keys = connection.execute(_KEYS, (only,))
                session.there = {make_id(session.agent, session.name, _name(*key)) for key in keys}
            if session.utterances:
                first = session.utterances[0]
                origin = began.setdefault((first.at, first.text), session.name)
                session.forked_from = origin if origin != session.name else ""
            yield session


@contextmanager
def _open(path: Path) -> "Iterator[apsw.Connection]":
    try:
        import apsw  # a package of the daemon
    except ImportError:
        raise Invalid(f"{path} is read by a package that is not here; {advise('daemon')}") from None
    connection: apsw.Connection | None = None
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(str(path.parent.resolve() / path.name), flags=flags)
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN")
        yield connection
    except (apsw.Error, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}.") from None
    finally:
        if connection:
            connection.close()


def _list_messages(session: Session, rows: Iterable[Any]) -> Iterator[_Message]:
    for (id, at, held), group in groupby(rows, key=lambda row: row[:3]):
        info = _decode(session, held)
        parts = [(str(row[3]), _decode(session, row[4])) for row in group if row[3] is not None]
        if info:
            said_at = parse_time(get_object(info, "time").get("created")) or parse_time(at)
            yield _Message(str(id), said_at, at if isinstance(at, int) else 0, info, parts)


def _name(message: str, part: str | None = None) -> str:
    """Return the key of a message, or of a part of it."""
    return message if part is None else f"{message}\0{part}"


def _decode(session: Session, text: Any) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, TypeError, UnicodeError):
        session.left_out[UNREADABLE] += 1
        return {}


def _read_session(session: Session, described: dict[str, Any], messages: Iterable[_Message]) -> None:
    reverted = _decode(session, described["revert"]) if described.get("revert") else {}
    back = (get_text(reverted, "messageID"), get_text(reverted, "partID"))
    if described.get("parent_id"):
        session.left_out[SUBAGENT] += sum(part.get("type") == "text" for one in messages for _, part in one.parts)
        return
    reading = _Reading(session)
    begin, unfinished = None, None
    for message in messages:
        session.offset = message.offset
        if back[0] and begin is None and (message.id > back[0] or (message.id == back[0] and not back[1])):
            session.close()
            begin = len(session.utterances)
        if message.info.get("role") == "user":
            reading.read_prompt(message)
        elif message.info.get("role") == "assistant":
            reading.read_answer(message)
            unfinished = None if get_object(message.info, "time").get("completed") else message.offset
        else:
            session.unknown[f"messages of {str(message.info.get('role'))[:40]}"] += 1
    session.close()
    if unfinished is not None:
        session.settled = min(session.settled, unfinished)
    if begin is not None:
        session.utterances[begin:] = [said._replace(taken_back=True) for said in session.utterances[begin:]]
    session.automated = _find_automated(described.get("permission"))
    session.note_automated()


class _Reading:
    """State while a session is read. `is_working`: the agent has called tools and not ended its turn."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.is_working = False
        self.worked_until = 0.0

    def read_prompt(self, message: _Message) -> None:
        """Add a prompt; OpenCode's own parts are marked `synthetic`, and parts not sent to the model `ignored`."""
        session, texts, reason = self.session, [], COMMAND
        for _, part in message.parts:
            kind, text = part.get("type"), get_text(part, "text")
            if kind == "text" and (part.get("synthetic") or part.get("ignored")):
                session.left_out[CONTEXT] += 1
                reason = NOTICE
            elif kind == "text":
                texts.append(text)
            elif kind == "compaction":
                reason = COMPACTION
            elif kind == "subtask":  # a command that a subagent answers
                session.left_out[SUBAGENT] += 1
            else:
                self._count_unknown(kind)
        judged = judge("\n".join(text for text in texts if text.strip()))
        if judged.is_person:
            at = message.at or 0.0
            is_queued = judged.kind == TYPED and (self.is_working or at < self.worked_until)
            if self.is_working:
                session.drop_interim()
            session.says(QUEUED if is_queued else judged.kind, judged.text, message.at, message.id)
        elif texts and judged.kind != COMMAND:
            session.program_says(judged.kind)
        elif reason == COMMAND:
            session.command()
        else:
            session.program_says(reason)
        self.is_working = False

    def read_answer(self, message: _Message) -> None:
        """Add a message of the agent, unless it is a summary."""
        session, info = self.session, message.info
        folder = get_text(get_object(info, "path"), "cwd")
        self.worked_until = parse_time(get_object(info, "time").get("completed")) or 0.0
        for id, part in message.parts:
            match get_text(part, "type"):
                case "text" if info.get("summary") is True:
                    session.left_out[COMPACTION] += 1
                case "text" if part.get("synthetic") or part.get("ignored"):
                    session.left_out[SYNTHETIC] += 1
                case "text":
                    session.agent_says(get_text(part, "text"), message.at, message.id, folder)
                    self.is_working = False
                case "reasoning":
                    session.left_out[THINKING] += 1
                case "tool":
                    session.left_out[TOOLS] += 1
                    self.is_working = True
                    self._read_call(part, message, _name(message.id, id), folder)
                case kind:
                    self._count_unknown(kind)
        if info.get("finish") not in (None, "tool-calls"):
            self.is_working = False

    def _read_call(self, part: dict[str, Any], message: _Message, key: str, folder: str) -> None:
        session, state = self.session, get_object(part, "state")
        given, is_done = get_object(state, "input"), state.get("status") == "completed"
        at = parse_time(get_object(state, "time").get("end")) or message.at
        if part.get("tool") in _WRITES and is_done:
            session.write(given.get("filePath"), folder)
        for path in PATCHED.findall(get_text(given, "patchText")) if is_done else ():
            session.write(path.strip(), folder)
        if part.get("tool") == "question" and is_done:
            answers = get_object(state, "metadata").get("answers")
            asked = [
                (get_text(question, "question"), reply)
                for question, answer in zip(list_objects(given, "questions"), answers or (), strict=False)
                if (reply := ", ".join(text for text in answer or () if isinstance(text, str)).strip())
            ]
            if asked:
                questions, replies = zip(*asked, strict=True)
                self._hear("\n".join(replies), at, key, folder, REPLY, "\n".join(questions))
        _, refused, reason = get_text(state, "error").partition(_REFUSED)
        if refused and reason.strip():
            self._hear(reason.strip(), at, key, folder, REASON)

    def _hear(self, text: str, at: float | None, key: str, folder: str, kind: str, question: str = "") -> None:
        self.session.drop_interim()
        self.session.says(kind, text, at, key, folder, question)

    def _count_unknown(self, kind: Any) -> None:
        if kind not in _TYPES:
            self.session.unknown[f"parts of type {str(kind)[:40]}"] += 1


def _find_automated(permission: Any) -> str:
    """Return the evidence that a program ran a session, empty if there is none."""
    try:
        rules = {"rules": msgspec.json.decode(permission)}
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return ""
    denied = {get_text(rule, "permission") for rule in list_objects(rules, "rules") if rule.get("action") == "deny"}
    return "opencode run" if denied >= _OF_RUN else ""
