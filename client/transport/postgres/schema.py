"""The schema of a root: tables, the trigger that writes the history, and search functions."""

from typing import Any, NamedTuple

from memoryd.client.errors import Forbidden, Invalid, Unavailable
from memoryd.client.protocol import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from memoryd.client.protocol.shared import Greeting

VERSION = 2
OLDEST_SERVER, OLDEST_VECTOR = 16, (0, 8)
MOST_DIMENSIONS = 2000  # limit of pgvector's index
LATEST = 7_258_118_400.0  # the year 2200
MAX_WORD_BYTES, MAX_PATH_BYTES = 128, 4096
EXACT = 20_000  # up to this many rows within reach are compared one by one; for more the index is used
COUNTED = 2_000  # rows with a word

# Columns of a memory that members set; the trigger sets all others.
GIVEN = (
    "id namespace type content summary metadata importance source origin created_at expires_at pinned superseded_by"
    " path start_line end_line merges stems embedding".split()
)
# `fill_in` puts in what @NAME@ stands for: @VECTOR@ is the schema of the extension, @SIZE@ the dimensions.
_SCHEMA = f"""
CREATE SCHEMA @SCHEMA@;
CREATE TABLE @SCHEMA@.meta (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  version integer NOT NULL,
  model text NOT NULL,       -- whose vectors the memories have
  dimensions integer NOT NULL,
  repositories text[] NOT NULL DEFAULT '{{}}'  -- patterns of the remotes of its checkouts
);
CREATE TABLE @SCHEMA@.memories (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{{32}}$'),
  namespace text COLLATE "C" NOT NULL
    CHECK (octet_length(namespace) <= 512 AND starts_with(namespace || '/', '@ROOT@/')),
  type text COLLATE "C" NOT NULL CHECK (octet_length(type) BETWEEN 1 AND {MAX_WORD_BYTES}),
  content text NOT NULL CHECK (octet_length(content) BETWEEN 1 AND {MAX_CONTENT_BYTES}),
  summary text NOT NULL DEFAULT '' CHECK (octet_length(summary) <= {MAX_CONTENT_BYTES}),
  metadata json NOT NULL DEFAULT '{{}}'
    CHECK (json_typeof(metadata) = 'object' AND octet_length(metadata::text) <= {MAX_METADATA_BYTES}),
  importance float8 NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
  source text NOT NULL DEFAULT 'manual' CHECK (octet_length(source) BETWEEN 1 AND {MAX_WORD_BYTES}),
  origin text NOT NULL DEFAULT 'agent' CHECK (origin IN ('person', 'agent', 'heard', 'file', 'import')),
  created_at float8 NOT NULL CHECK (created_at BETWEEN 0 AND {LATEST}),  -- times are seconds since 1970, in UTC
  updated_at float8 NOT NULL CHECK (updated_at BETWEEN 0 AND {LATEST}),
  expires_at float8 CHECK (expires_at BETWEEN 0 AND {LATEST}),
  pinned boolean NOT NULL DEFAULT false,
  superseded_by text COLLATE "C" REFERENCES @SCHEMA@.memories ON DELETE SET NULL,
  path text COLLATE "C" CHECK (octet_length(path) BETWEEN 1 AND {MAX_PATH_BYTES}),
  start_line bigint CHECK (start_line >= 1),
  end_line bigint CHECK (end_line >= start_line),
  merges boolean NOT NULL DEFAULT true,  -- whether an equal text is this memory
  text_hash bytea NOT NULL,
  stems text[] COLLATE "C" NOT NULL CHECK (cardinality(stems) <= 50000),
  embedding @VECTOR@.vector(@SIZE@),     -- NULL: nobody had the model when it was saved
  author text NOT NULL,      -- the role whose words they are
  version integer NOT NULL
);
CREATE UNIQUE INDEX memories_equal ON @SCHEMA@.memories (namespace, type, text_hash)
  WHERE merges AND superseded_by IS NULL;
CREATE INDEX memories_namespace ON @SCHEMA@.memories (namespace, created_at);
CREATE INDEX memories_superseded ON @SCHEMA@.memories (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_waiting ON @SCHEMA@.memories (id) WHERE embedding IS NULL;
CREATE INDEX memories_stems ON @SCHEMA@.memories USING gin (stems);
CREATE INDEX memories_embedding ON @SCHEMA@.memories USING hnsw (embedding @VECTOR@.vector_cosine_ops);
CREATE TABLE @SCHEMA@.history (
  memory text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  at float8 NOT NULL,
  author text NOT NULL,      -- the role that made the change
  action text NOT NULL,
  operation text COLLATE "C" NOT NULL,
  said jsonb NOT NULL,       -- the memory after it; deleted: before it
  PRIMARY KEY (memory, version)
);
CREATE INDEX history_operation ON @SCHEMA@.history (operation);
-- Saves that were made, by the id that their daemon gave them: the same sent again does nothing.
CREATE TABLE @SCHEMA@.applied (
  key text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 64),
  memory text NOT NULL DEFAULT '',
  outcome text NOT NULL DEFAULT '',
  operation text NOT NULL DEFAULT '',
  at float8 NOT NULL DEFAULT extract(epoch FROM now())
);
CREATE INDEX applied_at ON @SCHEMA@.applied (at);

CREATE FUNCTION @SCHEMA@.keep_history() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  passed float8 := extract(epoch FROM clock_timestamp());
  derived text[] := '{{stems,embedding,embedding_next,text_hash}}';
BEGIN
  IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - derived = to_jsonb(OLD) - derived THEN
    RETURN NEW;  -- a vector that was missing: no other version
  END IF;
  IF TG_WHEN = 'BEFORE' THEN
    -- Not the saver's: a row that claimed the hash of another text would swallow that one.
    NEW.text_hash := sha256(convert_to(lower(btrim(regexp_replace(NEW.content, '\\s+', ' ', 'g'))), 'UTF8'));
    NEW.updated_at := passed;
    IF TG_OP = 'UPDATE' AND NEW.content <> OLD.content THEN
      NEW := jsonb_populate_record(NEW, '{{"embedding_next": null}}');  -- if there is such a column
    END IF;
    IF TG_OP = 'INSERT' THEN
      NEW.author := session_user;
      NEW.version := 1 + coalesce((SELECT max(version) FROM @SCHEMA@.history WHERE memory = NEW.id), 0);
    ELSE
      NEW.author := CASE WHEN (NEW.content, NEW.summary, NEW.type) IS DISTINCT FROM (OLD.content, OLD.summary, OLD.type)
        THEN session_user ELSE OLD.author END;
      NEW.version := OLD.version + 1;
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' THEN
    NEW := OLD;
    NEW.version := OLD.version + 1;
  END IF;
  INSERT INTO @SCHEMA@.history VALUES (
    NEW.id, NEW.version, passed, session_user,
    CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'updated' ELSE 'deleted' END,
    coalesce(nullif(current_setting('memoryd.operation', true), ''), md5(NEW.id || NEW.version)),
    to_jsonb(NEW) - derived);
  RETURN NULL;
END $body$;
REVOKE EXECUTE ON FUNCTION @SCHEMA@.keep_history FROM PUBLIC;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON @SCHEMA@.memories
  FOR EACH ROW EXECUTE FUNCTION @SCHEMA@.keep_history();
CREATE TRIGGER keep_history AFTER INSERT OR UPDATE OR DELETE ON @SCHEMA@.memories
  FOR EACH ROW EXECUTE FUNCTION @SCHEMA@.keep_history();

CREATE FUNCTION @SCHEMA@.erase(target text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'MEMBER') AND session_user IS DISTINCT FROM
    (SELECT author FROM @SCHEMA@.history WHERE memory = target ORDER BY version LIMIT 1)
  THEN
    RAISE insufficient_privilege USING MESSAGE = 'only who saved a memory and the owner of the root erase it';
  END IF;
  DELETE FROM @SCHEMA@.memories WHERE id = target;
  DELETE FROM @SCHEMA@.history WHERE memory = target;
  RETURN FOUND;
END $body$;
COMMENT ON FUNCTION @SCHEMA@.erase IS 'Delete a memory with its history, for good.';
REVOKE EXECUTE ON FUNCTION @SCHEMA@.erase FROM PUBLIC;

-- The nearest and the best by words of what is within reach (`places` and what is inside `inner_of`; both NULL: all),
-- with the number of rows within reach and of those among them that hold each stem, counted to a limit.
CREATE FUNCTION @SCHEMA@.search(
  asked @VECTOR@.vector, asked_stems text[], places text[], inner_of text, kinds text[], sources text[],
  since float8, until float8, path_begins text, matching jsonpath, passed float8, depth integer
) RETURNS TABLE (id text, similarity float8, total bigint, counts bigint[]) LANGUAGE plpgsql STABLE SECURITY INVOKER
SET search_path = pg_catalog, @VECTOR@, pg_temp
SET plan_cache_mode = force_custom_plan
SET hnsw.ef_search = 200
SET hnsw.iterative_scan = relaxed_order
SET hnsw.max_scan_tuples = 200000
AS $body$
#variable_conflict use_column
DECLARE
  telling text[];
  near text[] := '{{}}';
  worded text[] := '{{}}';
  everything boolean := places IS NULL AND inner_of IS NULL;
BEGIN
  SELECT count(*) INTO total FROM (SELECT FROM @SCHEMA@.memories m WHERE @REACH@ LIMIT {EXACT} + 1) x;
  counts := ARRAY(
    SELECT (SELECT count(*) FROM (
      SELECT FROM @SCHEMA@.memories m WHERE m.stems @> ARRAY[q.stem] AND @REACH@ LIMIT {COUNTED}) x)
    FROM unnest(asked_stems) WITH ORDINALITY q(stem, at) ORDER BY q.at);
  -- The commonest words only weigh what the rarer ones find, as soon as these find enough.
  SELECT array_agg(c.stem) INTO telling FROM (
    SELECT q.stem, q.n, sum(q.n) OVER (ORDER BY q.n, q.stem) AS so_far
    FROM unnest(asked_stems, counts) q(stem, n) WHERE q.n > 0) c
    WHERE c.so_far <= {EXACT} AND (c.n < {COUNTED} OR c.so_far = c.n);
  IF telling IS NOT NULL THEN
    worded := ARRAY(
      SELECT m.id FROM @SCHEMA@.memories m
      WHERE m.stems && telling AND @REACH@ AND @FILTER@
      ORDER BY (SELECT sum(ln(1 + (total + 0.5) / (q.n + 0.5))) FROM unnest(asked_stems, counts) q(stem, n)
        WHERE q.stem = ANY (m.stems)) DESC, m.id LIMIT depth);
  END IF;
  IF asked IS NOT NULL AND total <= {EXACT} THEN
    near := ARRAY(SELECT m.id FROM @SCHEMA@.memories m WHERE m.embedding IS NOT NULL AND @REACH@ AND @FILTER@
      ORDER BY (m.embedding <=> asked) + 0.0 LIMIT depth);  -- a sum is no order of the index
  ELSIF asked IS NOT NULL THEN
    near := ARRAY(SELECT m.id FROM @SCHEMA@.memories m WHERE @REACH@ AND @FILTER@
      ORDER BY m.embedding <=> asked LIMIT depth);
  END IF;
  RETURN QUERY SELECT m.id::text, 1 - (m.embedding <=> asked), total, counts
    FROM @SCHEMA@.memories m WHERE m.id = ANY (near || worded);
END $body$;
"""
_REACH = (
    "(everything OR m.namespace = ANY (places)"
    " OR m.namespace >= inner_of || '/' AND m.namespace < inner_of || '0')"  # '0' follows '/'
)
_FILTER = (
    "(kinds IS NULL OR m.type = ANY (kinds)) AND (sources IS NULL OR m.source = ANY (sources))"
    " AND (since IS NULL OR m.created_at > since) AND (until IS NULL OR m.created_at < until)"
    " AND (path_begins IS NULL OR starts_with(m.path, path_begins))"
    " AND (matching IS NULL OR @METADATA@ @@ matching)"
    " AND (m.expires_at IS NULL OR m.expires_at > passed OR m.pinned) AND NOT EXISTS (SELECT FROM @SCHEMA@.memories s"
    " WHERE s.id = m.superseded_by AND (s.expires_at IS NULL OR s.expires_at > passed OR s.pinned))"
)
METADATA = (
    "(m.metadata::jsonb || jsonb_build_object('author', m.author))"  # the metadata of a row `m` as readers see it
)


