"""Tables and triggers of what is shared with other machines.

A memory is shared if and only if it has an entry. Triggers make it, and note what changes, whatever statement does it;
they belong to the schema, so that no repair loses them. On a machine that shares nothing they look at one empty table.
"""

# Whether a memory `new` may leave this machine through the root `r`.
MAY_LEAVE = """
  new.tier <> 'documents' AND (
    r.conversations
    OR (new.turns = 0 AND new.source NOT IN ('extraction', 'session_summary') AND new.metadata ->> '$.turns' IS NULL)
    OR EXISTS (SELECT 1 FROM shared_by_name b WHERE b.memory = new.id)
    OR EXISTS (SELECT 1 FROM links l WHERE l.origin = new.id AND l.kind = 'shared_from'))
"""
NEXT_CHANGE = "(SELECT coalesce(max(dirty), 0) + 1 FROM shared_entries WHERE dirty IS NOT NULL)"
# Its id there: its own, unless a memory that left has it there.
_NEW_ID = (
    "iif(EXISTS (SELECT 1 FROM shared_entries e WHERE e.root = r.id AND e.id = new.id),"
    " lower(hex(randomblob(16))), new.id)"
)
_ROOT_OF_NEW = "(SELECT root FROM shared_namespaces WHERE namespace = new.namespace)"
_NOTICED = "WHEN EXISTS (SELECT 1 FROM shared_roots) AND NOT EXISTS (SELECT 1 FROM shared_unnoticed)"
READ_ONLY = "this machine may only read the shared root"  # what the triggers refuse a change with
_REFUSE = f"""
  SELECT RAISE(ABORT, '{READ_ONLY}')
    FROM shared_entries e JOIN shared_roots r ON r.id = e.root WHERE e.memory = {{}}.id AND NOT r.writable;
"""
# A memory leaves what is shared (its entry stays without it, to be deleted there), changes, or comes in.
_NOTE_NEW = f"""
  DELETE FROM shared_entries
    WHERE memory = new.id AND root IS NOT {_ROOT_OF_NEW} AND tag = '' AND offered = '[]' AND seq = 0;
  UPDATE shared_entries SET memory = NULL, deleted = 1, dirty = {NEXT_CHANGE}
    WHERE memory = new.id AND root IS NOT {_ROOT_OF_NEW};
  UPDATE shared_entries SET dirty = {NEXT_CHANGE}, deleted = 0 WHERE memory = new.id;
  INSERT INTO shared_entries (root, id, memory, dirty)
    SELECT r.id,
      {_NEW_ID},
      new.id, {NEXT_CHANGE}
    FROM shared_roots r WHERE r.id = {_ROOT_OF_NEW} AND {MAY_LEAVE}
      AND NOT EXISTS (SELECT 1 FROM shared_entries e WHERE e.memory = new.id);
"""
# Who puts under the key of a memory that is not here any more changes that one.
_TAKE_OVER = f"""
  UPDATE shared_entries SET memory = new.id, dirty = {NEXT_CHANGE}, deleted = 0 WHERE (root, id) = (
    SELECT e.root, e.id FROM shared_entries e
    WHERE new.key IS NOT NULL AND e.key = new.key AND e.namespace = new.namespace AND NOT e.purged
      AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.memory)
      AND NOT EXISTS (SELECT 1 FROM shared_entries o WHERE o.memory = new.id)
    ORDER BY e.seq DESC LIMIT 1
  );
"""
_COLUMNS = (
    "namespace, key, type, source, importance, expires_at, pinned, superseded_by, turns, feedback, summary,"
    " metadata, content"
)
# Gives entries to what is in the chosen namespaces of the root ?1, oldest first.
ADOPT = f"""
INSERT INTO shared_entries (root, id, memory, dirty)
  SELECT r.id, {_NEW_ID}, new.id, {NEXT_CHANGE} + row_number() OVER (ORDER BY new.row)
  FROM memories new JOIN shared_namespaces n ON n.namespace = new.namespace JOIN shared_roots r ON r.id = n.root
  WHERE r.id = ?1 AND {MAY_LEAVE} AND NOT EXISTS (SELECT 1 FROM shared_entries e WHERE e.memory = new.id)
"""
TRIGGERS = frozenset({"shared_added", "shared_changed", "shared_deleted", "shared_left"})
ROOTS = """
CREATE TABLE shared_roots (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,       -- a first-level namespace
  server TEXT NOT NULL,            -- connection string, never with a password
  passfile TEXT NOT NULL,
  conversations INTEGER NOT NULL,  -- 1: turns and what was derived from them are shared as well
  confirmed INTEGER NOT NULL DEFAULT 1,  -- 0: it came with a restored copy, and nobody has said that it is wanted here
  writable INTEGER NOT NULL DEFAULT 1,   -- 0: the role of this machine may only read it
  cursor INTEGER NOT NULL DEFAULT 0,     -- how far the server's feed was read
  mark INTEGER NOT NULL DEFAULT 0,       -- the highest number that the server was seen to have
  lives TEXT NOT NULL DEFAULT '[]',      -- its timelines as it told them: a JSON list of [life, first number]
  partial INTEGER NOT NULL DEFAULT 0,    -- 1: the server has memories that are not here
  added_at REAL NOT NULL
) STRICT;
"""
NAMESPACES = """
-- What of a root is shared: the namespaces that a person chose.
CREATE TABLE shared_namespaces (
  namespace INTEGER PRIMARY KEY REFERENCES namespaces (id),
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE
) STRICT;
"""
ENTRIES = f"""
CREATE TABLE shared_entries (
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE,
  id TEXT NOT NULL,                -- of the memory on the server
  memory TEXT,                     -- its id here, also once it is deleted here; NULL: it left what is shared
  tag TEXT NOT NULL DEFAULT '',    -- the version that the server is known to have; empty: none yet
  seq INTEGER NOT NULL DEFAULT 0,  -- the number of that version
  dirty INTEGER,                   -- the latest change here that the server does not have, in the order of changes
  offered TEXT NOT NULL DEFAULT '[]',  -- tags of versions that were offered since and not answered: a JSON list
  offered_dirty INTEGER,           -- the change that the last of them holds
  conflict_of TEXT,                -- id there of the memory whose other version this is
  purged INTEGER NOT NULL DEFAULT 0,   -- 1: erased everywhere, for good
  deleted INTEGER NOT NULL DEFAULT 0,  -- 1: deleted; a memory that is neither here nor deleted is on the server alone
  lost_life TEXT,                  -- the timeline of a version that the server lost, to be offered again,
  lost_point INTEGER,              -- and the number up to which that timeline is the server's
  namespace INTEGER, key TEXT,     -- of a memory that is not here any more: who takes the key again continues it
  device TEXT NOT NULL DEFAULT '', -- which machine changed it last, empty for this one, and its role
  author TEXT NOT NULL DEFAULT '',
  further TEXT NOT NULL DEFAULT '{{}}',  -- fields of a newer memoryd, a JSON object
  PRIMARY KEY (root, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX shared_entries_memory ON shared_entries (memory) WHERE memory IS NOT NULL;
CREATE INDEX shared_entries_dirty ON shared_entries (dirty) WHERE dirty IS NOT NULL;
CREATE INDEX shared_entries_lost ON shared_entries (root, seq) WHERE lost_life IS NOT NULL;
CREATE INDEX shared_entries_seq ON shared_entries (root, seq);  -- what a server lost
CREATE INDEX shared_entries_conflicts ON shared_entries (root, conflict_of) WHERE conflict_of IS NOT NULL;
CREATE INDEX shared_entries_keys ON shared_entries (key, namespace) WHERE key IS NOT NULL;
-- What could not be exchanged, with the reason: until it changes, here or there.
CREATE TABLE shared_stuck (
  root INTEGER NOT NULL REFERENCES shared_roots (id) ON DELETE CASCADE,
  id TEXT NOT NULL,                -- there
  direction TEXT NOT NULL,         -- out, in
  dirty INTEGER NOT NULL,          -- the change here that was refused; 0 for what came in
  reason TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (root, id, direction)
) STRICT, WITHOUT ROWID;
-- Has a row only within a transaction that changes this machine's copy alone.
CREATE TABLE shared_unnoticed (one INTEGER PRIMARY KEY) STRICT;
CREATE TRIGGER shared_added AFTER INSERT ON memories {_NOTICED} BEGIN
  {_TAKE_OVER} {_NOTE_NEW} {_REFUSE.format("new")}
END;
CREATE TRIGGER shared_changed AFTER UPDATE OF {_COLUMNS} ON memories {_NOTICED} BEGIN
  {_REFUSE.format("old")} {_NOTE_NEW} {_REFUSE.format("new")}
END;
CREATE TRIGGER shared_deleted AFTER DELETE ON memories {_NOTICED} BEGIN
  {_REFUSE.format("old")}
  DELETE FROM shared_entries WHERE memory = old.id AND tag = '' AND offered = '[]' AND seq = 0;
  UPDATE shared_entries SET deleted = 1, dirty = {NEXT_CHANGE} WHERE memory = old.id;
END;
CREATE TRIGGER shared_left AFTER DELETE ON memories WHEN EXISTS (SELECT 1 FROM shared_roots) BEGIN
  UPDATE shared_entries SET namespace = old.namespace, key = old.key WHERE memory = old.id;
END;
"""
_BY_NAME = """
-- Memories of conversations that somebody shared by name.
CREATE TABLE shared_by_name (memory TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""
TABLES = ROOTS + NAMESPACES + ENTRIES + _BY_NAME
