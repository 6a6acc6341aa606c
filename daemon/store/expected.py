"""Whether a database has the schema that memoryd makes, and nothing else: a copy may come from somebody else.

A trigger or view that does not belong there would act with each write or read. It is dropped; a table that is another
than it should be is refused.
"""

from contextlib import closing
from functools import cache

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store.connection import read_pragma
from memoryd.daemon.store.migrations import MIGRATIONS

_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_schema"
    " WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)
_LOOSE_ENDS = (
    'SELECT "table", count(*) FROM pragma_foreign_key_check'
    " WHERE \"table\" NOT IN ('members', 'edges', 'backlog') GROUP BY 1"  # the graph reports its own
)
_ORDER = ("trigger", "view", "index", "table")  # what others need is dropped last

Name = tuple[str, str]  # type and name


@cache
def _read_expected(version: int) -> dict[Name, str]:
    with closing(apsw.Connection(":memory:")) as connection:
        for script in MIGRATIONS[:version]:
            connection.execute(script)
        return _read_objects(connection)


def _read_objects(connection: apsw.Connection) -> dict[Name, str]:
    return {(type, name): sql for type, name, sql in connection.execute(_OBJECTS)}


def compare(connection: apsw.Connection) -> tuple[list[Name], list[Name]]:
    """Return what is in the schema and should not be in that of its version, and what is missing.

    What is another than expected is in both.
    """
    expected, found = _read_expected(read_pragma(connection, "user_version")), _read_objects(connection)
    extra = [name for name, sql in found.items() if expected.get(name) != sql]
    missing = [name for name, sql in expected.items() if found.get(name) != sql]
    return sorted(extra, key=lambda name: _ORDER.index(name[0])), missing


def find_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each object that is not as memoryd makes it, and each table whose rows refer to none."""
    extra, missing = compare(connection)
    lines = [f"schema: the {type} {name} is not one of memoryd's" for type, name in extra]
    lines += [f"schema: the {type} {name} is missing" for type, name in missing if (type, name) not in extra]
    found = connection.execute(_LOOSE_ENDS)
    return lines + [f"{table}: {number} rows refer to what does not exist" for table, number in found]


def restore(connection: apsw.Connection) -> list[str]:
    """Drop what does not belong there, make what is missing; return what was dropped. Refuse another table."""
    extra, missing = compare(connection)
    if tables := [name for type, name in missing if type == "table"]:
        raise StorageFailed(f"The table {tables[0]} is not the one that memoryd makes.")
    for type, name in extra:
        quoted = name.replace('"', '""')
        connection.execute(f'DROP {type} IF EXISTS "{quoted}"')
    for one in missing:
        connection.execute(_read_expected(read_pragma(connection, "user_version"))[one])
    return [f"{type} {name}" for type, name in extra]
