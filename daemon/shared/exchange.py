"""What is said to the server: push, pull, compare. Each is one transaction and about one round trip.

Every statement is portable SQL. A push takes the head of its root, which is a lock until the commit, and with it the
next numbers; so whoever reads up to a number has read everything up to it.
"""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from psycopg.sql import Composed

from memoryd.client.errors import Forbidden
from memoryd.daemon.shared import schema
from memoryd.daemon.shared.applying import Remote
from memoryd.daemon.shared.pushing import Outgoing
from memoryd.daemon.shared.server import Server
from memoryd.daemon.store.shared import Root

PULLED = 500  # rows of one pull
KEPT_DAYS = 90  # of the log, and of what was deleted: who was away longer takes what the server says
COLUMNS = (
    "m.id, m.seq, m.vtag, m.anc, m.ns, m.body::text, m.deleted, m.purged, m.conflict_of, m.merged_into, m.machine,"
    " m.author"
)
_RECORDS = (
    "jsonb_to_recordset(%(rows)s::jsonb) AS r(ord int, id uuid, vtag uuid, mtag uuid, anc uuid[], ns text, key text,"
    " content_hash text, body jsonb, deleted boolean, purged boolean, conflict_of uuid)"
)
# A new memory whose text another machine has put into the same namespace is merged into that one.
_EQUAL = """
  SELECT e.id FROM memoryd.mem e
  WHERE e.root = %(root)s AND e.ns = r.ns AND e.content_hash = decode(r.content_hash, 'hex') AND NOT e.deleted
    AND e.id <> r.id AND e.machine <> %(machine)s AND e.key IS NULL AND r.key IS NULL
    AND cardinality(r.anc) = 0 AND r.conflict_of IS NULL AND e.conflict_of IS NULL AND NOT r.deleted
  ORDER BY e.seq LIMIT 1
"""
_HEAD = "UPDATE memoryd.heads SET seq = seq + %(count)s, tag = %(tag)s WHERE root = %(root)s RETURNING seq"
_PUSH = f"""
INSERT INTO memoryd.mem AS m (root, id, seq, vtag, anc, ns, key, content_hash, body, deleted, purged, conflict_of,
    merged_into, machine, author, at)
  SELECT %(root)s, r.id, h.seq - %(count)s + r.ord,
    CASE WHEN d.id IS NULL THEN r.vtag ELSE r.mtag END, CASE WHEN d.id IS NULL THEN r.anc ELSE ARRAY[r.vtag] END,
    r.ns, r.key, decode(r.content_hash, 'hex'), CASE WHEN d.id IS NULL THEN r.body ELSE '{{}}' END,
    r.deleted OR d.id IS NOT NULL, r.purged, r.conflict_of, d.id, %(machine)s, session_user, now()
  FROM {_RECORDS}
  CROSS JOIN (SELECT seq FROM memoryd.heads WHERE root = %(root)s) h LEFT JOIN LATERAL ({_EQUAL}) d ON true
  WHERE NOT EXISTS (
    SELECT 1 FROM memoryd.mem k WHERE k.root = %(root)s AND k.ns = r.ns AND k.key = r.key AND k.id <> r.id
  )
  ORDER BY r.ord
ON CONFLICT (root, id) DO UPDATE SET seq = excluded.seq, vtag = excluded.vtag, anc = excluded.anc, ns = excluded.ns,
    key = excluded.key, content_hash = excluded.content_hash, body = excluded.body, deleted = excluded.deleted,
    purged = excluded.purged, conflict_of = excluded.conflict_of, merged_into = NULL, machine = excluded.machine,
    author = excluded.author, at = excluded.at
  WHERE NOT m.purged AND (excluded.purged OR m.vtag = ANY(excluded.anc))
RETURNING m.id, m.vtag
"""
_LOG = (
    "INSERT INTO memoryd.log (root, seq, tag, machine)"
    " SELECT root, seq, tag, %(machine)s FROM memoryd.heads WHERE root = %(root)s"
)
_TERMS = (
    "SELECT min_client, coalesce(has_table_privilege(to_regclass('memoryd.vec')::oid, 'SELECT'), false),"
    " coalesce(has_function_privilege(to_regprocedure('memoryd.find_words(text, text[], text[], int)')::oid,"
    " 'EXECUTE'), false) FROM memoryd.meta"
)
_FORGET = "DELETE FROM memoryd.vec v WHERE v.root = %(root)s AND v.id = ANY(%(purged)s::uuid[])"
_REMEMBERED = "SELECT tag FROM memoryd.log WHERE root = %(root)s AND seq = %(mark)s"
_SNAPSHOT = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_STATE = """
SELECT h.seq, h.tag, CASE WHEN h.seq = %(mark)s THEN h.tag ELSE
    (SELECT l.tag FROM memoryd.log l WHERE l.root = h.root AND l.seq = %(mark)s) END,
  (SELECT min(l.seq) FROM memoryd.log l WHERE l.root = h.root)
FROM memoryd.heads h WHERE h.root = %(root)s
"""
_FEED = f"SELECT {COLUMNS} FROM memoryd.mem m WHERE m.root = %s AND m.seq > %s ORDER BY m.seq LIMIT %s"
_BY_ID = f"SELECT {COLUMNS} FROM memoryd.mem m WHERE m.root = %s AND m.id = ANY(%s::uuid[]) ORDER BY m.seq"
_BY_KEY = f"SELECT {COLUMNS} FROM memoryd.mem m WHERE m.root = %s AND m.ns = %s AND m.key = %s"
_INVENTORY = "SELECT m.id, m.vtag FROM memoryd.mem m WHERE m.root = %s ORDER BY m.seq"
_READ_BY = (
    "INSERT INTO memoryd.machines (root, machine, seq) VALUES (%s, %s, %s)"
    " ON CONFLICT (root, machine, role) DO UPDATE SET seq = excluded.seq, at = now()"
)
# The latest push stays in the log, however old: by it a machine sees that the server lost nothing.
_PRUNE_LOG = (
    f"DELETE FROM memoryd.log l WHERE l.root = %s AND l.at < now() - interval '{KEPT_DAYS} days'"
    " AND l.seq < (SELECT h.seq FROM memoryd.heads h WHERE h.root = l.root)"
)
_PRUNE_DELETED = (
    "DELETE FROM memoryd.mem m WHERE m.root = %s AND m.deleted AND NOT m.purged"
    f" AND m.at < now() - interval '{KEPT_DAYS} days'"
)


