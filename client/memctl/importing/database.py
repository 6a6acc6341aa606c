"""Reading the SQLite database of another program: read-only, in one snapshot, whatever its owner does meanwhile."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoryd.client.errors import Invalid
from memoryd.client.memctl.importing.records import Account

BINARY = frozenset({"point"})  # columns that hold no text: Qdrant's points
_BUSY_S = 5.0
_MAGIC = b"SQLite format 3\0"


@contextmanager
def open_database(path: Path, what: str, tables: dict[str, set[str]] | None = None) -> Iterator[sqlite3.Connection]:
    """Give a connection within one snapshot; raise `Invalid` when it cannot be read, or lacks tables or columns."""
    if not is_database(path):
        raise Invalid(f"{path} is not {what}: it is no SQLite database.")
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        require_tables(connection, path, what, tables or {})
        yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter of what SQLite says, or of a name
        raise Invalid(f"{path} cannot be read: {_reason_text(error)}. Nothing was imported.") from None
    finally:
        connection.close()


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database by its first bytes; one that is not there is an `OSError`."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def require_tables(connection: sqlite3.Connection, path: Path, what: str, tables: dict[str, set[str]]) -> None:
    """Raise `Invalid` when a table or a column is missing that the import reads."""
    for table, columns in tables.items():
        if missing := columns - columns_of(connection, table):
            lacks = f"table {table}" if missing == columns else f"column {sorted(missing)[0]} in its table {table}"
            raise Invalid(f"{path} is not {what} that this memctl knows: it has no {lacks}. Nothing was imported.")


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table, none when there is none of this name, but a view that could hold anything."""
    is_table = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)) if is_table else ()
    return {row["name"] for row in found}


def read_rows(connection: sqlite3.Connection, sql: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query as dictionaries; texts that were stored as bytes are texts, too."""
    for row in connection.execute(sql, values):
        yield {
            name: value.decode(errors="replace") if isinstance(value, bytes) and name not in BINARY else value
            for name, value in zip(row.keys(), row, strict=True)
        }


def _reason_text(error: Exception) -> str:
    text = str(error)
    if "locked" in text:
        return f"another program has held a lock on it for {_BUSY_S:.0f} s; stop it or copy the file"
    if isinstance(error, UnicodeDecodeError) or "malformed" in text or "not a database" in text:
        return f"it is damaged ({text})"
    return text


def note_version(
    connection: sqlite3.Connection, account: Account, system: str, of: tuple[str, str], known: int
) -> None:
    """Note that a newer version of a system wrote the database; `of` is where its number is, as (table, column)."""
    table, column = of
    if not columns_of(connection, table):
        return
    version = connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0] or 0
    if version > known:
        account.notes.append(
            f"A newer {system} wrote it (schema {version}, known is {known}): what it added is not imported."
        )


def skip_table(connection: sqlite3.Connection, account: Account, table: str, what: str) -> None:
    """Count the rows of a table, if it is there, as skipped: they are no memories."""
    if columns_of(connection, table):
        number: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        account.skip(f"{what}, which are no memories", number)
