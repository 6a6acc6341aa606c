"""Summarise a session that has paused in a note, which supersedes the former note of the session.

The first line names the session. The rest is the language model's summary or, without one, the first question, the last
substantial answer and the files that the turns name. The note is dated by the last turn.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from memoryd.client.errors import Conflict
from memoryd.client.protocol import NewMemory
from memoryd.daemon.conversations.learning import Finish
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.conversations.tables.sessions import Said
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import content_hash
from memoryd.daemon.language import digesting, rating
from memoryd.daemon.llm.provider import RULES, ask
from memoryd.daemon.memories import adding
from memoryd.daemon.memories.duplicates import AddTarget, Verdict
from memoryd.daemon.store import history, queries, rows
from memoryd.daemon.store.caller import USER
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.extraction import Conversation, QueuedTurn
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

KIND = "summary"
SOURCE, TYPE = "session_summary", "note"
IMPORTANCE = 0.6
MIN_TURNS = 3  # a shorter session needs no summary
TOKENS = 200  # the approximate length of a summary
_CHARS_PER_TOKEN = 6  # a longer summary is cut
_MAX_FILES = 10

log = logging.getLogger(__name__)


def summarise(core: Core, key: Conversation, said: Sequence[QueuedTurn]) -> Finish:
    """Summarise turns together with the former summary of the session; return a function that writes the note."""
    with core.store.reading() as connection:
        before = _read_latest(core, connection, key)
        known = sessions.find_said(connection, [one.key for one in said])
    if not before and len(said) < MIN_TURNS:
        return lambda transaction, there: None
    by, text = _digest(core, said, before.content.splitlines()[1:] if before else [], known)

    def finish(transaction: Transaction, there: Sequence[QueuedTurn]) -> None:
        if text and len(there) == len(said):
            _write(core, transaction, key, _note(core, key, text, by, said))
        elif text:  # the failed task is run again with the remaining turns
            raise Conflict("Turns of the session were deleted meanwhile.")

    return finish


def _read_latest(core: Core, connection: Connection, key: Conversation) -> Row | None:
    """Return the present note on a session."""
    return queries.find_latest_of_session(connection, (key.namespace, key.session), (TYPE, SOURCE), core.clock())


def _digest(
    core: Core, said: Sequence[QueuedTurn], before: Sequence[str], known: Mapping[str, Said]
) -> tuple[str, str]:
    """Return the author and the text of a note; answers to programs, which are rated as small talk, are left out."""
    spoken = [
        (one.role, one.content)
        for one in said
        if one.role != "assistant" or one.key not in known or known[one.key].importance > rating.SMALL_TALK
    ]
    previous = "\n".join(line for line in before if not line.startswith(digesting.FILES))
    name, made = ask(
        log, core.cognition.provider, "summarise a session", lambda by: by.digest(spoken, previous, TOKENS)
    )
    chars = TOKENS * _CHARS_PER_TOKEN
    text = made if len(made) <= chars else made[: chars + 1].rpartition("\n")[0] or made[:chars]  # whole lines
    if name == RULES.name and text:  # with the latest files named by the turns and by the former note
        former = filter(None, digesting.find_line(before, digesting.FILES).split(", "))
        if files := dict.fromkeys([*former, *(path for one in known.values() for path in one.files)]):
            text = f"{text}\n{digesting.FILES}{', '.join([*files][-_MAX_FILES:])}"
    return name, text


def _note(core: Core, key: Conversation, text: str, by: str, said: Sequence[QueuedTurn]) -> NewMemory:
    said_at = max(one.created_at for one in said)
    date = datetime.fromtimestamp(said_at, UTC).date().isoformat()
    return NewMemory(
        content=f"Session {key.session}, {date}:\n{text}",
        type=TYPE,
        source=SOURCE,
        origin="heard",
        importance=IMPORTANCE,
        created_at=said_at,
        expires_at=rows.compute_expiry(core.config.lifetime.days, SOURCE, said_at),
        metadata={"session": key.session, "by": by, "turns": len(said)},
    )


def _write(core: Core, transaction: Transaction, key: Conversation, memory: NewMemory) -> None:
    connection, now = transaction.connection, core.clock()
    place = AddTarget(core.store.namespaces.name(key.namespace), key.namespace, "TRUE", True, None, USER)
    operation = history.begin(connection, f"{history.JOB}{KIND}", place.name, now)
    former = _read_latest(core, connection, key)
    row = adding.new_row(core, place, memory, content_hash(memory.content))
    adding.insert(core, transaction, place, row, Verdict(None, None, []), None, operation)
    if former is not None:
        history.record(connection, operation, former.id, place.name, former)
        rows.change(connection, former.row, {"superseded_by": row.id, "updated_at": now})
