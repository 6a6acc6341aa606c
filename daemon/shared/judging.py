"""What the server does with an offered version, as SQL: the function `offer` and the rules of its judgement.

One machine's offers to one root are one transaction that holds the row of the root in `heads` until its commit; so
numbers become visible in their order, and whoever read up to a number has read everything up to it.
"""

from memoryd.daemon.shared.functions import DEFINER

ANSWERED_BYTES = 4 << 20  # of memories in the answers of one offer: after that the other offers are not looked at

_HEADS = """
-- Take the lock of a root, which orders all that is written to it. Where the row is not the one that the last writer
-- left (a dump or a copy was brought back), or another start of the server has it (a failover, a crash), the numbers
-- that follow are another timeline's: a new life begins. A life without a number named nothing.
CREATE FUNCTION memoryd.hold_head(asked_root text) RETURNS memoryd.heads LANGUAGE plpgsql AS $$
DECLARE
  head memoryd.heads;
BEGIN
  PERFORM FROM memoryd.heads h WHERE h.root = asked_root FOR UPDATE;
  SELECT * INTO head FROM memoryd.heads h WHERE h.root = asked_root;
  -- What was acknowledged must outlive a crash: a machine relies on its number.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF EXISTS (
    SELECT FROM memoryd.heads h
    WHERE h.root = asked_root AND (h.xmin <> h.xid OR h.started <> pg_postmaster_start_time())
  ) THEN
    head.seq := greatest(head.seq, (SELECT max(m.seq) FROM memoryd.mem m WHERE m.root = asked_root));
    head.life := gen_random_uuid();
    DELETE FROM memoryd.lives l WHERE l.root = asked_root AND l.start > head.seq;
    INSERT INTO memoryd.lives VALUES (asked_root, head.life, head.seq + 1);
    PERFORM memoryd.write_head(head);
  END IF;
  RETURN head;
END $$;

-- Only for who holds it, and never within a savepoint: `xmin` would be that of the savepoint.
CREATE FUNCTION memoryd.write_head(head memoryd.heads) RETURNS void LANGUAGE sql BEGIN ATOMIC
  UPDATE memoryd.heads h SET seq = head.seq, life = head.life, channel = head.channel, notified_at = head.notified_at,
      xid = pg_current_xact_id()::xid, started = pg_postmaster_start_time()
    WHERE h.root = head.root;
END;
"""

# Made again by each `migrate`: a server whose tables were made by an earlier memoryd has it as well.
MERGE = """
-- What two versions with equal text say together; where they disagree the first one is right.
CREATE OR REPLACE FUNCTION memoryd.merge(first jsonb, second jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN second || first || jsonb_build_object(
  'metadata', coalesce(second -> 'metadata', '{}') || coalesce(first -> 'metadata', '{}') || CASE
    WHEN jsonb_typeof(first #> '{metadata,tags}') = 'array' AND jsonb_typeof(second #> '{metadata,tags}') = 'array'
    THEN jsonb_build_object('tags', first #> '{metadata,tags}' || (
      SELECT coalesce(jsonb_agg(t.tag ORDER BY t.place), '[]')
      FROM jsonb_array_elements(second #> '{metadata,tags}') WITH ORDINALITY AS t(tag, place)
      WHERE t.tag NOT IN (SELECT f.tag FROM jsonb_array_elements(first #> '{metadata,tags}') AS f(tag))))
    ELSE '{}' END,
  'pinned', coalesce(second -> 'pinned' = 'true', false) OR coalesce(first -> 'pinned' = 'true', false),
  'votes', coalesce(first -> 'votes', '[]') || (
    SELECT coalesce(jsonb_agg(v.vote ORDER BY v.place), '[]')
    FROM jsonb_array_elements(coalesce(second -> 'votes', '[]')) WITH ORDINALITY AS v(vote, place)
    WHERE NOT EXISTS (
      SELECT FROM jsonb_array_elements(coalesce(first -> 'votes', '[]')) AS f(vote)
      WHERE f.vote -> 'by' = v.vote -> 'by')));
"""

