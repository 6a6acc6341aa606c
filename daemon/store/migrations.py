"""Migration of a database to the present schema, and the check that it has this schema and nothing else.

A new database gets the whole schema. One of `FORMER_VERSION` is migrated: `STEP` changes its tables, those in `NEW` are
created as in the schema, and `FILL` fills them. Either is one transaction with the change of the version number, so
that a killed start has changed nothing. Other databases are refused.

A restored copy may be somebody else's: its triggers and views would act with each write or read. Therefore all objects
that are not in memoryd's schema are dropped, and a table that differs from the schema is refused.
"""

import logging
import re
from contextlib import closing
from functools import cache

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store.connection import read_pragma
from memoryd.daemon.store.schema import DERIVED, FORMER_VERSION, VERSION, build_schema

# A database of `FORMER_VERSION` had copies of shared memories, which become local memories; dreams of
# namespaces, a table of the notes that dreams had seen, and one of unused vectors; a graph that changed with each
# memory, which the job `cluster` now rebuilds; and three tables of tasks for turns, in which a task that waited for the
# end of its session was due in ten years. It had no transcripts and no `origin`, which follows from the source.
_ORIGIN = (
    "CASE WHEN {0} = 'documents' THEN 'file'"
    " WHEN {1} > 0 OR {2} IN ('extraction', 'session_summary', 'task_completion') THEN 'heard'"
    " WHEN {2} = 'manual' THEN 'person'"
    " WHEN {2} IN ('claude-mem', 'memori', 'mem0', 'basic-memory', 'mcp-memory', 'memory-md') THEN 'import'"
    " ELSE 'agent' END"
)
_ORIGIN_BEFORE = _ORIGIN.format(*(f"before ->> '$.row.{name}'" for name in ("tier", "turns", "source")))
STEP = f"""
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
DROP INDEX dreams_subject;
ALTER TABLE dreams DROP COLUMN subject;
ALTER TABLE dreams ADD COLUMN seen TEXT;
DELETE FROM dreams WHERE workspace IS NULL;
UPDATE dreams
  SET seen = (SELECT json_group_object(lower(hex(note)), date) FROM dreamt d WHERE d.workspace = dreams.workspace)
  WHERE id IN (SELECT max(id) FROM dreams GROUP BY workspace);
DROP TABLE dreamt;
DROP TABLE orphans;
ALTER TABLE memories ADD COLUMN origin TEXT NOT NULL DEFAULT 'import';
ALTER TABLE memories ADD COLUMN confirmed_at REAL;
UPDATE memories SET origin = {_ORIGIN.format("tier", "turns", "source")};
UPDATE history SET before = json_set(before, '$.row.origin', {_ORIGIN_BEFORE})
  WHERE before ->> '$.row.id' IS NOT NULL;
CREATE TRIGGER later_edited AFTER UPDATE OF content ON memories WHEN old.content <> new.content BEGIN
  DELETE FROM later WHERE memory = new.id OR later = new.id;
END;
DROP TRIGGER IF EXISTS backlog_added;
DROP TRIGGER IF EXISTS backlog_changed;
DROP TRIGGER IF EXISTS members_added;
DROP TRIGGER IF EXISTS members_removed;
DROP TABLE IF EXISTS edges;
DROP TABLE IF EXISTS members;
DROP TABLE IF EXISTS nodes;
DROP TABLE IF EXISTS topics;
DROP TABLE IF EXISTS backlog;
DROP TABLE IF EXISTS names;
"""
NEW = "transcripts entries later pairs topics nodes members edges applied sent sends extraction".split()
FILL = """
INSERT INTO extraction (turn, task) SELECT id, job FROM cognition WHERE job IN ('rate', 'embed', 'condense');
INSERT OR IGNORE INTO extraction (turn, task, namespace, session, queued_at, due_at, attempts)
  SELECT h.key, kind, namespace, h.session, t.first_at,
    iif(t.due_at > t.first_at + 157680000, 9e999, t.due_at), t.attempts
  FROM heard h JOIN thoughts t USING (namespace, session, kind) ORDER BY h.id;
DROP TABLE heard;
DROP TABLE thoughts;
DROP TABLE cognition;
UPDATE flows SET kind = replace(kind, ': not thought about', ': given up') WHERE kind LIKE '%: not thought about';
"""
_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_schema"
    " WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)
_BROKEN_REFERENCES = 'SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1'
_DROP_ORDER = ("trigger", "view", "index", "table")  # objects are dropped before those that they depend on

