"""Bringing a database to the present schema, and whether it has that and nothing else.

A new database gets the schema as a whole. One of `FORMER_VERSION` is brought along by `STEP`. Both are one transaction
with the number: a start that is killed has changed nothing. Other databases are refused.

A copy may come from somebody else: a trigger or view that is not of the schema would act with each write or read, so it
is dropped. A table that differs from the schema is refused. A table that no part of memoryd has stays in a database
that was here before. Of a copy two kinds stay, as plain tables with their indexes: those of capabilities that are not
installed, and those that the database here has under the same name. How they should look is not known until their
capability is put back (`disarm_returned`).
"""

import logging
import re
from collections.abc import Collection, Iterable
from contextlib import closing
from functools import cache

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.capability import Capability, installed, installed_by_name, list_absent_tables
from memoryd.daemon.store import settings
from memoryd.daemon.store.connection import read_pragma
from memoryd.daemon.store.schema import FORMER_VERSION, VERSION, build_schema

# From `FORMER_VERSION`. There memories could be shared with other machines; they are this machine's alone now. The
# tables are missing where that part of memoryd was taken out.
STEP = """
DROP TRIGGER IF EXISTS shared_added;
DROP TRIGGER IF EXISTS shared_changed;
DROP TRIGGER IF EXISTS shared_deleted;
DROP TRIGGER IF EXISTS shared_left;
DROP TABLE IF EXISTS shared_stuck;
DROP TABLE IF EXISTS shared_entries;
DROP TABLE IF EXISTS shared_namespaces;
DROP TABLE IF EXISTS shared_roots;
DROP TABLE IF EXISTS shared_by_name;
DROP TABLE IF EXISTS shared_unnoticed;
DELETE FROM settings WHERE name = 'shared_machine';
"""
_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_schema"
    " WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)
_LOOSE_ENDS = 'SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1'
_TRIGGERS = re.compile(r"CREATE TRIGGER (\w+)")
_TABLES = re.compile(r"CREATE TABLE (\w+)")
_RESTORED_WITHOUT = "restored_without"  # setting: tables of no part that was installed when the database was restored
_HOLDING = """
SELECT t.name, k."table" FROM pragma_table_list t, pragma_foreign_key_list(t.name) k
  WHERE t.schema = 'main' AND k.on_delete <> 'CASCADE'
"""
_DROP_ORDER = ("trigger", "view", "index", "table")  # what others need is dropped last

ObjectName = tuple[str, str]  # type and name

log = logging.getLogger(__name__)