_ROWS = """
CREATE FUNCTION memoryd.hex(name uuid) RETURNS text LANGUAGE sql IMMUTABLE
RETURN replace(name::text, '-', '');

-- The id of the memory that an offered version becomes beside the one that has its place: a replay makes no second one.
CREATE FUNCTION memoryd.sibling(id uuid, tag uuid) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN (left(md5('sibling ' || id::text || ' ' || tag::text), 16) || right(memoryd.hex(id), 16))::uuid;

-- By the second half of its id a version that was set aside is told from a memory that only wanted the same key.
CREATE FUNCTION memoryd.is_version(id uuid, of uuid) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN right(memoryd.hex(id), 16) = right(memoryd.hex(of), 16);

CREATE FUNCTION memoryd.show(m memoryd.mem) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN CASE WHEN (m).id IS NOT NULL THEN jsonb_build_object(
  'id', memoryd.hex((m).id), 'seq', (m).seq, 'tag', memoryd.hex((m).tag), 'ns', (m).ns, 'body', (m).body,
  'deleted', (m).deleted, 'purged', (m).purged, 'conflict_of', memoryd.hex((m).conflict_of),
  'device', (m).device, 'author', (m).author) END;

-- Put a row in place of the one with its id. Of what is deleted nothing is kept but that it was there.
CREATE FUNCTION memoryd.put_row(m memoryd.mem) RETURNS memoryd.mem LANGUAGE plpgsql AS $$
BEGIN
  IF m.deleted THEN
    m.body := '{}';
    m.key := NULL;
  ELSIF m.key IS NULL THEN
    m.body := m.body - 'key';
  END IF;
  m.size := CASE WHEN m.deleted THEN 0 ELSE octet_length(m.body::text) END;
  m.author := session_user;
  m.at := now();
  DELETE FROM memoryd.mem k WHERE k.root = m.root AND k.id = m.id;
  INSERT INTO memoryd.mem SELECT m.*;
  INSERT INTO memoryd.log VALUES (m.root, m.tag, m.seq, m.at)
    ON CONFLICT (root, tag) DO UPDATE SET seq = excluded.seq, at = excluded.at;
  RETURN m;
END $$;
"""

