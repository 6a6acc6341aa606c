"""The names of the sessions in a database, and the resolution of abbreviated ones."""

from collections.abc import Collection

import apsw

from memoryd.client.errors import AmbiguousId, NotFound

LEAST_PREFIX = 4  # characters of an abbreviated session's name
_NAMED = 8  # sessions in a message
_SESSIONS = (
    "SELECT session FROM turns UNION SELECT metadata ->> '$.session' FROM memories UNION SELECT session FROM skipped"
    " UNION SELECT session FROM extraction UNION SELECT name FROM pauses"
    " WHERE kind = 'session'"
    " UNION SELECT coalesce(before ->> '$.turn.session', (before ->> '$.row.metadata') ->> '$.session') FROM history"
    " WHERE before IS NOT NULL"
)


def list_sessions(connection: apsw.Connection) -> list[str]:
    """Return the names of all sessions that a database mentions."""
    return [str(name) for (name,) in connection.execute(_SESSIONS) if name]


def choose_session(names: Collection[str], given: str) -> str:
    """Return the session with this name, else the only one whose name begins with it.

    Raise `NotFound` or, naming the candidates, `AmbiguousId`.
    """
    if given in names:
        return given
    is_long_enough = len(given) >= LEAST_PREFIX
    found = sorted({name for name in names if name.startswith(given)}) if is_long_enough else []
    if not found:
        why = (
            "none has a name that begins so" if is_long_enough else f"a beginning has {LEAST_PREFIX} characters or more"
        )
        raise NotFound(f"No session is called {given[:80]!r}, and {why}.", {"session": given})
    if len(found) > 1:
        more = " and more" if len(found) > _NAMED else ""
        raise AmbiguousId(f"{given!r} is not unique: {', '.join(found[:_NAMED])}{more}.", {"candidates": found})
    return found[0]
