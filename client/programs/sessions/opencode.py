"""OpenCode: `opencode.db`, a SQLite database with sessions, messages and their parts (since 1.2; before, files).

Read by apsw, whose SQLite is new, in one snapshot and without a change, whatever OpenCode does meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.extras import advise
from memoryd.client.programs.hooks.answering import PATCHED
from memoryd.client.programs.sessions.building import (
    HOST,
    SUBAGENT,
    THINKING,
    TOOLS,
    UNREADABLE,
    Session,
    get_object,
    get_text,
    parse_time,
)

if TYPE_CHECKING:
    import apsw

_BUSY_MS = 5000
_SESSIONS = "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
_PARTS = (
    "SELECT m.id, m.time_created, m.data, p.data FROM message m JOIN part p ON p.message_id = m.id"
    " WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.time_created, p.id"
)


def read(path: Path, home: Path) -> Iterator[Session]:
    """Yield the sessions of a database."""
    with _open(path) as connection:
        for id, folder, parent in connection.execute(_SESSIONS).fetchall():
            session = Session("opencode", str(id), str(folder))
            for key, at, message, part in connection.execute(_PARTS, (id,)):
                try:
                    role = get_text(msgspec.json.decode(message), "role")
                    decoded = msgspec.json.decode(part, type=dict[str, Any])
                except (msgspec.MsgspecError, RecursionError):
                    session.left_out[UNREADABLE] += 1
                    continue
                if parent:
                    session.left_out[SUBAGENT] += decoded.get("type") == "text"
                else:
                    _read_part(session, decoded, role, parse_time(at), str(key))
            session.close()
            yield session


@contextmanager
def _open(path: Path) -> "Iterator[apsw.Connection]":
    try:
        import apsw  # a package of the daemon
    except ImportError:
        raise Invalid(f"{path} is read by a package that is not here; {advise('daemon')}") from None
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(str(path.resolve()), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN")
        yield connection
    except (apsw.Error, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}.") from None
    finally:
        if connection:
            connection.close()


def _read_part(session: Session, part: dict[str, Any], role: str, at: float | None, key: str) -> None:
    match part.get("type"):
        case "text" if part.get("synthetic") or part.get("ignored"):
            session.left_out[HOST] += 1
        case "text" if role == "user":
            session.person(get_text(part, "text"), at, f"{key}\0{len(session.utterances)}")
        case "text" if role == "assistant":
            session.agent_says(get_text(part, "text"), at, key)
        case "reasoning":
            session.left_out[THINKING] += 1
        case "tool":
            session.left_out[TOOLS] += 1
            state = get_object(part, "state")
            given = get_object(state, "input")
            if part.get("tool") in ("write", "edit") and state.get("status") == "completed":
                session.write(given.get("filePath"))
            for path in PATCHED.findall(get_text(given, "patchText")):
                session.write(path.strip())
