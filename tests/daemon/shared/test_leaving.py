"""What never leaves a machine, and what nobody without a grant sees."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conversing import FACTS, Model
from memoryd.client import Client
from memoryd.client.protocol import Consolidate, EndSession, Share
from memoryd.client.shared.calls import GetSharing, ShareRoot
from memoryd.daemon.conversations.worker import Worker
from postgres import Postgres
from waiting import wait_until

SAID = [*FACTS[:30], "My dentist is in the Elm street.", "My sister is called Wilhelmina."]


@contextmanager
def day_of_agents(start_daemon: Callable[..., Any], **settings: Any) -> Iterator[Client]:
    """A daemon on which agents talked, which draws facts and summaries out of that."""
    daemon = start_daemon(cognition={"quiet_s": 0.05, "summary_after_s": 0.05}, **settings)
    daemon.core.cognition.provider = Model()
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


@pytest.mark.slow
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
