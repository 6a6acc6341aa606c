"""Connect to a PostgreSQL server, and convert its errors to those of memoryd."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from memoryd.client.errors import Forbidden, Invalid, MemorydError, TimedOut, Unavailable
from memoryd.client.extras import advise
from memoryd.client.patterns import compile_late

if TYPE_CHECKING:
    import psycopg

R = TypeVar("R")

SCHEME = "postgresql://"
# Passwords are in a passfile or in the environment. Without a host it is a Unix socket of this machine.
_ADDRESS = compile_late(r"postgresql://([^\s:@/?]+@)?[^\s@/?]*/[^\s@/?:]+(\?\S*)?")
CONNECT_S = 5
_BEGIN = "BEGIN; SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = '500ms'"
_TOLD_CHARS = 300


def is_address(server: str) -> bool:
    """Return whether a text is the address of a database, without a password."""
    return _ADDRESS.fullmatch(server) is not None and "password=" not in server


def open_connection(server: str) -> "psycopg.Connection[Any]":
    """Connect to a server; raise `Unavailable` if psycopg is not installed."""
    try:
        import psycopg
    except ImportError:
        raise Unavailable(f"PostgreSQL needs psycopg, which is not installed; {advise('shared')}.") from None
    given = psycopg.conninfo.conninfo_to_dict(server)
    defaults: dict[str, Any] = {"sslmode": "verify-full", "connect_timeout": CONNECT_S, "application_name": "memoryd"}
    options = {name: value for name, value in defaults.items() if name not in given}
    # Prepared statements belong to a server session.
    return psycopg.connect(server, autocommit=True, prepare_threshold=None, **options)


def begin(connection: Any, query: str = "SELECT 1") -> Any:
    """Begin a transaction with limits for a statement and for a lock; return the row of a query sent along with it."""
    cursor = connection.execute(f"{_BEGIN}; {query}")
    while cursor.nextset():
        pass
    return cursor.fetchone()


def read_at_once(connection: Any, queries: str, values: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
    """Run queries in one transaction, with its limits, in one round trip; return the rows of each."""
    from psycopg import ClientCursor  # it puts the values into the text, as several statements at once need it

    cursor = ClientCursor(connection)
    try:
        cursor.execute(f"{_BEGIN}; {queries}; COMMIT", values)
        found = [cursor.fetchall()] if cursor.description else []
        while cursor.nextset():
            found += [cursor.fetchall()] if cursor.description else []
    except BaseException:
        with suppress(Exception):
            connection.execute("ROLLBACK")
        raise
    return found


def transact(connection: Any, work: Callable[[Any], R], begin: Callable[[Any], Any] = begin) -> R:
    """Run a function in one transaction, which is durable on the server when this returns."""
    try:
        begin(connection)
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(Exception):
            connection.execute("ROLLBACK")
        raise
    return result


def explain(name: str, error: BaseException) -> MemorydError | None:
    """Convert an error of the driver to one of memoryd; return None for any other error."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    told = " ".join((error.diag.message_primary or str(error)).split())
    said = "".join(character for character in told if character.isprintable())[:_TOLD_CHARS].rstrip(".")
    if state == "42501":
        return Forbidden(f"The place of {name} does not allow it: {said}.")
    if state in ("57014", "55P03"):
        return TimedOut(f"The place of {name} did not do it in time: {said}.")
    if state[:2] in ("22", "23"):
        return Invalid(f"The place of {name} does not take it: {said}.")
    return Unavailable(f"The place of {name} cannot be used: {said}.")
