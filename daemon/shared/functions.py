"""The functions of the server that login roles call, as SQL: they are all that a role may use.

Each runs with the rights of the owner, on a fixed search path, and looks itself whether the role of the session has a
grant; `session_user` is who logged in, which no client can set. `judging` has the one that writes memories.
"""

DEFINER = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
KEPT_DAYS = 90  # of the log: so long a replay is known although the memory was changed since

# Columns of a memory as `exchange` reads them. They come out of a table that has the alias `m`.
ROW = (
    "id uuid, seq bigint, tag uuid, ns text, body text, deleted boolean, purged boolean, conflict_of uuid,"
    " device text, author text"
)
SHOWN = "m.id, m.seq, m.tag, m.ns, m.body::text, m.deleted, m.purged, m.conflict_of, m.device, m.author"

ACCESS = """
CREATE FUNCTION memoryd.may_read(asked_root text) RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
  SELECT EXISTS (SELECT FROM memoryd.grants g WHERE g.role = session_user AND g.root = asked_root);
END;

CREATE FUNCTION memoryd.check_write(asked_root text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM memoryd.grants g WHERE g.role = session_user AND g.root = asked_root AND g.can_write
  ) THEN
    RAISE insufficient_privilege USING MESSAGE = format('%s may not write %s', session_user, asked_root);
  END IF;
END $$;
"""

READING = f"""
-- How a root is; its lives for who does not know the present one.
CREATE FUNCTION memoryd.look(asked_root text, known_life uuid)
RETURNS TABLE (seq bigint, life uuid, channel text, can_write boolean, min_client int, lives jsonb)
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT h.seq, h.life, h.channel, g.can_write, t.min_client, CASE WHEN known_life IS DISTINCT FROM h.life THEN
      (SELECT jsonb_agg(jsonb_build_array(replace(l.life::text, '-', ''), l.start) ORDER BY l.start)
       FROM memoryd.lives l WHERE l.root = h.root) END
  FROM memoryd.grants g JOIN memoryd.heads h ON h.root = g.root CROSS JOIN memoryd.meta t
  WHERE g.role = session_user AND g.root = asked_root;
END;

-- The part of the feed that follows a number. Which rows fit is decided by their sizes; only these are read.
CREATE FUNCTION memoryd.feed(asked_root text, after bigint, most int, most_bytes bigint) RETURNS TABLE ({ROW})
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT {SHOWN} FROM (
    SELECT n.seq, sum(n.size) OVER (ORDER BY n.seq) AS total, row_number() OVER (ORDER BY n.seq) AS place
    FROM (
      SELECT k.seq, k.size FROM memoryd.mem k
      WHERE k.root = asked_root AND k.seq > after AND memoryd.may_read(asked_root) ORDER BY k.seq LIMIT most
    ) n
  ) f JOIN memoryd.mem m ON m.root = asked_root AND m.seq = f.seq
  WHERE f.total <= most_bytes OR f.place = 1 ORDER BY m.seq;
END;

CREATE FUNCTION memoryd.fetch(asked_root text, ids uuid[], most_bytes bigint) RETURNS TABLE ({ROW})
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT {SHOWN} FROM (
    SELECT k.id, sum(k.size) OVER (ORDER BY k.seq) AS total, row_number() OVER (ORDER BY k.seq) AS place
    FROM memoryd.mem k WHERE k.root = asked_root AND k.id = ANY(ids) AND memoryd.may_read(asked_root)
  ) f JOIN memoryd.mem m ON m.root = asked_root AND m.id = f.id
  WHERE f.total <= most_bytes OR f.place = 1 ORDER BY m.seq;
END;

CREATE FUNCTION memoryd.count_rows(asked_root text) RETURNS bigint LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT count(*) FROM memoryd.mem m
  WHERE m.root = asked_root AND NOT m.deleted AND memoryd.may_read(asked_root);
END;

-- After which number the newest memories begin.
CREATE FUNCTION memoryd.find_start(asked_root text, newest int) RETURNS bigint
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT m.seq FROM memoryd.mem m
  WHERE m.root = asked_root AND NOT m.deleted AND memoryd.may_read(asked_root)
  ORDER BY m.seq DESC OFFSET newest LIMIT 1;
END;

CREATE FUNCTION memoryd.list_pinned(asked_root text, upto bigint, most int) RETURNS SETOF uuid
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT m.id FROM memoryd.mem m
  WHERE m.root = asked_root AND m.seq <= upto AND NOT m.deleted AND m.body @> '{{"pinned": true}}'
    AND memoryd.may_read(asked_root)
  ORDER BY m.seq DESC LIMIT most;
END;

-- Note how far a machine has read, so that a purge can name those that still hold a text; return the others.
CREATE FUNCTION memoryd.note(asked_root text, asked_machine text, read_to bigint)
RETURNS TABLE (machine text, role text) LANGUAGE plpgsql {DEFINER} AS $$
BEGIN
  IF memoryd.may_read(asked_root) THEN
    INSERT INTO memoryd.machines AS k (root, machine, role, seq, at)
      VALUES (asked_root, left(asked_machine, 200), session_user, read_to, now())
      ON CONFLICT ON CONSTRAINT machines_pkey DO UPDATE SET seq = excluded.seq, at = excluded.at;
    DELETE FROM memoryd.log l WHERE l.root = asked_root AND l.at < now() - interval '{KEPT_DAYS} days';
    RETURN QUERY SELECT k.machine, k.role FROM memoryd.machines k
      WHERE k.root = asked_root AND k.machine <> left(asked_machine, 200) ORDER BY k.machine, k.role;
  END IF;
END $$;

CREATE FUNCTION memoryd.read_terms() RETURNS TABLE (version int, has_vectors boolean)
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT t.schema, to_regclass('memoryd.vec') IS NOT NULL FROM memoryd.meta t;
END;
"""