class Facts(NamedTuple):
    """Facts about a root that are read when a connection to it is opened."""

    role: str
    may_write: bool
    model: str
    dimensions: int
    server: str  # its version, and that of pgvector
    repositories: list[str]

    def greet(self, root: str) -> Greeting:
        """Return the greeting that another machine would send: facts about the root, and the role's rights in it."""
        return Greeting(
            name=self.role,
            namespace=root,
            role="agent" if self.may_write else "reader",
            repositories=self.repositories,
        )


def name_of(root: str) -> str:
    """Return the name of the schema of a root; names of roots are plain words and need no quotes."""
    return f"memoryd_{root}"


def fill_in(statements: str, connection: Any, root: str, model: str, dimensions: int) -> str:
    """Return statements with the names of a root filled in; raise `Invalid` if vectors are too large for the index."""
    if dimensions > MOST_DIMENSIONS:
        raise Invalid(f"{model} has {dimensions} dimensions; pgvector's index takes {MOST_DIMENSIONS}.")
    sql = (
        "SELECT quote_ident(n.nspname), quote_literal(%s) FROM pg_extension e"
        " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    )
    vector_schema, quoted_model = connection.execute(sql, [model]).fetchone()
    texts = {"REACH": _REACH, "FILTER": _FILTER, "METADATA": METADATA, "SCHEMA": name_of(root), "ROOT": root}
    texts |= {"VECTOR": vector_schema, "SIZE": str(dimensions), "MODEL": quoted_model}
    for name, text in texts.items():
        statements = statements.replace(f"@{name}@", text)
    return statements


def create(connection: Any, root: str, model: str, dimensions: int, repositories: list[str]) -> None:
    """Create the schema of a root; raise `Invalid` if it exists, or `Unavailable` if the server does not support it."""
    _check_server(connection)
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name_of(root)]).fetchone()
    if found:
        raise Invalid(f"The database has a schema {name_of(root)} already; name another root, or join this one.")
    connection.execute(fill_in(_SCHEMA, connection, root, model, dimensions))
    sql = f"INSERT INTO {name_of(root)}.meta (version, model, dimensions, repositories) VALUES (%s, %s, %s, %s)"
    connection.execute(sql, [VERSION, model, dimensions, repositories])


