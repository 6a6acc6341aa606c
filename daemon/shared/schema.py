"""The tables on the server: versions of the schema, roles, row-level security, dialects. Their owner runs it.

`mem` is the feed, the truth and its own log: one row a memory, with the number of its last change. A push holds the
row of its root in `heads` until it is committed, so numbers are visible in their order. Who may see a root is in
`grants`, by the login role of the session, which no client can set.
"""

from typing import NamedTuple

from psycopg import sql

from memoryd.client.errors import Conflict
from memoryd.daemon.shared.server import Server

VERSION = 1  # of the schema that this memoryd knows
CLIENT = 1  # what this memoryd understands; a server may ask for a newer one

_TABLES = """
CREATE SCHEMA memoryd;
-- One row: the version of these tables, the oldest client that may push.
CREATE TABLE memoryd.meta (schema int NOT NULL, min_client int NOT NULL);
INSERT INTO memoryd.meta VALUES (1, 1);
CREATE TABLE memoryd.grants (
  role text NOT NULL, root text NOT NULL, can_write boolean NOT NULL, PRIMARY KEY (role, root)
);
-- Lock, order and epoch of a root.
CREATE TABLE memoryd.heads (root text PRIMARY KEY, seq bigint NOT NULL, tag uuid);
-- A row for each push: by its tag a machine sees whether the server still has what it had.
CREATE TABLE memoryd.log (
  root text NOT NULL, seq bigint NOT NULL, tag uuid NOT NULL, machine text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (root, seq)
);
CREATE TABLE memoryd.mem (
  root text NOT NULL, id uuid NOT NULL, seq bigint NOT NULL,
  vtag uuid NOT NULL, anc uuid[] NOT NULL,
  ns text NOT NULL, key text, content_hash bytea, body jsonb NOT NULL,
  deleted boolean NOT NULL, purged boolean NOT NULL, conflict_of uuid, merged_into uuid,
  machine text NOT NULL, author text NOT NULL DEFAULT session_user, at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (root, id)
);
CREATE UNIQUE INDEX mem_feed ON memoryd.mem (root, seq);
-- A key is that of one memory of its namespace, whichever machine was first.
CREATE UNIQUE INDEX mem_key ON memoryd.mem (root, ns, key) WHERE key IS NOT NULL;
CREATE INDEX mem_equal ON memoryd.mem (root, ns, content_hash) WHERE NOT deleted;
-- How far each machine has read, so that a purge can name those that still hold a text.
CREATE TABLE memoryd.machines (
  root text NOT NULL, machine text NOT NULL, role text NOT NULL DEFAULT session_user,
  seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (root, machine, role)
);
"""

READ = "root IN (SELECT g.root FROM memoryd.grants g WHERE g.role = session_user)"
WRITE = "root IN (SELECT g.root FROM memoryd.grants g WHERE g.role = session_user AND g.can_write)"
_OLD = "at < now() - interval '90 days'"
# Policies: whoever may read a root sees its rows, who may write it adds and changes them.
SEE, ADD = f"FOR SELECT USING ({READ})", f"FOR INSERT WITH CHECK ({WRITE})"
CHANGE = f"FOR UPDATE USING ({WRITE}) WITH CHECK ({WRITE})"


def secure(table: str, *policies: str) -> str:
    """Return what restricts the rows of a table by policies."""
    rows = [f"ALTER TABLE memoryd.{table} ENABLE ROW LEVEL SECURITY;"]
    rows += [f"CREATE POLICY p{number} ON memoryd.{table} {policy};" for number, policy in enumerate(policies)]
    return "\n".join(rows)


_SECURITY = "\n".join(
    [
        secure("meta", "FOR SELECT USING (true)"),
        secure("grants", "FOR SELECT USING (role = session_user)"),
        secure("heads", SEE, f"FOR UPDATE USING ({WRITE})"),
        secure("log", SEE, ADD, f"FOR DELETE USING ({WRITE} AND {_OLD})"),
        secure(
            "mem",
            SEE,
            f"FOR INSERT WITH CHECK ({WRITE} AND author = session_user)",
            f"FOR UPDATE USING ({WRITE}) WITH CHECK ({WRITE} AND author = session_user)",
            f"FOR DELETE USING ({WRITE} AND deleted AND NOT purged AND {_OLD})",
        ),
        secure(
            "machines",
            SEE,
            f"FOR INSERT WITH CHECK ({READ} AND role = session_user)",
            f"FOR UPDATE USING ({READ} AND role = session_user) WITH CHECK ({READ} AND role = session_user)",
        ),
    ]
)

