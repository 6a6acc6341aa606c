"""Settings that are stored in the database, as texts by name."""

import apsw


def read(connection: apsw.Connection, name: str) -> str | None:
    """Return a setting."""
    value = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).get
    return None if value is None else str(value)


def put(connection: apsw.Connection, name: str, value: str) -> None:
    """Write a setting."""
    sql = "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2"
    connection.execute(sql, (name, value))
