"""The tables `workspaces`, `files` and `mentions`, and queries for the chunks of files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store import queries
from memoryd.daemon.store.tiers import DOCUMENTS

TABLES = """
-- Folders of Markdown files that are indexed and watched. The files are authoritative; their chunks are derived, in
-- `memories` (tier documents), with the path of the file.
CREATE TABLE workspaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL UNIQUE,
  root TEXT NOT NULL UNIQUE,     -- absolute, symlinks resolved
  globs TEXT NOT NULL,           -- a JSON list of patterns, relative to the root
  device INTEGER NOT NULL,       -- the file system when it last had files: if it has none on another file system, its
                                 -- disk is not mounted
  created_at REAL NOT NULL
) STRICT;
CREATE TABLE files (
  id INTEGER PRIMARY KEY,
  workspace INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  path TEXT NOT NULL,            -- relative to the root
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,     -- a file whose size and time have not changed is not read again
  hash BLOB NOT NULL,            -- SHA-256 of its bytes
  indexed_at REAL NOT NULL,
  problem TEXT,                  -- why it is not, or not completely, indexed
  UNIQUE (workspace, path)
) STRICT;
-- Names to which a chunk refers as [[name]]; resolved when the chunk is shown, because files may be added or deleted.
CREATE TABLE mentions (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  name TEXT NOT NULL,            -- lower case, without .md
  PRIMARY KEY (name, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_memory ON mentions (memory);
"""
_PATH = "(SELECT rtrim(w.root, '/') || '/' FROM workspaces w WHERE w.id = files.workspace) || files.path"  # absolute


class StoredWorkspace(NamedTuple):
    """A folder of Markdown files: `root` is absolute with symlinks resolved, `globs` are relative to it."""

    id: int
    namespace: str
    root: Path
    globs: tuple[str, ...]


class Stat(NamedTuple):
    """The stored state of a file; if its size and time have not changed, it is not read again."""

    size: int
    mtime_ns: int
    hash: bytes
    indexed_at: float
    problem: str | None


class Sums(NamedTuple):
    """Numbers of indexed files and chunks of a workspace, and when one of its files was last read."""

    files: int
    chunks: int
    indexed_at: float | None


_SELECT = "SELECT id, namespace, root, globs FROM workspaces"


def _read_workspace(values: Any) -> StoredWorkspace:
    number, namespace, root, globs = values
    return StoredWorkspace(number, namespace, Path(root), tuple(json.loads(globs)))


def list_all(connection: apsw.Connection) -> list[StoredWorkspace]:
    """Return all workspaces, by namespace."""
    return [_read_workspace(found) for found in connection.execute(f"{_SELECT} ORDER BY namespace")]


def read_workspace(connection: apsw.Connection, number: int) -> StoredWorkspace | None:
    """Return a workspace that exists."""
    row = connection.execute(f"{_SELECT} WHERE id = ?", (number,)).fetchone()
    return _read_workspace(row) if row else None


def read_created_at(connection: apsw.Connection, number: int) -> float:
    """Return when a workspace was added."""
    return float(connection.execute("SELECT created_at FROM workspaces WHERE id = ?", (number,)).get or 0.0)


def read_device(connection: apsw.Connection, number: int) -> int | None:
    """Return the file system of a workspace when it last had files."""
    row: Any = connection.execute("SELECT device FROM workspaces WHERE id = ?", (number,)).get
    return None if row is None else int(row)


def set_device(connection: apsw.Connection, number: int, value: int) -> None:
    """Store the file system of a workspace."""
    connection.execute("UPDATE workspaces SET device = ? WHERE id = ?", (value, number))


def insert(
    connection: apsw.Connection, namespace: str, root: Path, globs: Iterable[str], device: int, now: float
) -> int:
    """Insert a workspace and return its number."""
    sql = "INSERT INTO workspaces (namespace, root, globs, device, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id"
    return int(connection.execute(sql, (namespace, str(root), json.dumps(list(globs)), device, now)).get)


def set_globs(connection: apsw.Connection, number: int, globs: Iterable[str]) -> None:
    """Change the patterns of a workspace."""
    connection.execute("UPDATE workspaces SET globs = ? WHERE id = ?", (json.dumps(list(globs)), number))


def delete(connection: apsw.Connection, number: int) -> None:
    """Delete a workspace with its files; the chunks are deleted by `indexing.sweep`."""
    connection.execute("DELETE FROM workspaces WHERE id = ?", (number,))


# Files ---------------------------------------------------------------------------------------------------------------


def stats(connection: apsw.Connection, number: int) -> dict[str, Stat]:
    """Return the stored state of each file of a workspace, by path."""
    sql = "SELECT path, size, mtime_ns, hash, indexed_at, problem FROM files WHERE workspace = ?"
    return {path: Stat(*rest) for path, *rest in connection.execute(sql, (number,))}


def read_stat(connection: apsw.Connection, number: int, path: str) -> Stat | None:
    """Return the stored state of one file."""
    sql = "SELECT size, mtime_ns, hash, indexed_at, problem FROM files WHERE workspace = ? AND path = ?"
    row: Any = connection.execute(sql, (number, path)).fetchone()
    return Stat(*row) if row else None


def put_file(connection: apsw.Connection, number: int, path: str, kept: Stat) -> None:
    """Store the state of a file."""
    connection.execute(
        "INSERT INTO files (workspace, path, size, mtime_ns, hash, indexed_at, problem) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (workspace, path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,"
        " hash = excluded.hash, indexed_at = excluded.indexed_at, problem = excluded.problem",
        (number, path, *kept),
    )


def drop_file(connection: apsw.Connection, number: int, path: str) -> bool:
    """Delete the state of a file; return whether there was one."""
    connection.execute("DELETE FROM files WHERE workspace = ? AND path = ?", (number, path))
    return connection.changes() > 0


def forget_files(connection: apsw.Connection, ids: Iterable[str], rows: Iterable[int]) -> None:
    """Delete the state of files whose chunks are about to be erased, so that existing files are read again."""
    paths = f"SELECT path FROM memories WHERE row IN ({', '.join(map(str, rows))}) AND tier = {DOCUMENTS!r}"
    if connection.execute(paths).fetchone():
        connection.execute(f"DELETE FROM files WHERE {_PATH} IN ({paths})")


def read_again(connection: apsw.Connection) -> None:
    """Make the next pass read every file again, because chunks may be lost."""
    connection.execute("UPDATE files SET hash = x''")


def read_problems(connection: apsw.Connection, number: int) -> dict[str, str]:
    """Return the problems of files, by path."""
    sql = "SELECT path, problem FROM files WHERE workspace = ? AND problem IS NOT NULL ORDER BY path"
    return dict(connection.execute(sql, (number,)))


# Chunks --------------------------------------------------------------------------------------------------------------


def find_rows(connection: apsw.Connection, path: str) -> list[int]:
    """Return the rows of the chunks of a file, by its absolute path."""
    sql = f"SELECT row FROM memories WHERE path = ? AND tier = {DOCUMENTS!r} ORDER BY start_line, row"
    return [row for (row,) in connection.execute(sql, (path,))]


def set_times(connection: apsw.Connection, path: str, at: float) -> None:
    """Set the time of change of a file's chunks, and their time of creation if it is the same."""
    made = "created_at = CASE WHEN created_at = updated_at THEN ?2 ELSE created_at END"
    sql = f"UPDATE memories SET {made}, updated_at = ?2 WHERE path = ?1 AND tier = {DOCUMENTS!r}"
    connection.execute(sql, (path, at))


def count_chunks(connection: apsw.Connection, paths: Iterable[str]) -> dict[str, int]:
    """Return the number of chunks of files, by path; files without chunks are left out."""
    sql = (
        f"SELECT path, count(*) FROM memories WHERE path IN (SELECT value FROM json_each(?)) AND tier = {DOCUMENTS!r}"
        " GROUP BY path"
    )
    return dict(connection.execute(sql, (json.dumps(list(paths)),)))


def path_bounds(root: Path) -> tuple[str, str]:
    """Return the bounds (from, below) of the paths inside a folder."""
    start = str(root).rstrip("/")
    return f"{start}/", f"{start}0"  # '0' sorts just after '/'


def count_indexed(connection: apsw.Connection, workspace: StoredWorkspace) -> Sums:
    """Return how much of a workspace is indexed."""
    sql = f"SELECT count(*) FROM memories WHERE path >= ? AND path < ? AND tier = {DOCUMENTS!r}"
    chunks: Any = connection.execute(sql, path_bounds(workspace.root)).get
    of_files = "SELECT count(*), max(indexed_at) FROM files WHERE workspace = ?"
    files, indexed_at = connection.execute(of_files, (workspace.id,)).get
    return Sums(files, chunks, indexed_at)


def count_chunks_without_vector(connection: apsw.Connection, workspace: StoredWorkspace, model: int) -> int:
    """Return how many chunks of a workspace have no vector of a model."""
    chunks = f"m.path >= ? AND m.path < ? AND m.tier = {DOCUMENTS!r}"
    return queries.count_without_vector(connection, chunks, model, path_bounds(workspace.root))


def find_orphans(connection: apsw.Connection, among: Iterable[int] | None = None) -> list[int]:
    """Return the rows of chunks whose file belongs to no workspace; if `among` is given, only of these rows."""
    chosen = "TRUE" if among is None else f"m.row IN ({', '.join(map(str, among))})"
    found: Any = connection.execute(
        f"SELECT m.row FROM memories m WHERE m.path IS NOT NULL AND m.tier = {DOCUMENTS!r} AND {chosen} AND NOT EXISTS"
        " (SELECT 1 FROM workspaces w JOIN files f ON f.workspace = w.id"
        " AND f.path = substr(m.path, length(rtrim(w.root, '/')) + 2)"
        " WHERE m.path >= rtrim(w.root, '/') || '/' AND m.path < rtrim(w.root, '/') || '0')"
    )
    return [row for (row,) in found]


# Mentions ------------------------------------------------------------------------------------------------------------


def mention(connection: apsw.Connection, row: int, names: Iterable[str]) -> None:
    """Record which names a chunk refers to."""
    connection.executemany("INSERT OR IGNORE INTO mentions (memory, name) VALUES (?, ?)", ((row, n) for n in names))


def read_mentioned(connection: apsw.Connection, rows: Iterable[int]) -> dict[int, set[str]]:
    """Return the names that chunks refer to."""
    names: dict[int, set[str]] = {}
    sql = f"SELECT memory, name FROM mentions WHERE memory IN ({', '.join(map(str, rows))})"
    for row, name in connection.execute(sql):
        names.setdefault(row, set()).add(name)
    return names


def unmention(connection: apsw.Connection, row: int) -> None:
    """Forget which names a chunk refers to."""
    connection.execute("DELETE FROM mentions WHERE memory = ?", (row,))


def find_holding(connection: apsw.Connection, path: str) -> StoredWorkspace | None:
    """Return the workspace that contains an absolute path."""
    return next((found for found in list_all(connection) if path.startswith(path_bounds(found.root)[0])), None)


def list_paths(connection: apsw.Connection, workspace: StoredWorkspace) -> list[str]:
    """Return the absolute paths of the files of a workspace."""
    start = path_bounds(workspace.root)[0]
    found: Any = connection.execute("SELECT path FROM files WHERE workspace = ? ORDER BY path", (workspace.id,))
    return [start + path for (path,) in found]


def can_see(connection: apsw.Connection, path: str, reached: str) -> bool:
    """Return whether a chunk of a file is in the `reached` namespaces (an SQL condition on `m`)."""
    sql = f"SELECT 1 FROM memories m WHERE m.path = ? AND m.tier = {DOCUMENTS!r} AND {reached} LIMIT 1"
    return connection.execute(sql.replace("m.namespace", "+m.namespace"), (path,)).get is not None


def find_mentioning(
    connection: apsw.Connection, workspace: StoredWorkspace, name: str, reached: str, limit: int
) -> list[str]:
    """Return the files of a workspace that refer to a name in chunks in the `reached` namespaces."""
    sql = (
        # CROSS JOIN makes SQLite read the few mentions first.
        "SELECT DISTINCT m.path FROM mentions n CROSS JOIN memories m ON m.row = n.memory"
        f" WHERE n.name = ? AND m.path >= ? AND m.path < ? AND {reached} ORDER BY 1 LIMIT ?"
    )
    return [path for (path,) in connection.execute(sql, (name, *path_bounds(workspace.root), limit))]