def check(connection: Any, root: str) -> Facts:
    """Return facts about a root; raise an error that explains why it cannot be used."""
    server = _check_server(connection)
    sql = "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s"
    found = connection.execute(sql, [name_of(root)]).fetchone()
    if found is None:
        raise Unavailable(f"There is no root {root} in that database; `memctl shared create` makes it.")
    sql = f"SELECT session_user, CASE WHEN %s THEN has_table_privilege('{name_of(root)}.meta', 'SELECT') END"
    role, may_read = connection.execute(sql, found).fetchone()
    if not may_read:
        raise Forbidden(f"The role {role} may not read the root {root}; its owner has to grant it.")
    [version] = connection.execute(f"SELECT version FROM {name_of(root)}.meta").fetchone()
    if version != VERSION:
        kind = "a newer memoryd made it" if version > VERSION else "an older memoryd made it"
        raise Unavailable(f"The root {root} there has version {version} and this memoryd reads {VERSION}: {kind}.")
    sql = (
        f"SELECT has_table_privilege('{name_of(root)}.memories', 'DELETE'), model, dimensions, repositories"
        f" FROM {name_of(root)}.meta"
    )
    may_write, model, dimensions, repositories = connection.execute(sql).fetchone()
    return Facts(role, may_write, model, dimensions, server, repositories)


def _check_server(connection: Any) -> str:
    """Return the versions of a server and its pgvector; raise `Unavailable` if they do not support roots."""
    sql = (
        "SELECT current_setting('server_version_num')::integer / 10000, current_setting('server_encoding'),"
        " (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
    )
    major, encoding, vector = connection.execute(sql).fetchone()
    if major < OLDEST_SERVER:
        raise Unavailable(f"The server is PostgreSQL {major}; a root needs {OLDEST_SERVER} or newer.")
    if encoding != "UTF8":
        raise Unavailable(f"The database has the encoding {encoding}; a root needs UTF8.")
    if vector is None:
        raise Unavailable("The database has no extension `vector`: CREATE EXTENSION vector, as its owner.")
    if tuple(map(int, vector.split(".")[:2])) < OLDEST_VECTOR:
        raise Unavailable(f"The database has pgvector {vector}; a root needs 0.8: ALTER EXTENSION vector UPDATE.")
    return f"PostgreSQL {major}, pgvector {vector}"
