"""A role without a grant, or after it lost it, sees nothing of a root and writes nothing to it."""

import secrets
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import psycopg
import pytest
from desk import ROOT, Desk, grant, make_id, make_offer, revoke

from memoryd.client.errors import Forbidden, Unavailable
from memoryd.daemon.shared import exchange, schema, server, vectors
from postgres import Postgres

Denied = psycopg.errors.InsufficientPrivilege
OTHER = "other"


@pytest.fixture
def role(postgres: Postgres, with_vectors: str) -> Iterator[str]:
    """A role that may write the root `other`, and nothing of `acme`, which has a memory."""
    name = f"r{secrets.token_hex(4)}"
    postgres.sql(f"CREATE ROLE {name} LOGIN")
    grant(postgres, with_vectors, name, OTHER)
    yield name
    postgres.sql(f"DROP OWNED BY {name}", with_vectors)
    postgres.sql(f"DROP ROLE {name}")


@pytest.fixture
def owner(postgres: Postgres, with_vectors: str) -> Iterator[Desk]:
    made = Desk(postgres, with_vectors)
    made.look()
    made.one(make_offer("of acme alone", key="k"))
    yield made
    made.close()


@pytest.fixture
def stranger(postgres: Postgres, with_vectors: str, role: str) -> Iterator[Desk]:
    made = Desk(postgres, with_vectors, role)
    yield made
    made.close()


def test_no_table_can_be_touched(postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk) -> None:
    tables = postgres.sql(
        "SELECT c.oid::regclass::text, c.relrowsecurity FROM pg_class c"
        " WHERE c.relnamespace = 'memoryd'::regnamespace AND c.relkind IN ('r', 'p')",
        with_vectors,
    )
    assert {"memoryd.mem", "memoryd.grants", "memoryd.vec", "memoryd.vec_0"} <= {str(table) for table, _ in tables}
    for table, is_secured in tables:
        assert is_secured, table
        for statement in (
            "SELECT FROM {}",
            "EXPLAIN SELECT FROM {}",
            "EXPLAIN DELETE FROM {}",
            "INSERT INTO {} DEFAULT VALUES",
            "DELETE FROM {}",
            "TRUNCATE {}",
            "COPY {} TO STDOUT",
            "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
            "CREATE TRIGGER t BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION pg_catalog.tsvector_update_trigger()",
        ):
            with pytest.raises(Denied):
                stranger.server.run(statement.format(table))
    postgres.sql(f"GRANT ALL ON ALL TABLES IN SCHEMA memoryd TO {stranger.server.connection.info.user}", with_vectors)
    for table, _ in tables:  # a grant by mistake shows nothing either
        assert stranger.server.value(f"SELECT count(*) FROM {table}") == 0
        assert stranger.server.value(f"SELECT reltuples FROM pg_class WHERE oid = '{table}'::regclass") is not None


def test_no_function_is_everybodys(postgres: Postgres, with_vectors: str, role: str) -> None:
    listed = postgres.sql(
        f"SELECT p.proname, has_function_privilege('{role}', p.oid, 'EXECUTE'), p.prosecdef,"
        " coalesce(array_to_string(p.proconfig, ' '), ''), p.proacl IS NULL OR EXISTS ("
        "   SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0)"
        " FROM pg_proc p WHERE p.pronamespace = 'memoryd'::regnamespace",
        with_vectors,
    )
    assert not [name for name, _, _, _, is_public in listed if is_public]
    called = {name for name, may_call, *_ in listed if may_call}
    assert called == {name for name, _, is_definers, _, _ in listed if is_definers} == set(schema.CALLED)
    for name, _, is_definers, settings, _ in listed:
        assert not is_definers or "search_path=pg_catalog, pg_temp" in str(settings), name


def test_who_has_no_grant_at_all_finds_nothing_to_call(postgres: Postgres, with_vectors: str, owner: Desk) -> None:
    name = f"r{secrets.token_hex(4)}"
    postgres.sql(f"CREATE ROLE {name} LOGIN")
    nobody = Desk(postgres, with_vectors, name)
    for ask in (nobody.look, lambda: nobody.one(make_offer("x")), lambda: schema.read_version(nobody.server)):
        with pytest.raises(Denied):
            ask()
    postgres.sql("ANALYZE memoryd.mem", with_vectors)
    about = "SELECT reltuples FROM pg_class WHERE relnamespace = 'memoryd'::regnamespace AND relname = 'mem'"
    assert nobody.server.value(about) == 1, "as the page says"
    nobody.close()
    postgres.sql(f"DROP ROLE {name}")


