"""The schema as a list of migrations: number = position, `user_version` is set in the same transaction.

To change the schema append to `MIGRATIONS`; never edit a released entry. A database of a newer memoryd is refused.

A copy may come from somebody else: a trigger or view that does not belong into the schema would act with each write or
read. It is dropped; a table that is another than it should be is refused.
"""

from contextlib import closing, nullcontext
from functools import cache

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store.connection import read_pragma
from memoryd.daemon.store.schema import SCHEMA
from memoryd.daemon.store.shared_tables import ENTRIES

# All that supersedes what `new` is superseded by; `store/successors.py` says what follows from it.
_LATER = """
  WITH RECURSIVE later (id) AS (
    SELECT new.superseded_by
    UNION SELECT coalesce(
      (SELECT n.superseded_by FROM memories n WHERE n.id = later.id),
      (SELECT d.superseded_by FROM deleted_successors d WHERE d.id = later.id)
    ) FROM later WHERE later.id IS NOT NULL
  ) SELECT id FROM later
"""
_BREAK_CIRCLE = f"""
WHEN new.superseded_by IS NOT NULL BEGIN
  UPDATE memories SET superseded_by = NULL WHERE id = new.superseded_by AND new.id IN ({_LATER});
  UPDATE deleted_successors SET superseded_by = NULL WHERE id = new.superseded_by AND new.id IN ({_LATER});
END;
"""
_SUCCESSION = f"""
-- Deleted memories that superseded others or were superseded: what they superseded stays so while a successor is alive.
CREATE TABLE deleted_successors (
  id TEXT PRIMARY KEY,
  row INTEGER NOT NULL,        -- its number in `memories`
  superseded_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX deleted_successors_row ON deleted_successors (row);
CREATE INDEX deleted_successors_superseded ON deleted_successors (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;
-- Those deleted before, as far as history knows them.
INSERT INTO deleted_successors
  SELECT h.memory, h.before ->> '$.row.row', h.before ->> '$.row.superseded_by' FROM history h
  WHERE h.before ->> '$.row.superseded_by' IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory)
    AND h.id = (SELECT max(x.id) FROM history x WHERE x.memory = h.memory);
CREATE TRIGGER successor_deleted AFTER DELETE ON memories
WHEN old.superseded_by IS NOT NULL OR EXISTS (SELECT 1 FROM memories WHERE superseded_by = old.id)
  OR EXISTS (SELECT 1 FROM deleted_successors WHERE superseded_by = old.id)
BEGIN
  INSERT OR REPLACE INTO deleted_successors VALUES (old.id, old.row, old.superseded_by);
END;
CREATE TRIGGER successor_restored AFTER INSERT ON memories BEGIN
  DELETE FROM deleted_successors WHERE id = new.id;
END;
-- Of a circle every memory would be hidden by another: what supersedes last is not superseded itself.
CREATE TRIGGER superseded_circle AFTER UPDATE OF superseded_by ON memories {_BREAK_CIRCLE}
CREATE TRIGGER superseded_circle_added AFTER INSERT ON memories {_BREAK_CIRCLE}
"""

# Turns are no longer compared with memories, only embedded; who said one, and which files it is about.
_SPEAKERS = """
UPDATE cognition SET job = 'embed' WHERE job = 'compare';
ALTER TABLE turns ADD COLUMN speaker TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN files TEXT NOT NULL DEFAULT '';  -- paths, one a line
"""

