"""The tables on the server: versions of the schema, roots, who may use them. Their owner runs it.

Login roles have no right on any table: they call functions, which look for the grant of the role of the session. `mem`
is the feed, the truth and its own log: one row a memory, with the number of its last change.
"""

from collections.abc import Sequence

import psycopg
from psycopg import sql

from memoryd.client.errors import Conflict, Unavailable
from memoryd.daemon.shared import functions, judging
from memoryd.daemon.shared.server import ServerConnection

VERSION = 2  # of the schema that this memoryd knows
CLIENT = 1  # what this memoryd understands; a server may ask for a newer one

_TABLES = """
CREATE SCHEMA memoryd;
-- One row: the version of these tables, the oldest client that may push.
CREATE TABLE memoryd.meta (schema int NOT NULL, min_client int NOT NULL);
INSERT INTO memoryd.meta VALUES (2, 1);
CREATE TABLE memoryd.grants (
  role text NOT NULL, root text NOT NULL, can_write boolean NOT NULL, PRIMARY KEY (role, root)
);
-- Lock, order and present life of a root; by which transaction and which start of the server it was written.
CREATE TABLE memoryd.heads (
  root text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0, life uuid NOT NULL DEFAULT gen_random_uuid(),
  xid xid NOT NULL DEFAULT pg_current_xact_id()::xid, started timestamptz NOT NULL DEFAULT pg_postmaster_start_time(),
  channel text NOT NULL, notified_at timestamptz
);
-- The first number of each life: numbers up to the next one are of one timeline.
CREATE TABLE memoryd.lives (root text NOT NULL, life uuid NOT NULL, start bigint NOT NULL, PRIMARY KEY (root, life));
-- Every tag that was taken, for a while: by it a replay is known although the memory was changed since.
CREATE TABLE memoryd.log (
  root text NOT NULL, tag uuid NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (root, tag)
);
CREATE INDEX log_age ON memoryd.log (root, at);
CREATE TABLE memoryd.mem (
  root text NOT NULL, id uuid NOT NULL, seq bigint NOT NULL, tag uuid NOT NULL, ns text NOT NULL, key text,
  body jsonb NOT NULL, size int NOT NULL, deleted boolean NOT NULL, purged boolean NOT NULL, conflict_of uuid,
  -- Of what a machine brought back from a life that was lost: its place there, and whether it was changed since.
  was_life uuid, was_seq bigint, was_changed boolean NOT NULL,
  device text NOT NULL, author text NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (root, id)
);
CREATE UNIQUE INDEX mem_feed ON memoryd.mem (root, seq);
-- A key is that of one memory of its namespace, whichever machine was first.
CREATE UNIQUE INDEX mem_key ON memoryd.mem (root, ns, key) WHERE key IS NOT NULL AND NOT deleted;
-- A purge takes the other versions of a memory with it.
CREATE INDEX mem_conflict ON memoryd.mem (root, conflict_of) WHERE conflict_of IS NOT NULL;
-- How far each machine has read, so that a purge can name those that still hold a text.
CREATE TABLE memoryd.machines (
  root text NOT NULL, machine text NOT NULL, role text NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL,
  PRIMARY KEY (root, machine, role)
);
"""


def secure(*tables: str) -> str:
    """Return what keeps a role from all rows of tables, whatever somebody grants: only their owner passes."""
    return "\n".join(f"ALTER TABLE memoryd.{table} ENABLE ROW LEVEL SECURITY;" for table in tables)


# A new function may be called by everybody, until that is taken back.
LOCK = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA memoryd FROM PUBLIC;"
MIGRATIONS: tuple[str, ...] = (
    "",  # version 1 was never released
    "\n".join(
        [
            _TABLES,
            secure("meta", "grants", "heads", "lives", "log", "mem", "machines"),
            functions.ACCESS,
            functions.READING,
            judging.JUDGING,
            LOCK,
        ]
    ),
)
# What login roles may call; the functions of `vectors` are there where the server has pgvector.
CALLED = (
    *("look", "feed", "fetch", "count_rows", "find_start", "list_pinned", "note", "read_terms", "offer"),
    *("lease", "list_unembedded", "put_vectors", "take_vectors", "has_few", "find_nearest", "find_words"),
)
_FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p"
    " JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'memoryd' AND p.proname = ANY(%s)"
)
ROLES = "SELECT DISTINCT g.role FROM memoryd.grants g JOIN pg_catalog.pg_roles r ON r.rolname = g.role"
_SESSIONS = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity a"
    " WHERE a.usename = %s AND a.datname = current_database() AND a.pid <> pg_backend_pid()"
)
_CHANNEL = "'memoryd_' || replace(gen_random_uuid()::text, '-', '')"
_NEW_CHANNEL = f"""
DO $$
DECLARE
  head memoryd.heads := memoryd.hold_head({{root}});
BEGIN
  IF head.root IS NOT NULL THEN
    head.channel := {_CHANNEL};
    PERFORM memoryd.write_head(head);
  END IF;
END $$
"""