def test_functions_tell_nothing_of_another_root(owner: Desk, stranger: Desk) -> None:
    opened = stranger.server
    [id] = owner.rows()
    vectors.take_lease(owner.server, ROOT, "m", 4, "one")
    feed = vectors.read_feed(owner.server, ROOT, 0)
    vector = np.ones(4, dtype=np.float32)
    vectors.put(owner.server, ROOT, "m", [(feed[0], b"hash", vector)], feed)
    asked = vectors.NearestQuery("m", vector, [ROOT], 5, True, ["alone"])
    assert [near.remote.id for near in vectors.find_nearest(owner.server, ROOT, asked)[1]] == [id]
    assert set(vectors.take(owner.server, ROOT, "m", [id])) == {b"hash"}

    for refused in (
        stranger.look,
        lambda: exchange.pull(opened, ROOT, owner.life, 0),
        lambda: exchange.pull(opened, "no such root", "", 0),
    ):
        with pytest.raises(Forbidden):
            refused()
    for denied in (
        lambda: stranger.one(make_offer("x")),
        lambda: exchange.offer(opened, ROOT, "m", owner.life, owner.mark, []),
        lambda: vectors.take_lease(opened, ROOT, "m", 4, "m"),
        lambda: vectors.put(opened, ROOT, "m", [], feed),
    ):
        with pytest.raises(Denied):
            denied()
    assert opened.run(f"SELECT * FROM memoryd.feed('{ROOT}', 0, 9, 999)").fetchall() == []
    assert exchange.fetch(opened, ROOT, [id]) == []
    assert exchange.count_rows(opened, ROOT) == 0
    assert not exchange.has_root(opened, ROOT)
    assert exchange.find_start(opened, ROOT, 0) is None
    assert exchange.list_pinned(opened, ROOT, 9, 9) == []
    assert exchange.note_machine(opened, ROOT, "m", 1) == []
    assert vectors.take(owner.server, ROOT, "another", [id]) == {}, "those of one model are for that model"
    assert vectors.read_feed(opened, ROOT, 0) == []
    assert vectors.take(opened, ROOT, "m", [id]) == {}
    assert vectors.has_few(opened, ROOT, "m", [ROOT])
    assert vectors.find_nearest(opened, ROOT, asked) == (0, [])
    assert owner.server.value("SELECT count(*) FROM memoryd.machines") == 0


def test_an_id_that_is_known_reaches_nothing_in_another_root(owner: Desk, stranger: Desk) -> None:
    [mine] = owner.rows().values()
    stranger.root = OTHER
    stranger.look()
    forged = make_offer("forged", id=mine.id, base=mine.tag, ns=OTHER, key="k", conflict_of=mine.id)
    answer = stranger.one(forged)
    assert (answer.said, answer.row) == ("taken", None), "there it is another memory"
    purge = make_offer(id=mine.id, purged=True, ns=OTHER)
    assert stranger.one(purge).said == "taken"
    assert stranger.one(make_offer("x", ns=ROOT)).said == "refused"
    assert stranger.one(make_offer("x", id=make_id(), ns=f"{OTHER}/../{ROOT}")).said == "taken"  # a name is a name
    assert owner.texts() == ["of acme alone"]
    assert owner.look().seq == 1
    assert list(owner.rows().values()) == [mine]


def test_who_may_read_does_not_write(
    postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk, role: str
) -> None:
    grant(postgres, with_vectors, role, ROOT, write=False)
    head = stranger.look()
    assert (head.can_write, head.seq, stranger.texts()) == (False, 1, ["of acme alone"])
    with pytest.raises(Denied):
        stranger.one(make_offer("x"))
    with pytest.raises(Denied):
        vectors.take_lease(stranger.server, ROOT, "m", 4, "m")
    assert exchange.note_machine(stranger.server, ROOT, "m", 1) == []


def test_channels_cannot_be_guessed_and_change(
    postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk, role: str
) -> None:
    grant(postgres, with_vectors, role, ROOT)
    known, other = stranger.look().channel, Desk(postgres, with_vectors, root=OTHER)
    assert known not in (other.look().channel, f"memoryd_{ROOT}")
    assert len(known) == len("memoryd_") + 32
    assert revoke(postgres, with_vectors, role)
    assert not stranger.server.is_open or not can_ask(stranger)
    again = Desk(postgres, with_vectors, role, root=OTHER)
    again.server.run(f"LISTEN {known}")
    assert owner.look().channel != known
    owner.one(make_offer("news"))
    postgres.sql(f"NOTIFY {known}, 'end'", with_vectors)
    assert [notice.payload for notice in again.server.connection.notifies(timeout=10, stop_after=1)] == ["end"]
    again.close()
    other.close()


