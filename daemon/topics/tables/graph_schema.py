"""The tables of the graph of L2."""

TABLES = """
-- How often searches returned two memories together; `one` < `other`.
CREATE TABLE pairs (
  one INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  other INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  searches INTEGER NOT NULL,
  PRIMARY KEY (one, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX pairs_other ON pairs (other);
-- L2: clusters of memories, their members and relations. All are derived from rows, vectors and pairs.
-- Communities of nodes in one namespace, since their labels are words of its memories.
CREATE TABLE topics (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,   -- that of its medoid, the node nearest to the middle
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  label TEXT NOT NULL          -- empty: no term occurs in half of its memories
) STRICT;
CREATE INDEX topics_namespace ON topics (namespace);
CREATE TABLE nodes (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,   -- id of its medoid, the member nearest to the middle; of a concept `concept-` before it
  namespace INTEGER NOT NULL REFERENCES namespaces (id),
  kind TEXT NOT NULL,          -- cluster, or concept: a node over clusters
  size INTEGER NOT NULL,       -- members, or clusters, when it was made
  label TEXT NOT NULL,         -- empty: no term occurs in half of its members
  named_by TEXT NOT NULL,      -- the language model that gave the label; empty: the rules
  asked INTEGER NOT NULL,      -- 1: a language model was asked for the label
  texts BLOB NOT NULL,         -- hash of its members' texts; the label stays while it is unchanged
  topic INTEGER REFERENCES topics (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX nodes_namespace ON nodes (namespace, kind, size);
CREATE INDEX nodes_topic ON nodes (topic);
CREATE INDEX nodes_unnamed ON nodes (id) WHERE asked = 0 AND size > 1;
CREATE TABLE members (
  memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  node INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX members_node ON members (node);
CREATE TABLE edges (
  origin INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,          -- co_occurs (origin < target), abstracted_from
  weight REAL NOT NULL,
  PRIMARY KEY (origin, target, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_target ON edges (target);
"""
