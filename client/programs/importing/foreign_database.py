"""Read the SQLite database of another program: read-only and in one snapshot, also while that program runs.

This uses apsw, which has a recent SQLite: that of Python may be older than the one that wrote the database, and may
reject its schema.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memoryd.client.errors import Invalid
from memoryd.client.extras import advise
from memoryd.client.programs.importing.records import Account
from memoryd.client.programs.memctl.sending import require_file

if TYPE_CHECKING:
    import apsw

SqliteConnection: TypeAlias = "apsw.Connection"

BINARY = frozenset({"point"})  # columns without text: Qdrant's points
_BUSY_MS = 5000
_MAGIC = b"SQLite format 3\0"


@contextmanager
def open_database(path: Path, what: str, tables: dict[str, set[str]] | None = None) -> Iterator[SqliteConnection]:
    """Yield a connection with one snapshot; raise `Invalid` if the file is unreadable or lacks tables or columns."""
    if not is_database(path):
        raise Invalid(f"{path} is not {what}: it is no SQLite database.")
    try:
        import apsw  # a package of the daemon, not needed for sources that are no database
    except ImportError:
        raise Invalid(f"{path} needs a package that is not installed; {advise('daemon')}") from None
    connection: SqliteConnection | None = None
    try:
        connection = apsw.Connection(str(path.resolve()), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        require_tables(connection, path, what, tables or {})
        yield connection
    except apsw.NoMemError:
        raise MemoryError from None
    except (apsw.Error, UnicodeDecodeError) as error:  # the latter in a message of SQLite or in a name
        raise Invalid(f"{path} cannot be read: {_reason_text(error)}. Nothing was imported.") from None
    finally:
        if connection:
            connection.close()


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database by its first bytes; raise `OSError` if it does not exist."""
    require_file(path)
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def require_tables(connection: SqliteConnection, path: Path, what: str, tables: dict[str, set[str]]) -> None:
    """Raise `Invalid` if a table or column that the import reads is missing."""
    for table, columns in tables.items():
        if missing := columns - columns_of(connection, table):
            lacking = f"table {table}" if missing == columns else f"column {sorted(missing)[0]} in its table {table}"
            raise Invalid(f"{path} is not {what} that this memctl knows: it has no {lacking}. Nothing was imported.")


def columns_of(connection: SqliteConnection, table: str) -> set[str]:
    """Return the columns of a table, empty if there is no such table; a view is no table, as it could run any query."""
    is_table = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)) if is_table else ()
    return {name for (name,) in found}


def read_rows(connection: SqliteConnection, sql: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query as dictionaries; bytes are decoded to text, except in `BINARY` columns."""
    rows = connection.execute(_read_texts_as_bytes(connection, sql))
    for row in rows:
        yield {
            name: value.decode(errors="replace") if isinstance(value, bytes) and name not in BINARY else value
            for (name, _), value in zip(rows.get_description(), row, strict=True)
        }


def _read_texts_as_bytes(connection: SqliteConnection, sql: str) -> str:
    """Rewrite a query to return texts as bytes: apsw raises an error for text that is not valid UTF-8."""
    from apsw.ext import query_info

    if connection.pragma("encoding") != "UTF-8":
        return sql
    names = ['"{}"'.format(name.replace('"', '""')) for name, _ in query_info(connection, sql).description]
    texts = (f"iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name}) AS {name}" for name in names)
    return f"SELECT {', '.join(texts)} FROM ({sql})"


def _reason_text(error: Exception) -> str:
    text = str(error)
    if "locked" in text:
        return f"another program has held a lock on it for {_BUSY_MS // 1000} s; stop it or copy the file"
    if isinstance(error, UnicodeDecodeError) or "malformed" in text or "not a database" in text:
        return f"it is damaged ({text})"
    return text


def note_version(connection: SqliteConnection, account: Account, system: str, of: tuple[str, str], known: int) -> None:
    """Add a note if a newer version of a system wrote the database; `of` is the (table, column) of the version."""
    table, column = of
    if not columns_of(connection, table):
        return
    version = connection.execute(f"SELECT max({column}) FROM {table}").get or 0
    if version > known:
        account.notes.append(
            f"A newer {system} wrote it (schema {version}, this memctl knows {known}): new fields are not imported."
        )


def skip_table(connection: SqliteConnection, account: Account, table: str, what: str) -> None:
    """Count the rows of a table, if it exists, as skipped."""
    if columns_of(connection, table):
        number: int = connection.execute(f"SELECT count(*) FROM {table}").get
        account.skip(f"{what}, which are not memories", number)