def migrate(connection: apsw.Connection) -> None:
    """Bring the database to the present schema; refuse one that this memoryd cannot bring along."""
    version = read_pragma(connection, "user_version")
    if version == VERSION:
        _add_capabilities(connection)
        return
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StorageFailed("The database file is not one of memoryd; choose another data directory.")
    check_version(version, "The database")
    if version:
        log.info("the database is brought from schema %s to %s", version, VERSION)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # what somebody else put there does not act
    try:
        with connection:
            connection.execute(STEP if version else build_schema())
            _add_capabilities(connection)
            connection.pragma("user_version", VERSION)
            if version and (tables := [name for type, name in _compare(connection)[1] if type == "table"]):
                raise StorageFailed(f"The table {tables[0]} is not the one that memoryd makes.")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def _add_capabilities(connection: apsw.Connection) -> None:
    """Make the tables of capabilities that were added since the database was made."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for capability in installed():
        if capability.tables and there.isdisjoint(_TABLES.findall(capability.tables)):
            with connection:
                connection.execute(capability.tables)
                capability.clear(connection)


def settle_triggers(connection: apsw.Connection) -> None:
    """Drop the triggers of capabilities that were taken out, which would go on; make those of one that was put back.

    Its tables were left as they were. What changed meanwhile it has not seen, so it is told to start again; what was
    erased meanwhile is not to stay in free pages or in the log.
    """
    triggers = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    for name in triggers - set(_TRIGGERS.findall(build_schema())):
        log.warning("the trigger %s is of no part of memoryd that is installed: it is dropped", name)
        _drop(connection, "trigger", name)
    if returned := find_returned(connection):
        connection.pragma("secure_delete", True)
        with connection:
            for name in (name for capability in returned for name in _TRIGGERS.findall(capability.tables)):
                connection.execute(_read_expected()["trigger", name])
            start_again(connection, returned)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.pragma("secure_delete", "fast")


def find_returned(connection: apsw.Connection) -> list[Capability]:
    """Return the capabilities none of whose triggers is there: each was taken out and is put back."""
    triggers = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    pairs = [(capability, _TRIGGERS.findall(capability.tables)) for capability in installed()]
    return [capability for capability, names in pairs if names and triggers.isdisjoint(names)]


def start_again(connection: apsw.Connection, returned: Iterable[Capability]) -> None:
    """Tell capabilities that they were put back."""
    for capability in returned:
        capability.resume(connection)
        capability.clear(connection)


def note_absent(connection: apsw.Connection) -> None:
    """Note in a restored copy which tables are of capabilities that are not installed: nobody could disarm these."""
    tables = sorted(name for type, name in _find_left(connection) if type == "table" and not name.startswith("sqlite_"))
    settings.put(connection, _RESTORED_WITHOUT, " ".join(tables))


def disarm_returned(connection: apsw.Connection) -> None:
    """Disarm what came with a restored copy while its capability was not installed, once it is put back.

    What was in force before the restore is not known any more: nothing is. Tables that are not as it makes them, which
    the restore could not see, are made anew.
    """
    tables_left = (settings.read(connection, _RESTORED_WITHOUT) or "").split()
    for name, capability in installed_by_name().items():
        tables = _TABLES.findall(capability.tables)
        if set(tables_left).isdisjoint(tables):
            continue
        _, missing = _compare(connection)
        if wrong := [table for table in tables if ("table", table) in missing]:
            log.warning("the table %s of the restored copy is not that of %s: all of its are made anew", wrong[0], name)
            _make_anew(connection, tables, capability.tables)
        with connection:
            for what, values in capability.disarm(connection, ()).items():
                if values:
                    log.warning("%s of the restored copy are not in force: %s", what, values)
            tables_left = [table for table in tables_left if table not in tables]
            settings.put(connection, _RESTORED_WITHOUT, " ".join(tables_left))


def _make_anew(connection: apsw.Connection, tables: list[str], sql: str) -> None:
    connection.pragma("foreign_keys", False)  # else a drop deletes row by row, and what refers to them
    try:
        with connection:
            for table in tables:
                _drop(connection, "table", table)
            connection.execute(sql)
            for name in _TRIGGERS.findall(sql):  # `settle_triggers` makes them, and has the capability start again
                _drop(connection, "trigger", name)
    finally:
        connection.pragma("foreign_keys", True)


def _drop(connection: apsw.Connection, type: str, name: str) -> None:
    quoted = name.replace('"', '""')
    connection.execute(f'DROP {type} IF EXISTS "{quoted}"')


def check_version(version: int, what: str) -> None:
    """Raise `StorageFailed` for a schema that cannot be brought along, with what to do."""
    if version > VERSION:
        raise StorageFailed(
            f"{what} was written by a newer memoryd (schema {version}, this one knows {VERSION}); "
            "upgrade memoryd or point it to another data directory."
        )
    if version not in (0, FORMER_VERSION, VERSION):
        raise StorageFailed(
            f"{what} was written by an older memoryd (schema {version}, this one reads {FORMER_VERSION} and {VERSION})."
            " With that version run `memctl export > FILE`; then move the database away, and with this one run "
            "`memctl import FILE`."
        )


# Whether a database has the schema, and nothing else ------------------------------------------------------------------


@cache
def _read_expected() -> dict[ObjectName, str]:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(build_schema())
        return _read_objects(connection)


def _read_objects(connection: apsw.Connection) -> dict[ObjectName, str]:
    return {(type, name): sql for type, name, sql in connection.execute(_OBJECTS)}


def _without_layout(sql: str | None) -> str:
    """Return a statement without its comments and spaces, which a column that was added later changes."""
    return re.sub(r"\s*([(),;])\s*|\s+", lambda match: match[1] or " ", re.sub(r"--[^\n]*", "", sql or "")).strip()


def _compare(connection: apsw.Connection) -> tuple[list[ObjectName], list[ObjectName]]:
    """Return what is in the database and should not be, and what is missing.

    What differs from what it should be is in both.
    """
    expected = {name: _without_layout(sql) for name, sql in _read_expected().items()}
    objects = {name: _without_layout(sql) for name, sql in _read_objects(connection).items()}
    extra = [name for name, sql in objects.items() if expected.get(name) != sql]
    missing = [name for name, sql in expected.items() if objects.get(name) != sql]
    return sorted(extra, key=lambda name: _DROP_ORDER.index(name[0])), missing


def find_schema_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each object that differs from memoryd's schema and each table with dangling references."""
    extra, missing = _compare(connection)
    left = _find_left(connection)
    extra = [name for name in extra if name not in left]
    edited = set(extra) & set(missing)
    lines = [
        f"schema: the {type} {name} is "
        + ("not as this memoryd makes it" if (type, name) in edited else "of no part of memoryd that is installed")
        for type, name in extra
    ]
    lines += [f"schema: the {type} {name} is missing" for type, name in missing if (type, name) not in extra]
    loose_ends = connection.execute(_LOOSE_ENDS)
    derived = {table for capability in installed() for table in capability.derived}  # these are checked by their own
    return lines + [
        f"{table}: {number} rows refer to what does not exist" for table, number in loose_ends if table not in derived
    ]


