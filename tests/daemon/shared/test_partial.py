"""A machine that holds a part of a root: it searches the rest on the server, and keeps what is of use."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machines import PLACE, converge, machines

from memoryd.client import Client
from memoryd.client.protocol import Add, Explain, Hits, NewMemory
from memoryd.client.shared.calls import GetSharing, MigrateServer, PurgeShared, ShareRoot
from memoryd.daemon.shared import engine, reader, room, vectors
from postgres import Postgres
from waiting import wait_until
from workbench import WordEmbedder, found, running
from workbench import ask as ask_core

WORDS = (
    "harbour anchor lantern violin copper meadow saddle pepper glacier ribbon walnut candle mirror falcon"
    " thimble orchid granite pillow compass trumpet"
).split()
HELD = 6


@pytest.fixture
def address(postgres: Postgres, with_vectors: str) -> str:
    return postgres.address(database=with_vectors)


@pytest.fixture
def pair(start_daemon: Callable[..., Any], address: str) -> Iterator[tuple[Client, Client]]:
    """A machine that holds all, and one that holds a few of its memories."""
    whole, part = (
        start_daemon(shared={"acme": {"poll_s": 0.1}}),
        start_daemon(shared={"acme": {"poll_s": 0.1, "max_rows": HELD}}),
    )
    with whole.client("acme") as one, part.client("acme") as other:
        one.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        for word in WORDS:
            one.add(f"the {word} is in the {word} room")
        wait_until(lambda: one.call(GetSharing()).roots[0].waiting == 0)
        other.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        wait_until(lambda: root_of(other).partial and root_of(other).memories == HELD)
        wait_until(lambda: ask(other, WORDS[0]).shared == "asked" and count_vectors(address) == len(WORDS))
        yield one, other


def root_of(client: Client) -> Any:
    [root] = client.call(GetSharing()).roots
    return root


def ask(client: Client, word: str, **options: Any) -> Hits:
    given = {"limit": 3, "deadline_ms": 5_000, "touch": False, **options}
    return client.search(f"the {word} room", **given)


def count_vectors(address: str) -> int:
    import psycopg

    with psycopg.connect(address) as connection:
        [count] = connection.execute("SELECT count(*) FROM memoryd.vec").fetchone() or (0,)
    return int(count)


def held(client: Client) -> set[str]:
    return {memory.content for memory in client.list(reach="exact", limit=1000)}


def test_what_is_not_here_is_found_and_what_is_used_stays(pair: tuple[Client, Client], address: str) -> None:
    one, other = pair
    here = held(other)
    assert len(here) == HELD
    away, untouched = [word for word in WORDS if f"the {word} is in the {word} room" not in here][:2]
    found = ask(other, away)
    assert (found.shared, found[0].content) == ("asked", f"the {away} is in the {away} room")
    same = ask(one, away)
    assert (same.shared, same[0].id) == ("", found[0].id)
    assert found[0].score == pytest.approx(same[0].score, abs=0.1)
    assert found[0].similarity == pytest.approx(same[0].similarity, abs=0.01)
    explained = other.call(Explain(query=f"the {away} room", limit=3, deadline_ms=5_000, touch=False))
    best = explained.trace.candidates[0]
    assert (best.id, best.origins) == (found[0].id, ["L3"])
    assert best.machine == f"{one.call(GetSharing()).machine} (postgres)"
    [stage] = [stage for stage in explained.trace.stages if stage.name == "shared"]
    assert stage.notes["shared"] == "asked"
    assert stage.left > stage.entered
    assert ask(other, untouched, limit=1)[0].content == f"the {untouched} is in the {untouched} room"
    ask(other, away, limit=1, touch=True)
    wait_until(lambda: f"the {away} is in the {away} room" in held(other))
    assert held(other) - here == {f"the {away} is in the {away} room"}, "what nothing was to touch is not kept"
    other.update(found[0].id, importance=0.9)
    assert [change.action for change in other.history(found[0].id)] == ["updated"]
    wait_until(lambda: one.get(found[0].id).importance == 0.9)
    assert {memory.content for memory in one.list(reach="exact", limit=1000)} == {
        f"the {word} is in the {word} room" for word in WORDS
    }


@pytest.mark.slow
def test_the_local_answer_waits_for_nobody(
    pair: tuple[Client, Client], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LIMIT_S", 60.0)
    _, other = pair
    here = held(other)
    away, near = (
        next(word for word in WORDS if (f"the {word} is in the {word} room" in here) is is_here)
        for is_here in (False, True)
    )
    id = other.list(reach="exact", limit=1)[0].id
    filters = (
        {"metadata": {"a": 1}},
        {"where": {"a": {"$gt": 1}}},
        {"path_prefix": "/"},
        {"ids": [id]},
        {"tier": "L1"},
    )
    for given in ({"deadline_ms": None}, {"mode": "lexical"}, *filters):
        assert ask(other, near, **given).shared == "unasked", given
    for given in ({"type": "fact"}, {"source": "manual"}, {"after": 1.0}, {"before": 2e9}):
        assert ask(other, near, **given).shared == "asked", given
    postgres.hang()
    try:
        found = ask(other, near, deadline_ms=500)
        assert (found.shared, found[0].content) == ("late", f"the {near} is in the {near} room")
        late = ask(other, away, deadline_ms=500, touch=True)
        assert late.shared == "late"
    finally:
        postgres.resume()
    wait_until(lambda: f"the {away} is in the {away} room" in held(other))  # what came late is kept
    assert ask(other, away)[0].content == f"the {away} is in the {away} room"
    wait_until(lambda: root_of(other).state == "ready")


def test_a_server_that_is_away_is_said_to_be(pair: tuple[Client, Client], postgres: Postgres) -> None:
    _, other = pair
    near = next(word for word in WORDS if f"the {word} is in the {word} room" in held(other))
    postgres.sql("CHECKPOINT")
    postgres.stop()
    try:
        wait_until(lambda: ask(other, near).shared == "offline")
        assert ask(other, near)[0].content == f"the {near} is in the {near} room"
    finally:
        postgres.start()


def test_a_first_copy_takes_the_vectors_that_are_there(
    start_daemon: Callable[..., Any], pair: tuple[Client, Client], address: str
) -> None:
    third = start_daemon(shared={"acme": {"poll_s": 0.1}})
    third.embedder.gate.clear()  # it can embed nothing by itself
    with third.client("acme") as client:
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        wait_until(lambda: len(held(client)) == len(WORDS))
        wait_until(lambda: third.core.embedding.count_pending() == 0)
        assert third.embedder.held == 0  # none of them was asked of its own model


def test_a_change_of_what_is_not_here_comes_and_a_purge_takes_its_vector(
    pair: tuple[Client, Client], address: str
) -> None:
    one, other = pair
    here = held(other)
    first, second = [memory for memory in one.list(reach="exact", limit=1000) if memory.content not in here][:2]
    one.update(first.id, content="the zeppelin is in the zeppelin room")
    wait_until(lambda: "the zeppelin is in the zeppelin room" in held(other))
    one.call(PurgeShared(ids=[second.id]))
    wait_until(lambda: count_vectors(address) == len(WORDS) - 1)
    assert second.id not in {hit.id for hit in ask(other, second.content)}


def test_a_server_without_vectors_is_named(
    start_daemon: Callable[..., Any], postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NOTED_S", 0.1)
    monkeypatch.setattr(reader, "AGAIN_S", 0.1)
    where = postgres.address(database=database)
    whole = start_daemon(shared={"acme": {"poll_s": 0.1}})
    part = start_daemon(shared={"acme": {"poll_s": 0.1, "max_rows": 1}})
    with whole.client("acme") as one, part.client("acme") as other:
        one.call(ShareRoot(root="acme", server=where, namespaces=["acme"]))
        for word in WORDS[:3]:
            one.add(f"the {word} room")
        wait_until(lambda: root_of(one).memories == 3)
        other.call(ShareRoot(root="acme", server=where, namespaces=["acme"]))
        wait_until(lambda: "shared migrate" in root_of(other).error)
        assert root_of(other).state == "ready"
        wait_until(lambda: ask(other, WORDS[0]).shared == "offline")
        one.call(MigrateServer(root="acme"))
        wait_until(lambda: count_vectors(where) == 3)
        wait_until(lambda: root_of(other).error == "" and ask(other, WORDS[0]).shared == "asked")


class ShortEmbedder(WordEmbedder):
    """Another model, whose vectors have another length."""

    name, fingerprint, dimensions = "short", "short-1", 32


def test_migrate_makes_the_index_of_another_model_beside_the_former(
    postgres: Postgres, with_vectors: str, folder: Path
) -> None:
    address = postgres.address(database=with_vectors)
    with running(folder, ShortEmbedder()) as core:
        for _ in range(2):  # once more changes nothing
            assert ask_core(core, MigrateServer(root="acme", server=address)).vectors
            made = postgres.sql(
                "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'vec_near_%' ORDER BY indexname", with_vectors
            )
            for [index], model in zip(made, (ShortEmbedder, WordEmbedder), strict=True):
                assert f"halfvec({model.dimensions})" in str(index)
                assert f"'{model.fingerprint}'" in str(index)
            assert postgres.sql("SELECT count(*) FROM pg_indexes WHERE indexname = 'mem_words'", with_vectors) == [(1,)]


def test_a_part_begins_with_the_newest_and_the_pinned(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        pinned = one.add("pinned long ago")
        one.update(pinned, pinned=True)
        one.sync()
        newest = [one.add(f"number {number}") for number in range(5)][-1]
        one.sync()
        two.engine.max_rows = 2
        two.sync()
        assert set(two.texts()) == {pinned, newest}


def test_what_a_part_adds_meets_what_is_not_here(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        same, keyed = one.add("deploys are on Tuesday"), one.add("the port is 80")
        one.give_key(keyed, "port")
        newest = one.add("the newest")
        one.sync()
        two.engine.max_rows = 1
        two.sync()
        assert two.texts() == {newest: "the newest"}
        equal = two.add("Deploys are on Tuesday")
        two.give_key(two.add("the port is 90"), "port")
        for machine in (two, one, two, one):
            machine.sync()
        assert two.waiting() == 0
        assert {same, equal} < set(one.texts())
        assert one.keys() == {"port": keyed}
        assert sorted(one.texts().values()) == [
            "Deploys are on Tuesday",
            "deploys are on Tuesday",
            "the newest",
            "the port is 80",
            "the port is 90",
        ]


def test_what_was_never_used_goes_first_and_the_oldest_of_it(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        pinned, _, _, _, _, edited, _ = [one.add(word) for word in WORDS[:7]]
        mine = two.add("written here")
        converge(one, two)
        one.update(pinned, pinned=True)
        two.update(edited, content="edited here")
        converge(one, two)
        for word in (WORDS[2], WORDS[4]):
            assert found(two.core, word, namespace=PLACE) == [word]
            two.core.effects.flush()
        left = []
        for limit in range(7, 0, -1):
            before = set(two.texts().values())
            room.fit(two.core, two.engine.root, limit)
            left += sorted(before - set(two.texts().values()))
        assert left == [WORDS[number] for number in (1, 3, 6, 2, 4)]
        assert set(two.texts()) == {pinned, edited, mine}
        one.update(mine, content="changed there")
        one.sync()
        two.engine.max_rows = 1
        two.sync()
        assert set(two.texts()) == {pinned, edited}, "the other machine has what it changed"


def test_a_server_shows_nothing_of_a_namespace_that_was_not_asked_for(
    pair: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vectors.find_nearest

    def forge(*given: Any) -> Any:
        head, found = real(*given)
        return head, [near._replace(remote=msgspec.structs.replace(near.remote, ns="acme/own")) for near in found]

    _, other = pair
    other.call(Add(memory=NewMemory(content="of this machine alone"), namespace="acme/own"))
    here = held(other)
    monkeypatch.setattr(vectors, "find_nearest", forge)
    for word in WORDS[:3]:
        found = ask(other, word)
        assert found.shared == "asked"
        assert {hit.content for hit in found} <= here


@pytest.mark.slow
def test_a_rare_word_is_found_where_many_are_nearer(pair: tuple[Client, Client], address: str) -> None:
    one, other = pair
    text = f"{' '.join(WORDS)} zx4711"
    one.add(text)
    for number in range(30):
        one.add(f"the room of machine {number} is open")
    wait_until(lambda: text not in held(other) and count_vectors(address) == len(WORDS) + 31)
    question = {"limit": 10, "deadline_ms": 5_000, "touch": False}
    by_meaning = other.search("zx4711 machine", mode="dense", **question)
    assert by_meaning.shared == "asked"
    assert text not in {hit.content for hit in by_meaning}
    found = {hit.content: hit for hit in other.search("zx4711 machine", **question)}
    assert found[text].bm25
    assert found[text].similarity is not None, "by the vector that the server has"