def can_ask(desk: Desk) -> bool:
    try:
        return bool(desk.server.value("SELECT 1"))
    except psycopg.OperationalError:
        return False


@pytest.fixture
def weak(postgres: Postgres) -> Iterator[tuple[str, str, str]]:
    """A data base of an owner who may not end sessions of others: its name, the owner, a role that may write."""
    name = f"w{secrets.token_hex(4)}"
    boss, role = f"{name}_boss", f"{name}_role"
    postgres.sql(f"CREATE ROLE {boss} LOGIN")
    postgres.sql(f"CREATE ROLE {role} LOGIN")
    postgres.sql(f"CREATE DATABASE {name} OWNER {boss}")
    opened = server.connect(postgres.address(boss, name))
    schema.migrate(opened)
    schema.grant(opened, ROOT, role, True)
    opened.close()
    yield name, boss, role
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")
    postgres.sql(f"DROP ROLE {role}")
    postgres.sql(f"DROP ROLE {boss}")


def test_an_owner_who_is_no_superuser_makes_the_vectors_once_the_extension_is_there(
    postgres: Postgres, weak: tuple[str, str, str]
) -> None:
    database, boss, _ = weak
    with closing(server.connect(postgres.address(boss, database))) as opened:
        with pytest.raises(Denied):
            vectors.make(opened, {"m": 4})
        postgres.sql("CREATE EXTENSION vector SCHEMA public", database)
        assert vectors.make(opened, {"m": 4})


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_that_began_before_writes_nothing_afterwards(
    postgres: Postgres, weak: tuple[str, str, str], isolation: str
) -> None:
    database, boss, role = weak
    with closing(Desk(postgres, database, boss)) as owner, closing(Desk(postgres, database, role)) as desk:
        desk.server.run(f"BEGIN ISOLATION LEVEL {isolation}")
        desk.look()
        assert schema.revoke(owner.server, ROOT, role) is False, "its sessions go on"
        with pytest.raises((Denied, psycopg.errors.SerializationFailure)):
            desk.one(make_offer("too late"))
        desk.server.run("ROLLBACK")
        with pytest.raises(Denied):
            desk.one(make_offer("too late"))
        with pytest.raises(Forbidden):
            desk.look()
        assert owner.texts() == []


@pytest.mark.parametrize(("isolation", "seen"), [("READ COMMITTED", 0), ("REPEATABLE READ", 1)])
def test_a_transaction_that_began_before_sees_nothing_that_came_afterwards(
    postgres: Postgres, weak: tuple[str, str, str], isolation: str, seen: int
) -> None:
    database, boss, role = weak
    with closing(Desk(postgres, database, boss)) as owner, closing(Desk(postgres, database, role)) as desk:
        owner.look()
        owner.one(make_offer("before"))
        desk.server.run(f"BEGIN ISOLATION LEVEL {isolation}")
        desk.look()
        schema.revoke(owner.server, ROOT, role)
        owner.one(make_offer("afterwards"))
        assert len(desk.server.run(f"SELECT * FROM memoryd.feed('{ROOT}', 0, 9, 999)").fetchall()) == seen


@pytest.mark.slow
def test_who_holds_the_head_does_not_keep_its_grant(postgres: Postgres, weak: tuple[str, str, str]) -> None:
    database, boss, role = weak
    with closing(Desk(postgres, database, boss)) as owner, closing(Desk(postgres, database, role)) as desk:
        with desk.server.begin():
            desk.one(make_offer("written before"))
            with pytest.raises(Unavailable, match="revoke it once more"):
                schema.revoke(owner.server, ROOT, role)
        with pytest.raises(Denied):
            desk.one(make_offer("too late"))
        assert schema.revoke(owner.server, ROOT, role) is False
        assert owner.texts() == ["written before"]


def test_a_revoke_ends_what_is_under_way(
    postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk, role: str
) -> None:
    grant(postgres, with_vectors, role, ROOT)
    stranger.server.run("BEGIN")
    stranger.one(make_offer("not committed"))
    assert revoke(postgres, with_vectors, role)
    assert not can_ask(stranger)
    assert owner.texts() == ["of acme alone"]