def list_plain_tables(connection: apsw.Connection) -> set[str]:
    """Return the names of all tables that are neither views nor virtual."""
    return {str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")}


def _find_left(connection: apsw.Connection, known: Collection[str] | None = None) -> set[ObjectName]:
    """Return the tables that are not expected, with what belongs to them: a capability that was taken out left them.

    With the names that such tables may have (`known`), only plain tables and their indexes.
    """
    expected = {name for type, name in _read_expected() if type == "table"}
    objects = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema WHERE type <> 'view'").fetchall()
    unexpected = {(str(type), str(name)) for type, name, table in objects if table not in expected}
    if known is None:
        return unexpected
    allowed = set(known) - expected
    tables = list_plain_tables(connection) & allowed - _find_holding(connection, allowed)
    return {(str(type), str(name)) for type, name, table in objects if type in ("table", "index") and table in tables}


def _find_holding(connection: apsw.Connection, known: set[str]) -> set[str]:
    """Return the tables whose rows would keep rows of the kernel from being deleted; namespaces never are."""
    return {
        str(name)
        for name, parent in connection.execute(_HOLDING)
        if name in known and str(parent).lower() not in known | {"namespaces"}
    }


def list_left(connection: apsw.Connection) -> list[str]:
    """Return the capabilities that are not installed and have tables in the database."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return [name for name, tables in list_absent_tables().items() if not there.isdisjoint(tables)]


def restore_schema(connection: apsw.Connection, own: Collection[str] | None = None) -> list[str]:
    """Drop what does not belong there, make what is missing; return what was dropped. Refuse another table.

    The tables of a capability that was taken out stay, with their rows. In a copy that may be somebody else's these are
    the ones that `CAPABILITIES` names and the tables of this machine's own database (`own`).
    """
    extra, missing = _compare(connection)
    absent = {table for tables in list_absent_tables().values() for table in tables}
    left = _find_left(connection, None if own is None else absent | set(own))
    extra = [name for name in extra if name not in left]
    if tables := [name for type, name in missing if type == "table"]:
        raise StorageFailed(f"The table {tables[0]} is not the one that memoryd makes.")
    for type, name in extra:
        _drop(connection, type, name)
    for one in missing:
        connection.execute(_read_expected()[one])
    return [f"{type} {name}" for type, name in extra]