_JUDGE = """
-- Judge one offered version `o` against the row `r` that the server has of its id; return the last number given.
CREATE FUNCTION memoryd.judge(
  asked_root text, device text, offer jsonb, last bigint, OUT number bigint, OUT answer jsonb
) LANGUAGE plpgsql AS $$
DECLARE
  o record;
  r memoryd.mem;
  n memoryd.mem;  -- what is put
  s memoryd.mem;  -- where this version, or an earlier offer of it, was set aside
  x memoryd.mem;  -- who has the key
  tags uuid[];  -- of this version and of the earlier offers of it
  asides uuid[];  -- where each of these would be set aside
  said text;
  base uuid;
BEGIN
  number := last;
  SELECT * INTO o FROM jsonb_to_record(offer) AS f(
    id uuid, base uuid, tag uuid, offered uuid[], ns text, key text, body jsonb, deleted boolean, purged boolean,
    conflict_of uuid, life uuid, seq bigint, point bigint);
  IF NOT coalesce(o.ns = asked_root OR starts_with(o.ns, asked_root || '/'), false) THEN
    RAISE data_exception USING MESSAGE = format('it is in %s, not in %s', coalesce(o.ns, 'no namespace'), asked_root);
  END IF;
  n.root := asked_root; n.id := o.id; n.tag := o.tag; n.ns := o.ns; n.key := o.key; n.body := o.body;
  n.deleted := o.deleted; n.purged := o.purged; n.conflict_of := o.conflict_of; n.device := judge.device;
  n.was_changed := false;
  -- What its author replaced is not to be taken any more, should it come late.
  INSERT INTO memoryd.log SELECT asked_root, t.tag, 0, now() FROM unnest(o.offered) AS t(tag) ON CONFLICT DO NOTHING;
  SELECT * INTO r FROM memoryd.mem m WHERE m.root = asked_root AND m.id = o.id;
  tags := o.offered || o.tag;
  asides := ARRAY(
    SELECT memoryd.sibling(o.id, t.tag) FROM unnest(tags) WITH ORDINALITY AS t(tag, place) ORDER BY t.place);
  SELECT * INTO s FROM memoryd.mem m
    WHERE m.root = asked_root AND m.id = ANY(asides) AND (m.tag = ANY(tags) OR m.id = memoryd.sibling(o.id, o.tag))
    ORDER BY array_position(asides, m.id) DESC LIMIT 1;

  -- 1. What was erased stays erased.
  IF r.purged THEN
    said := 'purged';
  -- 2. An erasure is taken whatever it was made of, and takes the other versions of the memory with it; one that was
  --    on its way is erased when it comes.
  ELSIF o.purged OR (r.id IS NULL AND EXISTS (
    SELECT FROM memoryd.mem m
    WHERE m.root = asked_root AND m.id = o.conflict_of AND m.purged AND memoryd.is_version(o.id, m.id)
  )) THEN
    said := CASE WHEN o.purged THEN 'taken' ELSE 'purged' END;
    number := memoryd.purge_rows(n, asides, number);
    SELECT * INTO r FROM memoryd.mem m WHERE m.root = asked_root AND m.id = o.id;
  -- 3. A replay.
  ELSIF r.tag = o.tag THEN
    said := 'kept';
    base := o.tag;
  -- 4. It was set aside, or an earlier offer of it, which then continues there.
  ELSIF r.id IS NOT NULL AND s.id IS NOT NULL THEN
    said := 'conflict';
    IF s.tag <> o.tag AND s.id <> memoryd.sibling(o.id, o.tag) AND NOT s.purged THEN
      number := number + 1;
      n.seq := number; n.id := s.id; n.key := NULL; n.conflict_of := s.conflict_of;
      s := memoryd.put_row(n);
    END IF;
  -- 5. It was taken, and replaced since by somebody who knew it.
  ELSIF r.id IS NOT NULL AND EXISTS (SELECT FROM memoryd.log l WHERE l.root = asked_root AND l.tag = o.tag) THEN
    said := 'kept';
    base := o.tag;
  -- 6. It is new.
  ELSIF r.id IS NULL THEN
    said := 'taken';
  -- 7. It was made of what the server has. What that brought back from a lost life is in it.
  ELSIF r.tag = o.base OR r.tag = ANY(o.offered) THEN
    said := 'taken';
    n.was_life := r.was_life; n.was_seq := r.was_seq; n.was_changed := r.was_life IS NOT NULL;
  -- 8. The server lost what it was made of. Nobody changed the row since the timelines parted: it is taken. Another
  --    machine brought back a version of the same lost life, and nobody changed that: the later one counts.
  ELSIF o.life IS NOT NULL AND (r.seq <= o.point OR (
    r.was_life = o.life AND o.seq > r.was_seq AND NOT r.was_changed
  )) THEN
    said := 'taken';
  ELSIF r.was_life = o.life AND o.tag = o.base AND o.seq <= r.was_seq THEN
    said := 'kept';
  -- 9. 10. 11. An edit beats a deletion, whichever came first.
  ELSIF r.deleted AND o.deleted THEN
    said := 'kept';
    base := r.tag;
  ELSIF r.deleted THEN
    said := 'taken';
  ELSIF o.deleted THEN
    said := 'kept';
  -- 12. Equal texts are merged.
  ELSIF (r.ns, r.key, r.body -> 'content') IS NOT DISTINCT FROM (o.ns, o.key, o.body -> 'content') THEN
    said := 'kept';
    base := r.tag;
    n := r;
    n.body := memoryd.merge(r.body, CASE WHEN o.key IS NULL THEN o.body - 'key' ELSE o.body END);
    IF n.body <> r.body THEN
      base := o.tag;
      number := number + 1;
      n.seq := number; n.tag := o.tag; n.device := judge.device; n.was_changed := r.was_life IS NOT NULL;
      r := memoryd.put_row(n);
    END IF;
  -- 13. A conflict: the offered version is set aside, as a memory of its own.
  ELSE
    said := 'conflict';
    number := number + 1;
    n.seq := number; n.id := memoryd.sibling(o.id, o.tag); n.key := NULL;
    n.conflict_of := coalesce(r.conflict_of, r.id);
    s := memoryd.put_row(n);
  END IF;

  -- What is taken gets the next number. A key is that of the memory that had it first.
  IF said = 'taken' AND NOT o.purged THEN
    IF NOT o.deleted THEN
      SELECT * INTO x FROM memoryd.mem m
        WHERE m.root = asked_root AND m.ns = o.ns AND m.key = o.key AND NOT m.deleted AND m.id <> o.id;
      IF FOUND THEN
        n.key := NULL; n.conflict_of := x.id;
      END IF;
    END IF;
    IF o.life IS NOT NULL THEN
      n.was_life := o.life; n.was_seq := o.seq; n.was_changed := o.tag IS DISTINCT FROM o.base;
    END IF;
    number := number + 1;
    n.seq := number;
    r := memoryd.put_row(n);
  END IF;
  answer := jsonb_build_object('id', memoryd.hex(o.id), 'said', said, 'base', memoryd.hex(base), 'seq', coalesce(
      (SELECT l.seq FROM memoryd.log l WHERE said = 'kept' AND base = o.tag AND l.root = asked_root AND l.tag = base),
      r.seq),
    'row', memoryd.show(CASE said WHEN 'taken' THEN x ELSE r END),
    'sibling', CASE WHEN said = 'conflict' THEN
      jsonb_build_object('id', memoryd.hex(s.id), 'seq', s.seq, 'tag', memoryd.hex(s.tag),
        'conflict_of', memoryd.hex(s.conflict_of)) END);
END $$;

-- Erase a memory, those that are other versions of it, and their vectors; return the last number given.
CREATE FUNCTION memoryd.purge_rows(m memoryd.mem, asides uuid[], last bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  k memoryd.mem;
  ids uuid[] := ARRAY[m.id];
  -- What wants the key of another memory says so in the versions of it, too.
  wanted uuid := (
    SELECT r.conflict_of FROM memoryd.mem r
    WHERE r.root = m.root AND r.id = m.id AND NOT memoryd.is_version(r.conflict_of, r.id));
BEGIN
  last := last + 1;
  m.seq := last; m.deleted := true; m.purged := true; m.conflict_of := NULL;
  PERFORM memoryd.put_row(m);
  FOR k IN
    SELECT * FROM memoryd.mem s WHERE s.root = m.root AND NOT s.purged AND s.id = ANY(
      asides || ARRAY(
        SELECT c.id FROM memoryd.mem c
        WHERE c.root = m.root AND c.id <> m.id AND c.conflict_of IN (m.id, wanted) AND memoryd.is_version(c.id, m.id)))
    ORDER BY s.id
  LOOP
    last := last + 1;
    k.seq := last; k.tag := gen_random_uuid(); k.deleted := true; k.purged := true; k.conflict_of := NULL;
    k.was_life := NULL; k.was_seq := NULL; k.was_changed := false; k.device := m.device;
    PERFORM memoryd.put_row(k);
    ids := ids || k.id;
  END LOOP;
  IF to_regclass('memoryd.vec') IS NOT NULL THEN  -- there is none without pgvector
    EXECUTE 'DELETE FROM memoryd.vec v WHERE v.root = $1 AND v.id = ANY($2) AND v.model IN'
      ' (SELECT o.model FROM memoryd.models o WHERE o.root = $1)' USING m.root, ids;
  END IF;
  RETURN last;
END $$;
"""