class Head(NamedTuple):
    """How far a root is on the server: `tag` is that of its last push; how the server remembers an earlier state."""

    seq: int
    tag: str
    tag_at_mark: str | None = None
    oldest: int | None = None


class Pushed(NamedTuple):
    """What a push came to: the state after it, and the version of each memory that was taken."""

    head: Head
    accepted: dict[str, str]


class Pulled(NamedTuple):
    """One batch of the feed, and the state that it was read from."""

    head: Head
    rows: list[Remote]


def push(server: Server, root: Root, machine: str, going: Sequence[Outgoing], report: Composed | None = None) -> Pushed:
    """Offer versions to the server, which takes those that descend from its own; `report` is run with them."""
    tag = uuid.uuid4().hex
    numbered = [{**one.record, "ord": place} for place, one in enumerate(going, start=1)]
    values = {
        "root": root.name,
        "mark": root.mark,
        "machine": machine,
        "tag": tag,
        "count": len(going),
        "rows": msgspec.json.encode(numbered).decode(),
        "purged": [one.record["id"] for one in going if one.record["purged"]],
    }
    with server.exchange():
        head = server.run(_HEAD, values)
        remembered = server.run(_REMEMBERED, values)
        taken = server.run(_PUSH, values)
        server.run(_LOG, values)
        if values["purged"] and server.has_vectors:
            server.run(_FORGET, values)
        if report is not None:
            server.run(report)
    found = head.fetchone()
    if found is None:
        raise Forbidden(f"This role may not write {root.name} on the server.")
    before = remembered.fetchone()
    return Pushed(
        Head(found[0], tag, before[0].hex if before else None),
        {id.hex: version.hex for id, version in taken.fetchall()},
    )


