"""What never leaves a machine, and what nobody without a grant sees."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from conversing import FACTS
from memoryd.client import Client
from memoryd.client.protocol import Consolidate, EndSession, GetSharing, GrantRoot, Share, ShareRoot
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.shared import server
from postgres import Postgres
from waiting import wait_until

SAID = [*FACTS[:30], "My dentist is in the Elm street.", "My sister is called Wilhelmina."]


@contextmanager
def day_of_agents(start_daemon: Callable[..., Any], **settings: Any) -> Iterator[Client]:
    """A daemon on which agents talked, and which drew facts and summaries out of that."""
    daemon = start_daemon(cognition={"quiet_s": 0.05, "summary_after_s": 0.05}, **settings)
    worker = Worker(daemon.core)
    worker.start()
    try:
        with daemon.client("acme/api") as client:
            yield client
    finally:
        worker.close()


def talk(client: Client) -> None:
    """Say much, let it become facts and summaries, move it through the tiers."""
    for number, text in enumerate(SAID):
        client.observe([{"role": "user", "content": text}], session=f"s{number // 16}")
    for session in ("s0", "s1"):
        client.call(EndSession(session=session, namespace="acme/api"))
    wait_until(lambda: {"extraction", "session_summary"} <= {m.source for m in client.list(limit=1000)})
    client.call(Consolidate(namespace="acme/api"))


def rows(postgres: Postgres, database: str) -> list[Any]:
    return postgres.sql("SELECT body, ns FROM memoryd.mem WHERE NOT deleted ORDER BY seq", database)


def read_all(postgres: Postgres, database: str) -> str:
    """Return every row of every table of the server as text."""
    tables = postgres.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'memoryd'", database)
    return "".join(str(postgres.sql(f"SELECT t::text FROM memoryd.{table} t", database)) for (table,) in tables)


def settled(client: Client) -> bool:
    [root] = client.call(GetSharing()).roots
    return root.waiting == 0 and root.state == "ready"


@pytest.fixture
def address(postgres: Postgres, database: str) -> str:
    return postgres.address(database=database)


def test_nothing_of_conversations_leaves_unless_it_is_shared_by_name(
    start_daemon: Callable[..., Any], address: str, postgres: Postgres, with_vectors: str
) -> None:
    database = with_vectors
    with day_of_agents(start_daemon) as client:
        talk(client)
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme", "acme/api"]))
        talk(client)
        client.add("said on purpose")
        turn = next(memory for memory in client.list(limit=1000) if memory.content == SAID[-2])
        client.update(turn.id, importance=0.9)
        wait_until(lambda: settled(client))
        assert [body["content"] for body, _ in rows(postgres, database)] == ["said on purpose"]
        shared = next(memory for memory in client.list(limit=1000) if memory.content == SAID[-1])
        client.call(Share(ids=[shared.id], to="acme", namespace="acme/api"))
        wait_until(lambda: len(rows(postgres, database)) == 2 and settled(client))
        assert rows(postgres, database)[-1][1] == "acme"
        wait_until(lambda: postgres.sql("SELECT count(*) FROM memoryd.vec", database) == [(2,)])
        stored = read_all(postgres, database)
        assert "said on purpose" in stored
        assert "dentist" not in stored
        assert not any(fact in stored for fact in FACTS)


def test_conversations_leave_where_a_person_said_so(
    start_daemon: Callable[..., Any], address: str, postgres: Postgres, database: str
) -> None:
    with day_of_agents(start_daemon) as client:
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme/api"], conversations=True))
        talk(client)
        wait_until(lambda: settled(client))
        sources = {body["source"] for body, _ in rows(postgres, database)}
        assert {"extraction", "session_summary"} <= sources


def statements(owner: server.Server) -> Iterator[tuple[str, str]]:
    """Yield a statement for each way to each table of the schema."""
    listed = owner.run(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'memoryd' AND c.relkind IN ('r', 'v', 'm', 'p', 'f')"
    )
    for (table,) in listed.fetchall():
        columns = owner.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (f"memoryd.{table}",),
        ).fetchall()
        if "root" not in {column for (column,) in columns}:
            continue
        yield table, f"SELECT count(*) FROM memoryd.{table} WHERE root = 'acme'"
        yield table, f"UPDATE memoryd.{table} SET root = root WHERE root = 'acme'"
        yield table, f"UPDATE memoryd.{table} SET root = 'other' WHERE root = 'acme'"
        yield table, f"DELETE FROM memoryd.{table} WHERE root = 'acme'"
        yield table, f"SELECT count(*) FROM memoryd.{table} WHERE root = 'acme' FOR UPDATE"
        yield table, f"COPY memoryd.{table} TO STDOUT"
    yield "heads", "INSERT INTO memoryd.heads VALUES ('acme2', 0)"
    yield "grants", "INSERT INTO memoryd.grants VALUES (session_user, 'acme', true)"
    yield "grants", "UPDATE memoryd.grants SET can_write = true"
    yield (
        "mem",
        (
            "INSERT INTO memoryd.mem (root, id, seq, vtag, anc, ns, body, deleted, purged, machine)"
            " VALUES ('acme', gen_random_uuid(), 99, gen_random_uuid(), '{}', 'acme', '{}', false, false, 'x')"
        ),
    )
    functions = owner.run(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = 'memoryd'"
    ).fetchall()
    assert functions == [("memoryd.find_words(text,text[],text[],integer)",)], "call it here as well"
    yield "find_words", "SELECT count(*) FROM memoryd.find_words('acme', '{acme}', '{acme, alone}', 10)"


def count_seen(connection: "psycopg.Connection[Any]", statement: str) -> int:
    """Return how many rows of `acme` a statement shows or touches."""
    try:
        if statement.startswith("COPY"):
            with connection.cursor().copy(statement) as copied:
                return sum(b"acme" in bytes(block) for block in copied)
        done = connection.execute(statement)  # type: ignore[arg-type]
    except psycopg.errors.InsufficientPrivilege:
        return 0
    except psycopg.errors.FeatureNotSupported:  # FOR UPDATE with an aggregate
        return 0
    return int(done.fetchone()[0]) if done.description else done.rowcount  # type: ignore[index]


def test_a_role_without_a_grant_sees_nothing_by_any_statement(
    start_daemon: Callable[..., Any], with_vectors: str, address: str, postgres: Postgres, database: str
) -> None:
    stranger, neighbour = f"stranger_{database}", f"neighbour_{database}"
    for role in (stranger, neighbour):
        postgres.sql(f"CREATE ROLE {role} LOGIN")
    try:
        with start_daemon().client("acme") as client:
            client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
            client.add("of acme alone")
            wait_until(lambda: settled(client))
            wait_until(lambda: postgres.sql("SELECT count(*) FROM memoryd.vec", database) == [(1,)])
            client.call(GrantRoot(root="other", role=neighbour, server=address))
            owner = server.connect(address)
            tried = list(statements(owner))
            assert count_seen(owner.connection, tried[-1][1]) == 1, "who may read finds it"
            owner.close()
            assert {"mem", "heads", "log", "machines", "grants", "models", "vec", "vec_0"} <= {
                table for table, _ in tried
            }
            for role in (stranger, neighbour):
                with psycopg.connect(postgres.address(role, database), autocommit=True) as connection:
                    seen = [statement for _, statement in tried if count_seen(connection, statement)]
                    assert seen == [], role
            assert rows(postgres, database)[0][0]["content"] == "of acme alone"
    finally:
        for role in (stranger, neighbour):
            postgres.sql(f"DROP OWNED BY {role}", database)
            postgres.sql(f"DROP ROLE {role}")