def guard(server: ServerConnection) -> None:
    """Let the owner's session find by an unqualified name nothing that somebody else made."""
    server.run("SET search_path = pg_catalog, pg_temp")


def read_version(server: ServerConnection) -> int:
    """Return the version of the tables, 0 where there are none."""
    if not server.value("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'memoryd'"):
        return 0
    if server.value("SELECT to_regprocedure('memoryd.read_terms()')") is None:
        return 1
    return int(server.value("SELECT version FROM memoryd.read_terms()"))


def check_version(server: ServerConnection) -> None:
    """Raise `Conflict` where the tables are not those that this memoryd knows."""
    version = read_version(server)
    if version == 0:
        raise Conflict("The server has no tables of memoryd; its owner runs `memctl shared migrate`.")
    if version == 1:
        raise Conflict(
            "The server's tables are of the first design, which was never released: their owner drops them"
            " (DROP SCHEMA memoryd CASCADE) and runs `memctl shared migrate`; each machine brings back what it holds."
        )
    if version > VERSION:
        raise Conflict(f"The server's tables are of a newer memoryd (version {version}, this one knows {VERSION}).")


def migrate(server: ServerConnection) -> tuple[int, int]:
    """Bring the tables to the newest version; return the versions before and after. Only the owner can."""
    guard(server)
    before = read_version(server)
    if before:
        check_version(server)
    for script in MIGRATIONS[before:]:
        with server.begin():
            server.run(script)
    server.run(judging.MERGE)
    return before, VERSION


def read_kind(server: ServerConnection) -> str:
    """Return what the server calls itself: PostgreSQL, or another one that speaks its language."""
    return str(server.value("SELECT version()")).split()[0]


def make_root(server: ServerConnection, root: str) -> None:
    """Make a root on the server, empty. Only the owner can."""
    guard(server)
    server.run(
        "WITH made AS ("
        f" INSERT INTO memoryd.heads (root, channel) VALUES (%(root)s, {_CHANNEL}) ON CONFLICT DO NOTHING"
        " RETURNING root, life"
        "), begun AS (INSERT INTO memoryd.lives (root, life, start) SELECT root, life, 1 FROM made)"
        " INSERT INTO memoryd.grants VALUES (session_user, %(root)s, true)"
        " ON CONFLICT (role, root) DO UPDATE SET can_write = true",
        {"root": root},
    )


def grant(server: ServerConnection, root: str, role: str, write: bool) -> None:
    """Let a role read a root, or write it as well. Only the owner can."""
    with server.begin():
        make_root(server, root)
        server.run(
            "INSERT INTO memoryd.grants VALUES (%s, %s, %s) ON CONFLICT (role, root) DO UPDATE"
            " SET can_write = excluded.can_write",
            (role, root, write),
        )
        grant_functions(server, [role])


def grant_functions(server: ServerConnection, roles: Sequence[str]) -> None:
    """Let roles call the functions that there are; of which root, their grants say."""
    found = server.run(_FUNCTIONS, (list(CALLED),)).fetchall()
    called = sql.SQL(", ").join(sql.SQL(name) for (name,) in found)  # as the catalog writes them
    for role in roles:
        name = sql.Identifier(role)
        server.run(sql.SQL("GRANT USAGE ON SCHEMA memoryd TO {}").format(name))
        server.run(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(called, name))


def revoke(server: ServerConnection, root: str, role: str) -> bool:
    """Keep a role from a root from now on; return whether its sessions could be ended. Only the owner can.

    The grant is deleted first, so whatever the role begins now is refused; what it had begun ends, or fails at the
    head.
    """
    guard(server)
    server.run("DELETE FROM memoryd.grants WHERE role = %s AND root = %s", (role, root))
    ended = True
    try:
        server.run(_SESSIONS, (role,))
    except psycopg.errors.InsufficientPrivilege:
        ended = False
    try:
        with server.begin():
            server.run("SET LOCAL lock_timeout = '5s'")
            server.run(sql.SQL(_NEW_CHANNEL).format(root=sql.Literal(root)))
    except psycopg.errors.LockNotAvailable:
        raise Unavailable(
            f"{role} is kept out, but somebody is writing to {root} for so long that its notices could not get a new"
            " channel; revoke it once more."
        ) from None
    return ended