def pull(server: Server, root: Root) -> Pulled:
    """Read the next batch of the feed, and how the server remembers the state that was seen last."""
    with server.exchange(_SNAPSHOT):
        state = server.run(_STATE, {"root": root.name, "mark": root.mark})
        feed = server.run(_FEED, (root.name, root.cursor, PULLED))
    return Pulled(_read_head(root.name, state.fetchone()), [read_remote(row) for row in feed.fetchall()])


def read_inventory(server: Server, root: Root) -> tuple[Head, dict[str, str]]:
    """Return the version of every memory of a root, the last changed one last, in one snapshot."""
    with server.exchange(_SNAPSHOT):
        state = server.run(_STATE, {"root": root.name, "mark": root.mark})
        found = server.run(_INVENTORY, (root.name,))
    return _read_head(root.name, state.fetchone()), {id.hex: version.hex for id, version in found.fetchall()}


def fetch(server: Server, root: str, ids: Sequence[str]) -> list[Remote]:
    """Return memories by their ids."""
    return [read_remote(row) for row in server.run(_BY_ID, (root, list(ids))).fetchall()]


def fetch_key(server: Server, root: str, namespace: str, key: str) -> list[Remote]:
    """Return the memory that has a key."""
    return [read_remote(row) for row in server.run(_BY_KEY, (root, namespace, key)).fetchall()]


def note_machine(server: Server, root: Root, machine: str) -> list[str]:
    """Note how far this machine has read, forget what is too old to be of use; return the other machines."""
    server.run(_READ_BY, (root.name, machine, root.cursor))
    server.run(_PRUNE_LOG, (root.name,))
    server.run(_PRUNE_DELETED, (root.name,))
    found = server.run("SELECT machine, role FROM memoryd.machines WHERE root = %s ORDER BY machine", (root.name,))
    return [f"{name} ({role})" for name, role in found.fetchall() if name != machine]


def has_root(server: Server, root: str) -> bool:
    """Return whether the server has a root that this role may read."""
    return bool(server.value("SELECT count(*) FROM memoryd.heads WHERE root = %s", (root,)))


def count_rows(server: Server, root: str) -> int:
    """Return how many memories of a root the server has."""
    return int(server.value("SELECT count(*) FROM memoryd.mem WHERE root = %s AND NOT deleted", (root,)))


def read_terms(server: Server) -> bool:
    """Return whether the server lets a client as old as this one push; note whether it has vectors, and full text."""
    found = server.run(_TERMS).fetchone()
    server.has_vectors, server.has_words = bool(found and found[1]), bool(found and found[2])
    return found is None or int(found[0]) <= schema.CLIENT


def _read_head(root: str, found: Any) -> Head:
    if found is None:
        raise Forbidden(f"This role may not read {root} on the server, or there is no such root.")
    seq, tag, tag_at_mark, oldest = found
    return Head(seq, tag.hex if tag else "", tag_at_mark.hex if tag_at_mark else None, oldest)


def read_remote(row: Any) -> Remote:
    """Return a row of `COLUMNS` as the memory that it is."""
    id, seq, version, ancestors, namespace, body, deleted, purged, conflict_of, merged_into, machine, author = row
    return Remote(
        id=id.hex,
        seq=seq,
        vtag=version.hex,
        anc=[ancestor.hex for ancestor in ancestors],
        ns=namespace,
        body=msgspec.Raw(body.encode()),
        deleted=deleted,
        purged=purged,
        conflict_of=conflict_of.hex if conflict_of else None,
        merged_into=merged_into.hex if merged_into else None,
        machine=machine,
        author=author,
    )
