"""Many memories put and deleted by their keys: all or nothing, one operation, as fast as the parts allow."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from each import each
from memoryd.client import Client
from memoryd.client.errors import Forbidden, Invalid, NotFound, StorageFull
from memoryd.client.protocol import MAX_ENTRIES, Get, KeyedEntry, List, Memory, NewMemory, Put, WerePut
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.caller import USER, Caller
from workbench import Daemon, ask, found, undo

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))


def entry(key: str, content: str | None = None, **options: Any) -> KeyedEntry:
    given = {name: options.pop(name) for name in ("below", "clears", "searchable", "ttl_s") if name in options}
    memory = None if content is None else NewMemory(content=content, **options)
    return KeyedEntry(key=key, memory=memory, **given)


def put_many(core: Core, *entries: KeyedEntry, namespace: str = "", caller: Caller = USER) -> WerePut:
    return ask(core, Put(entries=list(entries), namespace=namespace), caller=caller)


def outcomes(done: WerePut) -> list[str]:
    return [result.outcome for result in done]


def get(core: Core, key: str, namespace: str = "") -> Memory:
    return ask(core, Get(key=key, namespace=namespace))


def keys(core: Core, **options: Any) -> list[str | None]:
    return [memory.key for memory in ask(core, List(ascending=True, limit=1000, **options))]


def test_puts_and_deletes_are_one_operation_which_one_undo_takes_back(core: Core) -> None:
    before = put_many(core, entry("cache", "We cache in Redis"), entry("tea", "Ada drinks tea"))
    assert (outcomes(before), len(before)) == (["created", "created"], 2)
    done = put_many(
        core, entry("cache", "We cache in Valkey"), entry("tea"), entry("port", "The port is 80"), entry("none")
    )
    assert outcomes(done) == ["updated", "deleted", "created", "absent"]
    assert [result.id for result in done][:2] == [result.id for result in before]
    assert (keys(core), found(core, "valkey", mode="lexical")) == (["cache", "port"], ["We cache in Valkey"])
    assert found(core, "tea", mode="lexical") == []
    undo(core, done.operation)
    assert (keys(core), get(core, "cache").content) == (["cache", "tea"], "We cache in Redis")
    assert found(core, "tea", mode="lexical") == ["Ada drinks tea"]


@each(
    ("bad", "why"),
    [
        (entry("", "no key"), "Entry 1: The key '' must be a text of"),
        (entry("a\0b", "a key with NUL"), "Entry 1: The key"),
        (entry("two", " "), "Entry 1: The content is empty"),
        (entry("two", "x" * 2_000_000), "Entry 1: The content has 2000000 bytes"),
        (entry("two", "text", metadata={"nan": float("nan")}), "Entry 1: metadata.nan is not a finite number"),
        (entry("two", "text", id="0f" * 16), "Entry 1: .*the key identifies it"),
        (entry("two", "text", below="a//b"), "Entry 1: The namespace"),
        (entry("two", "text", clears="\0"), "Entry 1: The key"),
        (entry("one", "the same key"), "Entry 1: The key 'one' is that of an earlier entry"),
    ],
)
def test_one_entry_that_is_refused_leaves_all_as_it_was(core: Core, bad: KeyedEntry, why: str) -> None:
    with pytest.raises(Invalid, match=why) as refused:
        put_many(core, entry("one", "The first"), bad)
    assert refused.value.data == {"index": 1}
    assert keys(core) == []


def test_entries_lie_below_the_namespace_of_the_call(core: Core) -> None:
    done = put_many(
        core, entry("tea", "Green", below="ada"), entry("tea", "Black", below="bob/home"), namespace="users"
    )
    assert get(core, "tea", "users/ada").content == "Green"
    assert get(core, "tea", "users/bob/home").content == "Black"
    undo(core, done.operation)
    with pytest.raises(NotFound):
        get(core, "tea", "users/ada")
    put_many(core, entry("tea", "Oolong", below="carl"))
    assert get(core, "tea", "carl").content == "Oolong"


def test_what_begins_like_a_key_is_cleared_but_for_what_is_put(core: Core) -> None:
    put_many(core, *(entry(key, f"heron {key!r}") for key in ("k", "k\n1", "k\n2", "k\n3", "kk", "K\n1", "k\N{BOM}")))
    put_many(core, entry("k\n1", "elsewhere"), namespace="other")
    done = put_many(core, entry("k", "heron again", clears="k\n"), entry("k\n2", "heron two"))
    assert [result.cleared for result in done] == [2, 0]
    assert sorted(map(str, keys(core, reach="exact"))) == ["K\n1", "k", "k\n2", "kk", "k\N{BOM}"]
    gone = put_many(core, entry("k", clears="k\n"))
    assert (outcomes(gone), gone.results[0].cleared) == (["deleted"], 1)
    undo(core, gone.operation)
    undo(core, done.operation)
    assert len(keys(core, reach="exact")) == 7
    assert get(core, "k\n1", "other").content == "elsewhere"


def test_what_has_expired_counts_as_none(core: Core, clock: Any) -> None:
    put_many(core, entry("short", "Herons fish", ttl_s=100.0), entry("long", "Herons nest", ttl_s=1000.0))
    clock.advance(101)
    assert outcomes(put_many(core, entry("short"), entry("long"))) == ["absent", "deleted"]
    assert ask(core, List(all_states=True)).total == 0


def test_two_that_write_the_same_keys_at_once_leave_what_one_of_them_wrote(daemon: "Daemon") -> None:
    def write(who: int) -> None:
        with daemon.client() as client:
            for round in range(10):
                texts = [f"{who} {round} {part}" for part in range(who + 1)]
                given = [{"key": f"k\n{part}", "memory": {"content": text}} for part, text in enumerate(texts)]
                client.put_many([{"key": "k", "memory": {"content": texts[0]}, "clears": "k\n"}, *given])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with daemon.client() as client:
        left = {memory.key: memory.content.split() for memory in client.list()}
    who, round, _ = left.pop("k")
    assert left == {f"k\n{part}": [who, round, str(part)] for part in range(int(who) + 1)}


def test_credentials_are_taken_out_unless_they_are_allowed(daemon: "Daemon") -> None:
    given = [{"key": "deploy", "memory": {"content": "A token", "metadata": {"token": TOKEN}}}]
    with daemon.client() as client:
        assert client.put_many(given).redacted == {"GitHub token": 1}
        assert TOKEN not in str(client.get(key="deploy").metadata)
        assert client.put_many(given, allow_secrets=True).redacted == {}
        assert client.get(key="deploy").metadata == {"token": TOKEN}
        with pytest.raises(Invalid, match="The key contains what looks like 1 GitHub token"):
            client.put_many([{"key": TOKEN, "memory": {"content": "A token"}}])


def test_a_token_bounds_where_entries_lie(daemon: "Daemon") -> None:
    with daemon.client() as client:
        token = client.add_token("agent", "acme/api").token
        client.put("cache", "Shared")
    entry = {"key": "cache", "below": "inner", "memory": {"content": "Its own"}}
    with Client(socket=daemon.socket, token=token, autostart=False) as agent, pytest.raises(Forbidden):
        agent.put_many([entry])  # without a namespace `below` is a whole name
    with Client(socket=daemon.socket, token=token, namespace="acme/api", autostart=False) as agent:
        agent.put_many([entry])
        assert agent.call(Get(key="cache", namespace="acme/api/inner")).content == "Its own"
        with pytest.raises(Invalid, match="empty part"):
            agent.put_many([{**entry, "below": "/other"}])
    with daemon.client() as client:
        assert client.get(key="cache").content == "Shared"


def test_more_entries_than_one_transaction_takes_are_refused(daemon: "Daemon") -> None:
    with daemon.client() as client:
        with pytest.raises(Invalid, match="1000"):
            client.put_many([{"key": str(number), "memory": {"content": "x"}} for number in range(MAX_ENTRIES + 1)])
        assert client.list().total == 0


def test_at_the_limit_deleting_goes_on(start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        client.put("cache", "We cache in Redis")
        monkeypatch.setattr(daemon.core.store, "check_room", refuse)
        with pytest.raises(StorageFull):
            client.put_many([{"key": "new", "memory": {"content": "No room"}}, {"key": "cache"}])
        assert client.put_many([{"key": "cache"}]).results[0].outcome == "deleted"


def refuse() -> None:
    raise StorageFull("There is no room.")