ObjectName = tuple[str, str]  # type and name

log = logging.getLogger(__name__)


def migrate(connection: apsw.Connection) -> None:
    """Bring the database to the present schema; refuse one that this memoryd cannot migrate."""
    version = read_pragma(connection, "user_version")
    if version == VERSION:
        return
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StorageFailed("The database file is not one of memoryd; choose another data directory.")
    check_version(version, "The database")
    if version:
        log.info("migrating the database from schema %s to %s", version, VERSION)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # somebody else's triggers must not run
    try:
        with connection:
            for statements in (STEP, *_make_statements(), FILL) if version else (build_schema(),):
                connection.execute(statements)
            connection.pragma("user_version", VERSION)
            if version and (tables := [name for type, name in _compare(connection)[1] if type == "table"]):
                raise StorageFailed(f"The table {tables[0]} differs from memoryd's schema.")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def check_version(version: int, what: str) -> None:
    """Raise `StorageFailed` for a version that cannot be migrated, with what to do."""
    if version > VERSION:
        raise StorageFailed(
            f"{what} was written by a newer memoryd (schema {version}, this one knows {VERSION}); "
            "upgrade memoryd or point it to another data directory."
        )
    if version not in (0, FORMER_VERSION, VERSION):
        raise StorageFailed(
            f"{what} was written by an older memoryd (schema {version}, this one reads {FORMER_VERSION} and {VERSION})."
            " With that version run `memctl export > FILE`; then move the database away, and with this one run "
            "`memctl import FILE --mine`."
        )


# The check of the schema ----------------------------------------------------------------------------------------------


@cache
def _read_expected() -> dict[ObjectName, str]:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(build_schema())
        return _read_objects(connection)


def _make_statements() -> list[str]:
    """Return the statements that make the tables `NEW`, as the schema has them, with their indexes and triggers."""
    names = ", ".join("?" * len(NEW))
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(build_schema())
        made = connection.execute(f"SELECT sql FROM sqlite_schema WHERE tbl_name IN ({names}) AND sql NOT NULL", NEW)
        return [sql for (sql,) in made]


def _read_objects(connection: apsw.Connection) -> dict[ObjectName, str]:
    return {(type, name): sql for type, name, sql in connection.execute(_OBJECTS)}


def _without_layout(sql: str | None) -> str:
    """Return a statement without comments and spacing, which differ if a column was added by ALTER TABLE."""
    return re.sub(r"\s*([(),;])\s*|\s+", lambda match: match[1] or " ", re.sub(r"--[^\n]*", "", sql or "")).strip()


def _compare(connection: apsw.Connection) -> tuple[list[ObjectName], list[ObjectName]]:
    """Return the objects that do not belong in the database, and the missing objects.

    An object that differs from the schema is in both lists.
    """
    expected = {name: _without_layout(sql) for name, sql in _read_expected().items()}
    objects = {name: _without_layout(sql) for name, sql in _read_objects(connection).items()}
    extra = [name for name, sql in objects.items() if expected.get(name) != sql]
    missing = [name for name, sql in expected.items() if objects.get(name) != sql]
    return sorted(extra, key=lambda name: _DROP_ORDER.index(name[0])), missing


def find_schema_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each object that differs from memoryd's schema and each table with broken references."""
    extra, missing = _compare(connection)
    edited = set(extra) & set(missing)
    lines = [
        f"schema: the {type} {name} is "
        + ("different from memoryd's" if (type, name) in edited else "not part of memoryd")
        for type, name in extra
    ]
    lines += [f"schema: the {type} {name} is missing" for type, name in missing if (type, name) not in extra]
    broken = connection.execute(_BROKEN_REFERENCES)
    return lines + [
        f"{table}: {number} rows refer to rows that do not exist"
        for table, number in broken
        if table not in DERIVED  # their own check covers this
    ]


def restore_schema(connection: apsw.Connection) -> list[str]:
    """Drop objects that are not memoryd's, create missing ones, and return those dropped; refuse a differing table."""
    extra, missing = _compare(connection)
    if tables := [name for type, name in missing if type == "table"]:
        raise StorageFailed(f"The table {tables[0]} differs from memoryd's schema.")
    for type, name in extra:
        quoted = name.replace('"', '""')
        connection.execute(f'DROP {type} IF EXISTS "{quoted}"')
    for key in missing:
        connection.execute(_read_expected()[key])
    return [f"{type} {name}" for type, name in extra]
