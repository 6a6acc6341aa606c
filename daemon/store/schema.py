"""The schema: the kernel's tables, indexes and triggers in a database of this version.

For a change, edit the schema, raise `VERSION`, and make `migrations` change databases of `FORMER_VERSION` too. The
tables of a room are in its package `tables`.
"""

from functools import cache

from memoryd.daemon.rooms import list_rooms

VERSION = 23
FORMER_VERSION = 12  # the version that `migrations` changes to this one
# Tables that can be computed from the others, so a rescue does not copy them.
DERIVED = ("edges", "members", "nodes", "topics")

# The chain of successors of `new`; `store/successors.py` describes successors.
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

_KERNEL = f"""
-- Settings of the database as a whole, such as its embedding model.
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

-- Small columns first: filters read them without touching the pages of long texts.
-- AUTOINCREMENT: a row number is never used again, so a RAM index entry can never point to another memory.
CREATE TABLE memories (
  row INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  type TEXT NOT NULL,
  source TEXT NOT NULL,
  tier TEXT NOT NULL,
  importance REAL NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  last_accessed_at REAL,
  access_count INTEGER NOT NULL DEFAULT 0,
  expires_at REAL,
  pinned INTEGER NOT NULL DEFAULT 0,
  superseded_by TEXT,
  path TEXT,
  start_line INTEGER,
  end_line INTEGER,
  turns INTEGER NOT NULL DEFAULT 0,  -- how many observed turns it was made of; 0: it was added
  feedback TEXT NOT NULL DEFAULT '',  -- a JSON list of votes; empty: none
  content_hash BLOB NOT NULL,  -- SHA-256 of the normalised content: equal texts are duplicates
  text_hash BLOB NOT NULL,     -- SHA-256 of the embedded text: finds its vector, whichever model made it
  summary TEXT NOT NULL,
  metadata TEXT NOT NULL,
  neighbours TEXT NOT NULL,    -- short turns before and after it, whose words count a little in searches
  content TEXT NOT NULL,
  key TEXT,                    -- unique in its namespace; NULL: it has none
  searchable INTEGER NOT NULL DEFAULT 1,  -- 0: found by its key and in lists only
  ttl_s REAL,                  -- a read with `renew` sets `expires_at` to this many seconds from then
  origin TEXT NOT NULL DEFAULT 'import',  -- whose words the text is: person, agent, heard, file, import
  confirmed_at REAL            -- when the person confirmed the present text
) STRICT;
CREATE INDEX memories_duplicates ON memories (content_hash, namespace);   -- exact duplicate check of every add
CREATE INDEX memories_created ON memories (created_at);                   -- list, after/before
-- Has all columns that counts and the filters of a search commonly need, so that they do not read the rows. A start of
-- the daemon reads this index alone, and works even if a page of the table is damaged.
CREATE INDEX memories_filter
  ON memories (namespace, type, source, tier, created_at, superseded_by, expires_at, pinned, searchable);
CREATE INDEX memories_text ON memories (text_hash);                       -- which memories use a cached vector
CREATE INDEX memories_path ON memories (path) WHERE path IS NOT NULL;     -- path prefixes
CREATE INDEX memories_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_turns ON memories (namespace, turns) WHERE turns > 0;  -- the count of promoted turns
CREATE INDEX memories_standing ON memories (created_at) WHERE pinned OR type = 'correction';  -- in every context
CREATE INDEX memories_rated ON memories (row) WHERE feedback <> '';       -- at the start: the few with feedback
-- Memories of L1 by their last use: all that the sweep and the caps need.
CREATE INDEX memories_recent ON memories (namespace, updated_at, last_accessed_at) WHERE tier = 'L1';
-- Finds the answers to a turn.
CREATE INDEX memories_answers ON memories (json_extract(metadata, '$.answers')) WHERE turns = 1;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE UNIQUE INDEX memories_key ON memories (namespace, key) WHERE key IS NOT NULL;
-- Texts that may be longer than a model's window, so that a start finds those that have no parts yet.
CREATE INDEX memories_long ON memories (row) WHERE length(content) > 1000 AND tier <> 'documents';

-- Deleted memories that superseded others or were superseded: a memory stays superseded while any successor is alive.
CREATE TABLE deleted_successors (
  id TEXT PRIMARY KEY,
  row INTEGER NOT NULL,        -- its former number in `memories`
  superseded_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX deleted_successors_row ON deleted_successors (row);
CREATE INDEX deleted_successors_superseded ON deleted_successors (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TRIGGER successor_deleted AFTER DELETE ON memories
WHEN old.superseded_by IS NOT NULL OR EXISTS (SELECT 1 FROM memories WHERE superseded_by = old.id)
  OR EXISTS (SELECT 1 FROM deleted_successors WHERE superseded_by = old.id)
BEGIN
  INSERT OR REPLACE INTO deleted_successors VALUES (old.id, old.row, old.superseded_by);
END;
CREATE TRIGGER successor_restored AFTER INSERT ON memories BEGIN
  DELETE FROM deleted_successors WHERE id = new.id;
END;
-- In a circle each memory would hide another; therefore the latest successor is not superseded itself.
CREATE TRIGGER superseded_circle AFTER UPDATE OF superseded_by ON memories {_BREAK_CIRCLE}
CREATE TRIGGER superseded_circle_added AFTER INSERT ON memories {_BREAK_CIRCLE}

CREATE VIRTUAL TABLE memories_fts USING fts5 (
  content, metadata, neighbours,
  content = 'memories', content_rowid = 'row', tokenize = 'porter unicode61'
);
CREATE VIRTUAL TABLE memories_terms USING fts5vocab (memories_fts, row);  -- in how many memories a term occurs
-- Each occurrence of a term, to count those within one caller's reach.
CREATE VIRTUAL TABLE memories_places USING fts5vocab (memories_fts, instance);
-- Triggers update full text whatever statement changes a row.
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
  INSERT INTO memories_fts (rowid, content, metadata, neighbours)
  VALUES (new.row, new.content, new.metadata, new.neighbours);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
  INSERT INTO memories_fts (memories_fts, rowid, content, metadata, neighbours)
  VALUES ('delete', old.row, old.content, old.metadata, old.neighbours);
END;
CREATE TRIGGER memories_changed AFTER UPDATE OF content, metadata, neighbours ON memories BEGIN
  INSERT INTO memories_fts (memories_fts, rowid, content, metadata, neighbours)
  VALUES ('delete', old.row, old.content, old.metadata, old.neighbours);
  INSERT INTO memories_fts (rowid, content, metadata, neighbours)
  VALUES (new.row, new.content, new.metadata, new.neighbours);
END;

CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  fingerprint TEXT NOT NULL UNIQUE,  -- of all that determines the vectors: weights, pooling, prefixes
  dimensions INTEGER NOT NULL
) STRICT;
-- The durable vectors, and the cache of embeddings: a text is embedded once per model. float32 in sqlite-vec's format,
-- so that its functions (vec_distance_cosine, vec_length) work in any SQLite shell that loads the extension.
-- AUTOINCREMENT: the RAM index remembers these numbers.
CREATE TABLE vec_embeddings (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
  text_hash BLOB NOT NULL,
  vector BLOB NOT NULL,
  UNIQUE (model, text_hash)
) STRICT;
-- A memory's text within its context, by which searches find it too; derived. Most memories have none.
CREATE TABLE contexts (
  memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  search_hash BLOB NOT NULL,   -- key of the vector that searches use once it is computed
  content TEXT NOT NULL        -- the embedded text: the memory's own between its neighbours
) STRICT;
CREATE INDEX contexts_search ON contexts (search_hash);  -- which contexts use a cached vector
CREATE TRIGGER contexts_outdated AFTER UPDATE OF text_hash ON memories WHEN old.text_hash <> new.text_hash BEGIN
  DELETE FROM contexts WHERE memory = new.row;
END;
-- The parts of a text longer than the model's window that have vectors of their own, without the first. Derived.
CREATE TABLE parts (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  start INTEGER NOT NULL,      -- in its content, in characters
  size INTEGER NOT NULL,
  text_hash BLOB NOT NULL,
  PRIMARY KEY (memory, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_text ON parts (text_hash);
CREATE TRIGGER parts_outdated AFTER UPDATE OF text_hash ON memories WHEN old.text_hash <> new.text_hash BEGIN
  DELETE FROM parts WHERE memory = new.row;
END;

CREATE TABLE links (
  origin TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
  target TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (origin, target, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_target ON links (target);  -- links are shown from both ends

-- Later statements that change a saved memory, and where in their text; without references, because a turn becomes a
-- memory, and either may be deleted and restored.
CREATE TABLE later (
  memory TEXT NOT NULL,
  later TEXT NOT NULL,         -- a memory or a turn
  start INTEGER NOT NULL,      -- of the part that states the change, in characters
  size INTEGER NOT NULL,
  sure REAL NOT NULL,
  verdict TEXT NOT NULL DEFAULT '',  -- empty: open; both: both hold
  PRIMARY KEY (memory, later)
) STRICT, WITHOUT ROWID;
CREATE INDEX later_statement ON later (later);
CREATE TRIGGER later_edited AFTER UPDATE OF content ON memories WHEN old.content <> new.content BEGIN
  DELETE FROM later WHERE memory = new.id OR later = new.id;
END;

CREATE TABLE operations (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order; clients never see it, since it reveals how much others write
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  at REAL NOT NULL,
  namespace TEXT NOT NULL,
  memories INTEGER NOT NULL DEFAULT 0,
  undone_by INTEGER REFERENCES operations (number),
  token TEXT NOT NULL DEFAULT '',    -- the caller: name of its token, its session, its process; empty: the daemon
  session TEXT NOT NULL DEFAULT '',
  process TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX operations_undone ON operations (undone_by) WHERE undone_by IS NOT NULL;  -- for the trimming
CREATE TABLE history (
  id INTEGER PRIMARY KEY,            -- the order of changes: a job's operation overlaps those of callers
  operation INTEGER NOT NULL REFERENCES operations (number) ON DELETE CASCADE,
  memory TEXT NOT NULL,
  namespace TEXT NOT NULL,           -- of the memory, so that reach also limits the history of deleted memories
  text_hash BLOB,                    -- of the row before, whose vector is kept as long as the operation can be undone
  before TEXT,                       -- the row before the operation, as JSON; NULL: it did not exist
  UNIQUE (operation, memory)
) STRICT;
CREATE INDEX history_memory ON history (memory, id);
CREATE INDEX history_text ON history (text_hash) WHERE text_hash IS NOT NULL;

-- L0: the observed turns. A promoted turn keeps its key as the memory's id.
CREATE TABLE turns (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  session TEXT NOT NULL,
  role TEXT NOT NULL,
  importance REAL NOT NULL,
  source TEXT NOT NULL,        -- conversation, or recall: the result of a search, which is never promoted
  created_at REAL NOT NULL,
  answers TEXT,                -- key of the other speaker's turn that it replies to
  content_hash BLOB NOT NULL,  -- as in memories
  previous TEXT NOT NULL,      -- the turn before it, if short
  content TEXT NOT NULL,
  speaker TEXT NOT NULL DEFAULT '',
  files TEXT NOT NULL DEFAULT ''  -- paths of the files that it is about, one per line
) STRICT;
CREATE INDEX turns_ring ON turns (namespace, id);
-- The extraction queue: tasks for turns. A turn is named by its key, which is also the id of the memory it becomes.
CREATE TABLE extraction (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order in which they came
  turn TEXT NOT NULL,
  task TEXT NOT NULL,          -- of the turn: rate, embed, compare, condense; of its conversation: extract, summary
  namespace INTEGER REFERENCES namespaces (id),  -- of the conversation; NULL: the task is for the turn alone
  session TEXT,
  queued_at REAL,
  due_at REAL,                 -- a conversation is processed as a whole, at the latest of these times
  attempts INTEGER NOT NULL DEFAULT 0,  -- failures in a row
  UNIQUE (turn, task)
) STRICT;
CREATE INDEX extraction_task ON extraction (task, namespace, session, due_at, attempts, queued_at);
-- Observed turns that were not kept, with the reason; the oldest are removed beyond a limit.
CREATE TABLE skipped (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  session TEXT NOT NULL,
  role TEXT NOT NULL,
  content TEXT NOT NULL,       -- its beginning
  reason TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
CREATE INDEX skipped_list ON skipped (namespace, id);
-- The account of all turns that were ever observed: each is in L0, in `memories.turns`, or counted here as skipped,
-- dropped, or gone with a memory. `gone` is, by the kind of operation, how many it removed less how many it restored.
CREATE TABLE flows (
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  kind TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (namespace, kind)
) STRICT, WITHOUT ROWID;
-- Triggers keep the account right whatever statement changes a memory. A change is recorded in the history just before
-- it is made, so the latest record names the operation.
CREATE VIEW latest_change AS
  SELECT coalesce(
    (SELECT o.kind FROM history h JOIN operations o ON o.number = h.operation ORDER BY h.id DESC LIMIT 1), '?')
    AS kind;
CREATE TRIGGER turns_gone AFTER DELETE ON memories WHEN old.turns > 0 BEGIN
  INSERT INTO flows SELECT old.namespace, 'gone: ' || kind, old.turns FROM latest_change WHERE TRUE
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER turns_back AFTER INSERT ON memories WHEN new.turns > 0 BEGIN
  INSERT INTO flows SELECT new.namespace, 'gone: ' || kind, -new.turns FROM latest_change WHERE TRUE
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER turns_moved AFTER UPDATE OF turns, namespace ON memories
  WHEN (old.turns > 0 OR new.turns > 0) AND (old.turns, old.namespace) <> (new.turns, new.namespace) BEGIN
  INSERT INTO flows SELECT old.namespace, 'gone: ' || kind, old.turns FROM latest_change WHERE TRUE
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
  INSERT INTO flows SELECT new.namespace, 'gone: ' || kind, -new.turns FROM latest_change WHERE TRUE
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

-- The jobs' state, and their runs.
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  paused INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,      -- in a row
  not_before REAL,                          -- the end of a back-off or quarantine
  last_run_at REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL,
  started_at REAL NOT NULL,
  took_ms REAL NOT NULL,
  by TEXT NOT NULL,            -- scheduler or hand
  outcome TEXT NOT NULL,       -- running, done, failed, interrupted
  counts TEXT NOT NULL,        -- a JSON object
  operation INTEGER,
  error TEXT NOT NULL
) STRICT;
CREATE INDEX runs_job ON runs (job, id);

-- Adds with an idempotency key, for 90 days: the same call again does nothing.
CREATE TABLE applied (
  key TEXT NOT NULL,
  token TEXT NOT NULL,         -- name of the caller's token, empty for the owner
  id TEXT NOT NULL,            -- of the new memory, or of the one it was merged into; it may be deleted since
  namespace TEXT NOT NULL,
  outcome TEXT NOT NULL,
  operation TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (key, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX applied_at ON applied (at);

-- What places of shared roots have taken from here in the last 24 hours.
CREATE TABLE sent (
  key TEXT PRIMARY KEY,        -- of the add
  root TEXT NOT NULL,
  memory TEXT NOT NULL,        -- its id there
  operation TEXT NOT NULL,     -- that of the add there
  said TEXT NOT NULL,          -- as `history.before`
  supersedes TEXT NOT NULL,    -- ids, as JSON
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sent_memory ON sent (memory);

-- The tokens; only their hashes are stored.
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  hash BLOB NOT NULL UNIQUE,   -- SHA-256
  namespace TEXT NOT NULL,
  role TEXT NOT NULL,          -- reader, agent or lead
  created_at REAL NOT NULL,
  last_used_at REAL
) STRICT;

-- Where observing is paused.
CREATE TABLE pauses (
  kind TEXT NOT NULL,          -- session, namespace, folder
  name TEXT NOT NULL,
  since REAL NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
"""


@cache
def build_schema() -> str:
    """Return the statements that create a new database: the kernel's tables and those of each room."""
    return "\n".join([_KERNEL, *(room.tables for room in list_rooms())])


def main() -> None:
    """Print the schema: the kernel's tables, then those of each room."""
    print(f"-- Schema {VERSION} of memoryd\n{build_schema().strip()}")


if __name__ == "__main__":
    main()
