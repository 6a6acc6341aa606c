"""What never leaves a machine, and what nobody without a grant sees."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from machines import machines

from conversing import FACTS, Model
from memoryd.client import Client
from memoryd.client.protocol import Consolidate, EndSession, Feedback, Memory, Share
from memoryd.client.shared.calls import GetSharing, PurgeShared, ShareRoot
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.store import rows as memories
from postgres import Postgres
from waiting import wait_until
from workbench import ask

SAID = [*FACTS[:30], "My dentist is in the Elm street.", "My sister is called Wilhelmina."]
PAGE = Path(__file__).parents[3] / "docs" / "sharing.md"
# What the page says leaves with a memory: the fields of it that the server has.
LEAVES = {
    "text": {"content"},
    "summary": {"summary"},
    "type": {"type"},
    "source": {"source"},
    "importance": {"importance"},
    "pin": {"pinned"},
    "metadata": {"metadata"},
    "votes": {"votes"},
    "key": {"key"},
    "path and lines": {"path", "start_line", "end_line"},
    "times": {"created_at", "updated_at", "expires_at"},
    "number of turns": {"turns"},
    "what supersedes it": {"superseded_by"},
}
# Beside them the server has which memory it is and who changed it; the rest of a row it makes itself.
BESIDE = {"id": {"id"}, "namespace": {"root", "ns"}, "the name of the machine": {"device"}}
MADE_THERE = {
    *("seq", "tag", "size", "deleted", "purged", "conflict_of", "was_life", "was_seq", "was_changed", "author", "at"),
}


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


def test_of_a_memory_leaves_what_the_page_says_and_nothing_else(
    postgres: Postgres, database: str, folder: Path
) -> None:
    with machines(folder, postgres.address(database=database), "laptop") as (one,):
        id = one.add(
            "as it was before", summary="short", metadata={"a": 1}, pinned=True, expires_at=2e9, path="/a",
            start_line=1, end_line=2, neighbours=["standing beside it"],
        )  # fmt: skip
        one.add("what supersedes it", supersedes=id)
        one.update(id, content="as it is now")
        ask(one.core, Feedback(id=id, useful=True))
        one.give_key(id, "port")
        there = {"access_count": 7, "last_accessed_at": 1.8e9, "ttl_s": 9.0, "turns": 3, "searchable": 0}
        with one.core.store.reading() as connection:
            [row] = memories.read_ids(connection, [id]).values()
        one.core.store.write(lambda t: memories.change(t.connection, row.row, there)).result()
        with one.core.store.reading() as connection:
            [row] = memories.read_ids(connection, [id]).values()
        assert [name for name in memories.COLUMNS if getattr(row, name) in (None, "", "{}", 0)] == ["searchable"]
        one.sync()
    [(body, columns)] = postgres.sql(f"SELECT body, to_jsonb(m) FROM memoryd.mem m WHERE id = '{id}'", database)
    assert None not in body.values()
    assert set(body) == set().union(*LEAVES.values())
    assert set(columns) == {"body", "key", *MADE_THERE, *set().union(*BESIDE.values())}
    assert (columns["device"], columns["ns"]) == ("laptop", "acme/api")
    stored = read_all(postgres, database)
    assert "as it is now" in stored
    assert "as it was before" not in stored
    assert "standing beside it" not in stored
    [line] = [line for line in PAGE.read_text().splitlines() if line.startswith("| text, ")]
    said = re.split("[,;] ", line.split("|")[1].strip())
    assert set(said) == {*LEAVES, *BESIDE, "vectors where the server has pgvector"}


def test_chunks_of_files_stay_in_a_namespace_that_is_shared(
    start_daemon: Callable[..., Any], address: str, postgres: Postgres, database: str, tmp_path: Path
) -> None:
    with start_daemon(shared={"acme": {"poll_s": 0.1}}).client("acme") as client:
        client.add("said on purpose")
        (tmp_path / "before.md").write_text("Herons fish at dawn.\n")
        client.add_workspace(tmp_path, namespace="acme", globs="*.md")
        client.index_workspace("acme")
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        (tmp_path / "after.md").write_text("Storks nest on roofs.\n")
        client.index_workspace("acme")
        client.add("said afterwards")
        wait_until(lambda: settled(client) and "said afterwards" in read_all(postgres, database))
        assert client.list(tier="documents").total == 2
        assert [body["content"] for body, _ in rows(postgres, database)] == ["said on purpose", "said afterwards"]


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


def test_a_purge_takes_what_was_made_of_a_turn_with_it(
    start_daemon: Callable[..., Any], address: str, postgres: Postgres, database: str
) -> None:
    with day_of_agents(start_daemon) as client:
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme/api"], conversations=True))
        talk(client)
        wait_until(lambda: any(is_summary(memory) for memory in client.list(limit=1000)))
        wait_until(lambda: settled(client))
        before = {memory.id: memory for memory in client.list(limit=1000)}
        turn = next(
            memory for memory in before.values() if memory.content == SAID[0] and memory.source == "conversation"
        )
        done = client.call(PurgeShared(ids=[turn.id]))
        made = [before[id] for id in done.ids if id in before and id != turn.id]
        assert {"extraction", "session_summary"} <= {memory.source for memory in made}
        assert not set(done.ids) & {memory.id for memory in client.list(limit=1000)}
        wait_until(lambda: settled(client))
        purged = postgres.sql("SELECT replace(id::text, '-', '') FROM memoryd.mem WHERE purged", database)
        assert {(memory.id,) for memory in [turn, *made]} <= set(purged)


def is_summary(memory: Memory) -> bool:
    """Return whether a memory sums up the first session."""
    return memory.source == "session_summary" and memory.metadata["session"] == "s0"