def test_a_search_path_of_the_caller_decides_nothing(
    postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk, role: str
) -> None:
    opened, evil = stranger.server, f"evil_{role}"
    postgres.sql(f"CREATE SCHEMA {evil} AUTHORIZATION {role}; GRANT CREATE ON SCHEMA public TO {role}", with_vectors)
    caught = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught %', current_user; END $$"
    for place in (evil, "public"):
        for statement in (
            f"CREATE FUNCTION {place}.always(text, text) RETURNS boolean {caught}",
            f"CREATE FUNCTION {place}.always(name, text) RETURNS boolean {caught}",
            f"CREATE FUNCTION {place}.always(uuid, uuid) RETURNS boolean {caught}",
            f"CREATE FUNCTION {place}.always(bigint, bigint) RETURNS boolean {caught}",
            f"CREATE OPERATOR {place}.= (LEFTARG = text, RIGHTARG = text, FUNCTION = {place}.always)",
            f"CREATE OPERATOR {place}.= (LEFTARG = name, RIGHTARG = text, FUNCTION = {place}.always)",
            f"CREATE OPERATOR {place}.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = {place}.always)",
            f"CREATE OPERATOR {place}.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {place}.always)",
            f"CREATE FUNCTION {place}.format(text, text, text) RETURNS text {caught}",
            f"CREATE FUNCTION {place}.md5(text) RETURNS text {caught}",
            f"CREATE FUNCTION {place}.starts_with(text, text) RETURNS boolean {caught}",
            f"CREATE FUNCTION {place}.jsonb_build_object(text, text, text, text, text, text) RETURNS jsonb {caught}",
            f"CREATE FUNCTION {place}.pg_postmaster_start_time() RETURNS timestamptz {caught}",
            f"CREATE FUNCTION {place}.may_read(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            f"CREATE FUNCTION {place}.check_write(text) RETURNS void LANGUAGE sql AS 'SELECT'",
            f"CREATE TABLE {place}.grants AS SELECT '{role}'::text AS role, '{ROOT}'::text AS root, true AS can_write",
            f"CREATE TABLE {place}.mem (root text)",
            f"CREATE TABLE {place}.heads (root text)",
            f"CREATE DOMAIN {place}.uuid AS text CHECK (false)",
        ):
            opened.run(statement)
    for statement in (
        "CREATE TEMP TABLE grants (role text, root text, can_write boolean)",
        f"INSERT INTO pg_temp.grants VALUES ('{role}', '{ROOT}', true)",
        "CREATE TEMP TABLE mem (root text)",
        "CREATE TEMP TABLE heads (root text)",
    ):
        opened.run(statement)
    opened.run(f"SET search_path = {evil}, public, pg_temp, pg_catalog, memoryd")
    with pytest.raises(Denied):
        opened.value(f"SELECT memoryd.offer('{ROOT}'::text, 'd'::text, NULL, 0::bigint, '{{}}'::text[])")
    assert opened.run(f"SELECT * FROM memoryd.feed('{ROOT}'::text, 0::bigint, 9, 9::bigint)").fetchall() == []
    assert opened.run(f"SELECT * FROM memoryd.look('{ROOT}'::text, NULL)").fetchall() == []
    offer = f'{{"id": "{make_id()}", "tag": "{make_id()}", "ns": "{OTHER}", "deleted": false, "purged": false'
    offer += ', "body": {"content": "mine"}}'
    done = opened.value(
        f"SELECT memoryd.offer('{OTHER}'::text, 'd'::text, NULL, 0::bigint, ARRAY[%s]::text[])", (offer,)
    )
    assert [answer["said"] for answer in done["answers"]] == ["taken"]
    assert opened.run(f"SELECT ns FROM memoryd.feed('{OTHER}'::text, 0::bigint, 9, 9::bigint)").fetchall() == [(OTHER,)]
    query = (
        f"SELECT count(*) FROM memoryd.find_nearest('{OTHER}'::text, 'm'::text, '[1,1]', 2, ARRAY['{OTHER}'], 1, true)"
    )
    assert opened.value(query) == 0
    # What the owner does is not led astray either.
    schema.grant(owner.server, OTHER, role, True)
    assert vectors.make(owner.server, {"m2": 2})
    assert owner.texts() == ["of acme alone"]


def test_settings_of_the_caller_decide_nothing(
    postgres: Postgres, with_vectors: str, owner: Desk, stranger: Desk
) -> None:
    stranger.root = OTHER
    for setting in (
        "row_security = off",
        "standard_conforming_strings = off",
        "transform_null_equals = on",
        "plan_cache_mode = force_generic_plan",
        "synchronous_commit = off",
        "default_transaction_isolation = serializable",
    ):
        stranger.server.run(f"SET {setting}")
    first = make_offer("it's mine \\'; DROP", key="k", ns=OTHER)
    assert stranger.one(first).said == "taken"
    assert stranger.one(make_offer("more", id=first.id, base=first.tag, ns=OTHER)).said == "taken"
    assert stranger.texts() == ["more"]
    stranger.root = ROOT
    with pytest.raises(Forbidden):
        stranger.look()