# What is shared with other machines. All of it is empty on a machine that shares nothing, and without triggers.
_SHARED = """
CREATE TABLE shared_roots (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,       -- a first-level namespace
  server TEXT NOT NULL,            -- connection string, never with a password
  passfile TEXT NOT NULL,
  conversations INTEGER NOT NULL,  -- 1: turns and what was derived from them are shared as well
  cursor INTEGER NOT NULL DEFAULT 0,    -- how far the server's feed was read
  mark INTEGER NOT NULL DEFAULT 0,      -- the latest state of the server that is known here, and its tag:
  tag TEXT NOT NULL DEFAULT '',         -- when the server has another one there, it lost what came after
  added_at REAL NOT NULL
) STRICT;
CREATE TABLE shared_namespaces (
  namespace INTEGER PRIMARY KEY REFERENCES namespaces (id),
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE
) STRICT;
-- The version of each memory that the server has, or is to get: what the next change descends from.
CREATE TABLE shared_versions (
  memory TEXT PRIMARY KEY,
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE,
  version TEXT NOT NULL,           -- empty: it has none yet
  ancestors TEXT NOT NULL,         -- a JSON list, the latest first
  body BLOB NOT NULL,              -- hash of what this version says; of another one, the memory was changed here
  pushed INTEGER NOT NULL,         -- 1: the server has it
  purged INTEGER NOT NULL DEFAULT 0,  -- 1: erased everywhere, for good
  namespace TEXT NOT NULL,         -- as the server has it
  conflict_of TEXT,                -- the memory whose other version this is
  machine TEXT NOT NULL,           -- which changed it last, and the role that it has on the server
  author TEXT NOT NULL,
  further TEXT NOT NULL            -- fields of a newer memoryd, a JSON object
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_versions_root ON shared_versions (root);
CREATE INDEX shared_versions_conflicts ON shared_versions (conflict_of) WHERE conflict_of IS NOT NULL;
-- What is to be pushed; a change while a push is under way gets a new number.
CREATE TABLE shared_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory TEXT NOT NULL UNIQUE,
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX shared_outbox_root ON shared_outbox (root, id);
-- What the server refused, until the memory changes: `change` is the number in the outbox.
CREATE TABLE shared_stuck (
  memory TEXT PRIMARY KEY,
  change INTEGER NOT NULL,
  reason TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
-- Memories of conversations that somebody shared by name.
CREATE TABLE shared_by_name (memory TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""

_CONTEXTS = """
ALTER TABLE memories ADD COLUMN key TEXT;  -- unique in its namespace; NULL: it has none
CREATE UNIQUE INDEX memories_key ON memories (namespace, key) WHERE key IS NOT NULL;
-- What a memory is found by beside its own text; derived. A table of its own, since most memories have none.
CREATE TABLE contexts (
  memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  search_hash BLOB NOT NULL,   -- key of the vector that searches use once it is there
  content TEXT NOT NULL        -- what is embedded: its text between its neighbours
) STRICT;
CREATE INDEX contexts_search ON contexts (search_hash);  -- which contexts use a cached vector
CREATE TRIGGER contexts_outdated AFTER UPDATE OF text_hash ON memories WHEN old.text_hash <> new.text_hash BEGIN
  DELETE FROM contexts WHERE memory = new.row;
