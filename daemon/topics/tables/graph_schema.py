"""The tables of the graph of L2."""

TABLES = """
-- L2: topic clusters, their members and their relations. All derived: it can be built anew from rows and vectors.
CREATE TABLE nodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,  -- centroids are in its space
  kind TEXT NOT NULL,          -- cluster, or concept: a node over clusters
  label TEXT NOT NULL,
  topic INTEGER,               -- its community; 0: it belongs to none; NULL: it is newer than the topics
  size INTEGER NOT NULL,       -- of how many members the centroid is the mean
  settled INTEGER NOT NULL DEFAULT 0,  -- 0: changed since maintenance compared it with the others
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  named_by TEXT NOT NULL DEFAULT '',  -- the language model that gave the label; empty: the rules
  named_of BLOB,               -- hash of the members that a model was asked about; NULL: it was not, since they changed
  centroid BLOB NOT NULL       -- float32: the running mean of its members' unit vectors, itself not of unit length
) STRICT;
CREATE INDEX nodes_namespace ON nodes (namespace, kind, topic, size);        -- lists, counts
-- What maintenance has to look at: nodes that changed, nodes that are newer than the topics.
CREATE INDEX nodes_unsettled ON nodes (namespace) WHERE settled = 0 AND kind = 'cluster';
CREATE INDEX nodes_unnamed ON nodes (id) WHERE named_of IS NULL AND settled = 1 AND size > 1;
CREATE INDEX nodes_ungrouped ON nodes (namespace) WHERE topic IS NULL AND kind = 'cluster';
CREATE TABLE members (
  memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  node INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX members_node ON members (node);
-- The L2 memories without a row in `members`, so that maintenance finds them without reading all.
CREATE TABLE backlog (memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE) STRICT;
CREATE TRIGGER backlog_added AFTER INSERT ON memories WHEN new.tier = 'L2' BEGIN
  INSERT OR IGNORE INTO backlog VALUES (new.row);
END;
-- A memory that is not the same any more leaves its node and is clustered again.
CREATE TRIGGER backlog_changed AFTER UPDATE OF tier, namespace, text_hash ON memories
WHEN 'L2' IN (old.tier, new.tier)
  AND (old.tier, old.namespace, old.text_hash) IS NOT (new.tier, new.namespace, new.text_hash)
BEGIN
  DELETE FROM members WHERE memory = new.row;
  DELETE FROM backlog WHERE memory = new.row AND new.tier <> 'L2';
  INSERT OR IGNORE INTO backlog SELECT new.row WHERE new.tier = 'L2';
END;
CREATE TRIGGER members_added AFTER INSERT ON members BEGIN
  DELETE FROM backlog WHERE memory = new.memory;
END;
CREATE TRIGGER members_removed AFTER DELETE ON members BEGIN
  UPDATE nodes SET settled = 0 WHERE id = old.node;
  INSERT OR IGNORE INTO backlog SELECT row FROM memories WHERE row = old.memory AND tier = 'L2';
  -- A label may say what a deleted memory said.
  DELETE FROM names WHERE node = old.node AND NOT EXISTS (SELECT 1 FROM memories WHERE row = old.memory);
END;
-- What a language model called a set of members, so that it is asked once. Not of the node: that may be made anew.
CREATE TABLE names (
  members BLOB PRIMARY KEY,    -- SHA-256 of the namespace and the hashes of their texts
  node INTEGER NOT NULL,       -- that had them last
  label TEXT NOT NULL,         -- empty, as is named_by: the answer could not be used
  named_by TEXT NOT NULL,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX names_node ON names (node);
-- Communities of nodes; of one namespace each, as their labels are words of its memories.
CREATE TABLE topics (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  label TEXT NOT NULL
) STRICT;
CREATE TABLE edges (
  origin INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,          -- co_occurs (origin < target), derived_from, abstracted_from
  weight REAL NOT NULL,
  PRIMARY KEY (origin, target, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_target ON edges (target);
"""
