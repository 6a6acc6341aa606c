"""Full text on the server: an index of the words of memories, and a function that reads it for a role.

Row-level security keeps a statement of a role from the index of words (its operator could reveal rows), so a function
of the owner asks, and looks itself whether the role may read the root. It returns ids of memories that hold rare words
of a question; how well they fit is computed by whoever asked, as for everything else.
"""

from memoryd.daemon.shared.exchange import COLUMNS
from memoryd.daemon.shared.schema import READ, ROLES, grant_tables
from memoryd.daemon.shared.server import Server

_TEXT = "to_tsvector('pg_catalog.english', left(m.body ->> 'content', 100000))"
_INDEX = (
    "CREATE INDEX IF NOT EXISTS mem_words ON memoryd.mem USING gin"
    f" (({_TEXT.replace('m.body', 'body')})) WHERE NOT deleted"
)
_HOLDING = f"""
  SELECT m.id FROM memoryd.mem m
  WHERE m.root = asked_root AND m.ns = ANY(places) AND NOT m.deleted AND {_TEXT} @@ {{words}} AND asked_{READ}
  LIMIT wanted
"""
# Those that hold every word, then some for each word: a word that few hold is not crowded out by another.
_FUNCTION = f"""
CREATE OR REPLACE FUNCTION memoryd.find_words(asked_root text, places text[], words text[], wanted int)
RETURNS TABLE (id uuid) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH asked AS (
    SELECT q.q FROM (SELECT plainto_tsquery('pg_catalog.english', w.w) AS q FROM unnest(words) AS w(w)) q
    WHERE numnode(q.q) > 0
  ), every AS (SELECT string_agg(a.q::text, ' & ')::tsquery AS q FROM asked a)
  SELECT found.id FROM every e, LATERAL ({_HOLDING.format(words="e.q")}) found
  UNION SELECT found.id FROM asked a, LATERAL ({_HOLDING.format(words="a.q")}) found
$$;
REVOKE ALL ON FUNCTION memoryd.find_words FROM PUBLIC;
"""
# The distance is that of the vector that the server has, if it has one.
FIND = f"""
SELECT {COLUMNS}, v.emb::halfvec({{length}}) <=> %(vector)s::halfvec({{length}}), v.text_hash
FROM memoryd.find_words(%(root)s, %(places)s, %(words)s, %(wanted)s) w
JOIN memoryd.mem m ON m.root = %(root)s AND m.id = w.id
LEFT JOIN memoryd.vec v ON v.root = %(root)s AND v.model = {{model}} AND v.id = w.id
WHERE NOT m.deleted AND m.ns = ANY(%(places)s)
"""


def make(server: Server) -> None:
    """Make the index and the function, and let every role that has a grant use it. For the owner."""
    with server.begin():
        server.run(_INDEX)
        server.run(_FUNCTION)
        for (role,) in server.run(ROLES).fetchall():
            grant_tables(server, role)