END;
-- Texts beyond the model's window: the parts that have vectors of their own, the first one excepted. Derived.
CREATE TABLE parts (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  start INTEGER NOT NULL,      -- of its content, in characters
  size INTEGER NOT NULL,
  text_hash BLOB NOT NULL,
  PRIMARY KEY (memory, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_text ON parts (text_hash);
CREATE TRIGGER parts_outdated AFTER UPDATE OF text_hash ON memories WHEN old.text_hash <> new.text_hash BEGIN
  DELETE FROM parts WHERE memory = new.row;
END;
-- Who did it: the name of a token, a session, a process; empty for the daemon's own work.
ALTER TABLE operations ADD COLUMN token TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN process TEXT NOT NULL DEFAULT '';
-- Where observing is paused.
CREATE TABLE pauses (
  kind TEXT NOT NULL,          -- session, namespace, folder
  name TEXT NOT NULL,
  since REAL NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
"""

_KEYED = """
ALTER TABLE memories ADD COLUMN searchable INTEGER NOT NULL DEFAULT 1;  -- 0: found by its key and in lists only
ALTER TABLE memories ADD COLUMN ttl_s REAL;  -- a read that renews sets `expires_at` to so many seconds from then
"""

# A start reads what filters ask from this index alone, also where a page of the table is damaged.
_FILTERED = """
DROP INDEX memories_filter;
CREATE INDEX memories_filter
  ON memories (namespace, type, source, tier, created_at, superseded_by, expires_at, pinned, searchable);
"""

_PARTIAL = """
ALTER TABLE shared_roots ADD COLUMN partial INTEGER NOT NULL DEFAULT 0;  -- 1: the server has memories that are not here
"""

# Which texts are longer than what a model may read, so that a start finds those that were not cut yet.
_LONG = """
CREATE INDEX memories_long ON memories (row) WHERE length(content) > 1000 AND tier <> 'documents';
"""

# Of a move between tiers the history keeps the former tier alone, which a former memoryd cannot read.
_MOVES = "SELECT 1;"

MIGRATIONS: tuple[str, ...] = (
    SCHEMA,
    _SUCCESSION,
    _SPEAKERS,
    _SHARED,
    _CONTEXTS,
    _KEYED,
    _FILTERED,
    _PARTIAL,
    _LONG,
    _MOVES,
    ENTRIES,
)
_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_schema"
    " WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)
_LOOSE_ENDS = (
    'SELECT "table", count(*) FROM pragma_foreign_key_check'
    " WHERE \"table\" NOT IN ('members', 'edges', 'backlog') GROUP BY 1"  # the graph reports its own
)
_DROP_ORDER = ("trigger", "view", "index", "table")  # what others need is dropped last

Name = tuple[str, str]  # type and name


def migrate(connection: apsw.Connection) -> None:
    """Bring the database to the newest schema; refuse one that a newer memoryd wrote."""
    version = read_pragma(connection, "user_version")
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StorageFailed("The database file is not one of memoryd; choose another data directory.")
    if version > len(MIGRATIONS):
        raise StorageFailed(
            f"The database was written by a newer memoryd (schema {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade memoryd or point it to another data directory."
        )
    with connection if version == 0 else nullcontext():  # a new database waits for the disk once
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            with connection:
                connection.execute(script)
                connection.pragma("user_version", number)


# Whether a database has the schema of its version, and nothing else --------------------------------------------------


@cache
def _read_expected(version: int) -> dict[Name, str]:
    with closing(apsw.Connection(":memory:")) as connection:
        for script in MIGRATIONS[:version]:
            connection.execute(script)
        return _read_objects(connection)


def _read_objects(connection: apsw.Connection) -> dict[Name, str]:
    return {(type, name): sql for type, name, sql in connection.execute(_OBJECTS)}


def _compare(connection: apsw.Connection) -> tuple[list[Name], list[Name]]:
    """Return what is in the schema and should not be in that of its version, and what is missing.

    What is another than expected is in both.
    """
    expected, found = _read_expected(read_pragma(connection, "user_version")), _read_objects(connection)
    extra = [name for name, sql in found.items() if expected.get(name) != sql]
    missing = [name for name, sql in expected.items() if found.get(name) != sql]
    return sorted(extra, key=lambda name: _DROP_ORDER.index(name[0])), missing


def find_schema_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each object that is not as memoryd makes it, and each table whose rows refer to none."""
    extra, missing = _compare(connection)
    lines = [f"schema: the {type} {name} is not one of memoryd's" for type, name in extra]
    lines += [f"schema: the {type} {name} is missing" for type, name in missing if (type, name) not in extra]
    found = connection.execute(_LOOSE_ENDS)
    return lines + [f"{table}: {number} rows refer to what does not exist" for table, number in found]


def restore_schema(connection: apsw.Connection) -> list[str]:
    """Drop what does not belong there, make what is missing; return what was dropped. Refuse another table."""
    extra, missing = _compare(connection)
    if tables := [name for type, name in missing if type == "table"]:
        raise StorageFailed(f"The table {tables[0]} is not the one that memoryd makes.")
    for type, name in extra:
        quoted = name.replace('"', '""')
        connection.execute(f'DROP {type} IF EXISTS "{quoted}"')
    for one in missing:
        connection.execute(_read_expected(read_pragma(connection, "user_version"))[one])
    return [f"{type} {name}" for type, name in extra]