_OFFER = f"""
CREATE FUNCTION memoryd.offer(asked_root text, device text, known_life uuid, known_seq bigint, offers text[])
RETURNS jsonb LANGUAGE plpgsql {DEFINER}
-- Each question is about single rows; what is known of how large a table is may be from when it was empty.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  head memoryd.heads;
  before bigint;
  one text;
  number bigint;
  answer jsonb;
  reason text;
  answers jsonb[] := '{{}}';
  size bigint := 0;
BEGIN
  PERFORM memoryd.check_write(asked_root);  -- who may not write does not even wait for those who do
  head := memoryd.hold_head(asked_root);
  PERFORM memoryd.check_write(asked_root);  -- and a role that lost its grant meanwhile may not
  IF head.root IS NULL THEN
    RAISE insufficient_privilege USING MESSAGE = format('there is no root %s', asked_root);
  END IF;
  IF known_life IS NOT NULL AND NOT EXISTS (
    SELECT FROM memoryd.lives l WHERE l.root = asked_root AND l.life = known_life AND known_seq <= coalesce(
      (SELECT min(n.start) - 1 FROM memoryd.lives n WHERE n.root = asked_root AND n.start > l.start), head.seq)
  ) THEN
    RETURN jsonb_build_object('seq', head.seq, 'life', memoryd.hex(head.life), 'parted', true);
  END IF;
  before := head.seq;
  FOREACH one IN ARRAY offers LOOP
    BEGIN  -- a savepoint: what is refused holds up no other
      SELECT j.number, j.answer INTO STRICT number, answer
        FROM memoryd.judge(asked_root, device, one::jsonb, head.seq) AS j;
      head.seq := number;
    EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
      GET STACKED DIAGNOSTICS reason = MESSAGE_TEXT;
      answer := jsonb_build_object('id', '', 'said', 'refused', 'reason', reason);
    END;
    answers := answers || answer;
    size := size + octet_length(answer::text);
    EXIT WHEN size > {ANSWERED_BYTES};
  END LOOP;
  IF head.seq > before THEN
    IF head.notified_at BETWEEN clock_timestamp() - interval '1 second' AND clock_timestamp() THEN
      NULL;  -- a notice costs every commit of the server
    ELSE
      PERFORM pg_notify(head.channel, '');
      head.notified_at := clock_timestamp();
    END IF;
    PERFORM memoryd.write_head(head);
  END IF;
  RETURN jsonb_build_object('seq', head.seq, 'life', memoryd.hex(head.life), 'answers', to_jsonb(answers));
END $$;
"""

JUDGING = _HEADS + MERGE + _ROWS + _JUDGE + _OFFER