# What a role may do at all; which rows, the policies say.
_PRIVILEGES = {
    "meta": "SELECT",
    "grants": "SELECT",
    "heads": "SELECT, UPDATE",
    "log": "SELECT, INSERT, DELETE",
    "mem": "SELECT, INSERT, UPDATE, DELETE",
    "machines": "SELECT, INSERT, UPDATE",
    "models": "SELECT, INSERT, UPDATE",
    "vec": "SELECT, INSERT, UPDATE, DELETE",
}
ROLES = "SELECT DISTINCT g.role FROM memoryd.grants g JOIN pg_catalog.pg_roles r ON r.rolname = g.role"
_LISTED = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'memoryd'"
)

MIGRATIONS: tuple[str, ...] = (_TABLES + _SECURITY,)


class Dialect(NamedTuple):
    """What differs between servers that speak PostgreSQL's language; `tested`: this project runs its tests there."""

    name: str
    shows: str  # a word of `version()` or the name of an extension that it is known by
    further: tuple[str, ...]  # statements after the tables are made
    tested: bool


DIALECTS: tuple[Dialect, ...] = (
    Dialect("CockroachDB", "CockroachDB", (), False),
    Dialect("YugabyteDB", "-YB-", (), False),
    Dialect(
        "Citus",
        "Citus",
        # Everything of a root is on one node, so a push stays one node's transaction.
        (
            "SELECT create_reference_table('memoryd.grants')",
            *(
                f"SELECT create_distributed_table('memoryd.{table}', 'root')"
                for table in ("heads", "log", "mem", "machines")
            ),
        ),
        False,
    ),
    Dialect("PostgreSQL", "PostgreSQL", (), True),
)


def find_dialect(server: Server) -> Dialect:
    """Return which kind of server this is."""
    version = str(server.value("SELECT version()"))
    if server.value("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'citus'"):
        version += " Citus"
    return next(dialect for dialect in DIALECTS if dialect.shows in version)


def read_version(server: Server) -> int:
    """Return the version of the tables, 0 where there are none."""
    if server.value("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'memoryd'") == 0:
        return 0
    found = server.value("SELECT max(schema) FROM memoryd.meta")
    return int(found) if isinstance(found, int) else 0


def migrate(server: Server) -> tuple[int, int]:
    """Bring the tables to the newest version; return the versions before and after. Only the owner can."""
    before = read_version(server)
    if before > VERSION:
        raise Conflict(f"The server's tables are of a newer memoryd (version {before}, this one knows {VERSION}).")
    dialect = find_dialect(server)
    for number, script in enumerate(MIGRATIONS[before:], start=before + 1):
        with server.begin():
            server.run(script)
            server.run("UPDATE memoryd.meta SET schema = %s", (number,))
    if before == 0:
        for statement in dialect.further:
            server.run(statement)
    return before, VERSION


def make_root(server: Server, root: str) -> None:
    """Make a root on the server, empty. Only the owner can."""
    server.run("INSERT INTO memoryd.heads (root, seq) VALUES (%s, 0) ON CONFLICT DO NOTHING", (root,))
    server.run(
        "INSERT INTO memoryd.grants VALUES (session_user, %s, true) ON CONFLICT (role, root) DO UPDATE"
        " SET can_write = true",
        (root,),
    )


def grant(server: Server, root: str, role: str, write: bool) -> None:
    """Let a role read a root, or write it as well. Only the owner can."""
    with server.begin():
        make_root(server, root)
        server.run(
            "INSERT INTO memoryd.grants VALUES (%s, %s, %s) ON CONFLICT (role, root) DO UPDATE"
            " SET can_write = excluded.can_write",
            (role, root, write),
        )
        grant_tables(server, role)


def grant_tables(server: Server, role: str) -> None:
    """Let a role use the tables and functions that there are; which rows, the policies say."""
    name = sql.Identifier(role)
    server.run(sql.SQL("GRANT USAGE ON SCHEMA memoryd TO {}").format(name))
    there = {table for (table,) in server.run(_LISTED).fetchall()}
    for table, rights in _PRIVILEGES.items():
        if table in there:
            statement = sql.SQL("GRANT {} ON memoryd.{} TO {}")
            server.run(statement.format(sql.SQL(rights), sql.Identifier(table), name))
    server.run(sql.SQL("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA memoryd TO {}").format(name))


def revoke(server: Server, root: str, role: str) -> None:
    """Keep a role from a root from now on. Only the owner can."""
    server.run("DELETE FROM memoryd.grants WHERE role = %s AND root = %s", (role, root))
