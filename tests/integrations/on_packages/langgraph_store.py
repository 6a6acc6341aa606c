"""The store for LangGraph with its real package; `test_on_packages.py` runs this."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memoryd.client import AsyncClient, Client, Forbidden, TimedOut
from memoryd.client.integrations.langgraph import AsyncMemorydStore, MemorydStore
from memoryd.client.protocol import MAX_ENTRIES, Undo
from workbench import Daemon

HERE = ("users", "ada")
TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
Make = Callable[..., MemorydStore]


@pytest.fixture
def client(daemon: "Daemon") -> Iterator[Client]:
    with daemon.client("assistant") as client:
        yield client


@pytest.fixture
def make(client: Client) -> Make:
    return lambda **options: MemorydStore(client, **options)


@pytest.fixture
def store(make: Make) -> MemorydStore:
    return make(index={"fields": ["texts[*]"]})


def keys(store: MemorydStore) -> set[str]:
    return {item.key for item in store.search(HERE, limit=10_000)}


def several(*texts: str) -> dict[str, list[str]]:
    return {"texts": list(texts)}


@pytest.mark.parametrize("other", ["k\n1", "k\n2", "k\n", "k\n\n1", "\n1", "k\ufdd0000a1", "k%0A1"])
def test_no_key_of_a_user_is_that_of_a_part_of_an_item(store: MemorydStore, other: str) -> None:
    store.put(HERE, other, {"mine": True})
    store.put(HERE, "k", several("herons fish", "the port is 80", "tea is green"))
    store.put(HERE, "k", several("herons fish"))
    assert store.get(HERE, other).value == {"mine": True}
    store.put(HERE, other, several("one", "two"))
    store.delete(HERE, "k")
    assert store.get(HERE, other).value == several("one", "two")
    assert keys(store) == {other}


def test_each_text_of_an_item_finds_it_and_none_that_it_had(store: MemorydStore) -> None:
    store.put(HERE, "k\n", several("herons fish", "valkey caches", "tea is green"))
    assert [item.key for item in store.search(HERE, query="tea green")] == ["k\n"]
    assert [item.value for item in store.search(HERE, query="valkey")] == [
        several("herons fish", "valkey caches", "tea is green")
    ]
    store.put(HERE, "k\n", several("herons nest"))
    assert store._client.list(reach="subtree").total == 1
    store.delete(HERE, "k\n")
    assert store._client.list(reach="subtree").total == 0


def test_any_text_is_a_query(store: MemorydStore) -> None:
    store.put(HERE, "k", several("herons fish"))
    for query in ("herons\0", "herons \ud83d", "\ude00 herons"):
        assert [item.key for item in store.search(HERE, query=query)] == ["k"]


def test_a_batch_is_all_or_nothing_and_one_undo_takes_it_back(store: MemorydStore) -> None:
    store.put(HERE, "old", {"n": 1})
    bad: list[Op] = [PutOp(HERE, "old", None), PutOp(HERE, "new", {"n": 2}), PutOp(HERE, "bad", {"n": float("nan")})]
    with pytest.raises(ValueError, match=r"item '.*' of [^:]+: value\.\S+ is not a finite number"):
        store.batch(bad)
    assert keys(store) == {"old"}
    store.batch([*bad[:2], PutOp(("users", "bob"), "new", several("a", "b"))])
    assert (keys(store), store.get(("users", "bob"), "new").value) == ({"new"}, several("a", "b"))
    store._client.call(Undo(reach="subtree"))
    assert (keys(store), store.get(("users", "bob"), "new")) == ({"old"}, None)


def test_a_batch_gives_what_langgraphs_store_gives(store: MemorydStore) -> None:
    results = []
    for tried in (store, InMemoryStore()):
        tried.put(HERE, "k", {"n": 1})
        done = tried.batch(
            [
                GetOp(HERE, "k"),
                PutOp(HERE, "k", {"n": 2}),
                GetOp(HERE, "k"),
                PutOp(HERE, "k", {"n": 3}),
                PutOp(HERE, "new", {"n": 4}),
                SearchOp(HERE, filter={"n": 4}),
                PutOp(HERE, "new", None),
            ]
        )
        values = [
            found and ([one.value for one in found] if isinstance(found, list) else found.value) for found in done
        ]
        results.append((values, tried.get(HERE, "k").value, tried.get(HERE, "new")))
    assert results[0] == results[1]


def test_a_batch_larger_than_a_transaction_is_stored(store: MemorydStore) -> None:
    number = MAX_ENTRIES + 5
    store.batch([PutOp(HERE, f"{at}", several(f"one {at}", f"two {at}")) for at in range(number // 2)])
    assert len(keys(store)) == number // 2
    store.put(HERE, "many", several(*(f"text {at}" for at in range(MAX_ENTRIES))))
    assert len(store.get(HERE, "many").value["texts"]) == MAX_ENTRIES


VALUES = {
    "nul": {"a\0b": "c\0d", "deep": [{"e": "\0"}]},
    "half an emoji": {"text": "\ud83d", "other": "\ude00 tail", "\ud83d": ["\ude00"]},
    "halves": {"text": "\ud83d\ude00"},
    "mark": {"text": "\ufdd0", "\ufdd00000": "\ufdd0d83d"},
    "large": {"text": "word " * 500_000},
    "large and wide": {"text": "\N{SLICE OF PIZZA}" * 600_000},
    "controls": {"text": "".join(map(chr, range(1, 32))) + "\x7f"},
    "blank": {"text": "\0\0", "empty": ""},
    "numbers": {"n": 2**63 - 1, "m": -(2**63), "x": 1e308, "none": None, "flag": False},
}


@pytest.mark.parametrize("key", ["k", "a\0b", "\ud83d", " ", "\n", "%", "k" * 500])
@pytest.mark.parametrize("index", [None, False])
def test_any_key_is_that_of_an_item(make: Make, key: str, index: Any) -> None:
    store = make()
    store.put(HERE, key, {"text": "herons"}, index)
    assert (store.get(HERE, key).value, keys(store)) == ({"text": "herons"}, {key})
    store.delete(HERE, key)
    assert store.get(HERE, key) is None


@pytest.mark.parametrize("name", VALUES)
def test_what_is_stored_comes_back_equal(make: Make, name: str) -> None:
    store, value = make(), VALUES[name]
    store.put(HERE, "k", value)
    assert store.get(HERE, "k").value == value
    assert [item.value for item in store.search(HERE)] == [value]
    for field, wanted in value.items():
        if isinstance(wanted, str) and len(wanted) < 1000 and field.isalnum():
            assert [item.key for item in store.search(HERE, filter={field: wanted})] == ["k"]
            assert store.search(HERE, filter={field: wanted + "x"}) == []


@pytest.mark.parametrize("label", ["\ud83d", "a/b", "%", " ", "a\nb"])
def test_any_label_is_one_of_a_namespace(store: MemorydStore, label: str) -> None:
    store.put(("users", label), "k", {"n": 1})
    assert store.get(("users", label), "k").namespace == ("users", label)
    assert store.list_namespaces(prefix=("users", label)) == [("users", label)]


@pytest.mark.parametrize(
    "value",
    [{"n": 2**70}, {"n": float("inf")}, {"n": b"bytes"}, {"n": {1}}, {1: 2}, {"text": "x" * 9_000_000}],
    ids=["wide", "infinite", "bytes", "set", "number as key", "large"],
)
def test_what_is_no_json_or_too_large_is_refused_and_leaves_what_was_there(store: MemorydStore, value: Any) -> None:
    store.put(HERE, "k", several("one", "two"))
    with pytest.raises(ValueError, match=r"\w"):
        store.batch([PutOp(HERE, "new", {"n": 1}), PutOp(HERE, "k", value)])
    assert (keys(store), store.get(HERE, "k").value) == ({"k"}, several("one", "two"))


def test_credentials_are_taken_out_unless_they_are_allowed(make: Make) -> None:
    value = {"token": TOKEN, "text": f"push with {TOKEN}"}
    make().put(HERE, "k", value)
    assert TOKEN not in str(make().get(HERE, "k").value)
    make(allow_secrets=True).put(HERE, "k", value)
    assert make().get(HERE, "k").value == value


def test_a_warning_says_what_was_taken_out(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    make(allow_secrets=True).put(HERE, "k", {"token": TOKEN})
    assert caplog.text == ""
    make().put(HERE, "k", {"token": TOKEN})
    assert "taken out of what was stored: GitHub token;" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("paths", ["text", ["text", 1], {"text"}])
def test_paths_that_are_no_list_of_texts_are_refused(make: Make, paths: Any) -> None:
    with pytest.raises(ValueError, match="fields must be a list of texts"):
        make(index={"fields": paths})
    with pytest.raises(ValueError, match="index must be a list of texts"):
        make().put(HERE, "k", {"text": "herons fish"}, index=paths)


@pytest.mark.parametrize("value", [{"text": "herons"}, {"n": b"bytes"}])
def test_a_refusal_does_not_repeat_a_credential(make: Make, value: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"^item '\[secret: GitHub token\]' of users/ada: (The key contains|JSON has no)"
    ):
        make().put(HERE, TOKEN, value)


@pytest.mark.parametrize("labels", ["users", 5])
def test_a_namespace_that_is_no_tuple_is_refused(store: MemorydStore, labels: Any) -> None:
    for op in (PutOp(labels, "k", {}), GetOp(labels, "k"), SearchOp(labels)):
        with pytest.raises(ValueError, match="A namespace is a tuple of labels"):
            store.batch([op])
    store.batch([PutOp(["users", "ada"], "k", {"n": 1})])  # type: ignore[arg-type]
    assert keys(store) == {"k"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ttl": {"defaultttl": 1}}, "`ttl` has no defaultttl, only .*default_ttl"),
        ({"ttl": 60}, "`ttl` must be a dict"),
        ({"ttl": {"default_ttl": "60"}}, "`default_ttl` must be a number of minutes above 0"),
        ({"ttl": {"default_ttl": -1}}, "`default_ttl` must be a number of minutes above 0"),
        ({"mode": "fuzzy"}, "`mode` must be one of hybrid, lexical, dense, not 'fuzzy'"),
        ({"index": ["text"]}, "`index` must be a dict"),
    ],
)
def test_options_are_checked_when_the_store_is_made(make: Make, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(**options)


def test_an_argument_of_a_wrong_kind_is_named(store: MemorydStore) -> None:
    wrong: list[tuple[Op, str]] = [
        (SearchOp(HERE, query=5), "The query must be a text, not int"),  # type: ignore[arg-type]
        (SearchOp(HERE, filter=["a"]), "The filter must be a dict, not list"),  # type: ignore[arg-type]
        (SearchOp(HERE, limit="5"), "The limit must be a whole number, 0 or more, not '5'"),  # type: ignore[arg-type]
        (SearchOp(HERE, limit=-1), "The limit must be a whole number, 0 or more, not -1"),
        (SearchOp(HERE, offset=-1), "The offset must be a whole number, 0 or more, not -1"),
        (ListNamespacesOp(limit=-1), "The limit must be a whole number, 0 or more, not -1"),
        (PutOp(HERE, "k", "just text"), "The value must be a dict, not str"),  # type: ignore[arg-type]
        (PutOp(HERE, "k", {}, ttl=-1), "`ttl` must be a number of minutes above 0 and at most 1,000,000,000, not -1"),
        (PutOp(HERE, 5, {}), "A key is a text, not 5"),  # type: ignore[arg-type]
    ]
    for op, said in wrong:
        with pytest.raises(ValueError, match=said):
            store.batch([op])


def test_a_batch_whose_reads_fail_says_that_nothing_was_put(
    store: MemorydStore, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(call: Any) -> None:
        raise TimedOut("No reply. The call only reads: repeat it.")

    monkeypatch.setattr(client, "call", fail)
    with pytest.raises(TimedOut, match=r"^Of this batch nothing was put or deleted, .* No reply\."):
        store.batch([GetOp(HERE, "k"), PutOp(HERE, "k", {"n": 1})])
    with pytest.raises(TimedOut, match=r"^No reply\."):
        store.batch([GetOp(HERE, "k")])


@pytest.mark.filterwarnings("error")
def test_an_asynchronous_store_in_a_second_loop_says_what_to_do(client: Client) -> None:
    async def make_one() -> AsyncMemorydStore:
        store = AsyncMemorydStore(client)
        await store.aput(HERE, "k", {"n": 1})
        return store

    store = asyncio.run(make_one())
    for use in (store.aget(HERE, "k"), store.aput(HERE, "k", {"n": 2})):
        with pytest.raises(RuntimeError, match="made in another event loop; make one in each"):
            asyncio.run(use)
    gc.collect()


@pytest.mark.filterwarnings("error")
def test_an_asynchronous_store_outside_a_loop_says_where_to_make_it(client: Client) -> None:
    with pytest.raises(RuntimeError, match="Make an AsyncMemorydStore in a coroutine"):
        AsyncMemorydStore(client)
    with pytest.raises(ValueError, match="fields must be"):
        AsyncMemorydStore(client, index={"fields": "text"})
    gc.collect()


@pytest.mark.parametrize(("namespace", "labels"), [("myapp/ann", ("notes",)), (None, ("myapp", "ann", "notes"))])
def test_with_a_token_all_calls_mean_the_same_place(
    daemon: "Daemon", client: Client, namespace: str | None, labels: tuple[str, ...]
) -> None:
    token = client.add_token("ann", "myapp/ann").token
    with daemon.client(namespace, token=token) as bound:
        store = MemorydStore(bound)
        store.put(labels, "k", {"text": "herons"})
        assert store.get(labels, "k").value == {"text": "herons"}
        assert [item.namespace for item in store.search(labels, query="herons")] == [labels]
        store.delete(labels, "k")
        assert store.search(labels) == []
    with daemon.client(token=token) as bound:
        store = MemorydStore(bound)
        for call in (lambda: store.put(("notes",), "k", {}), lambda: store.get(("notes",), "k")):
            with pytest.raises(Forbidden):
                call()


@pytest.mark.parametrize("kind", [MemorydStore, AsyncMemorydStore])
async def test_a_client_that_is_awaited_is_refused(kind: Any, folder: Any) -> None:
    with pytest.raises(TypeError, match=r"Give a memoryd\.client\.Client, not AsyncClient"):
        kind(AsyncClient(socket=folder / "s"))


def test_an_embedder_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="`index` has only `fields`, no dims, embed"):
        make(index={"dims": 1536, "embed": "openai:text-embedding-3-small", "fields": ["text"]})


def test_two_writers_of_one_item_leave_what_one_of_them_wrote(store: MemorydStore) -> None:
    def write(who: int) -> None:
        for round in range(8):
            store.put(HERE, "k", several(*(f"who{who} round{round} part{part}" for part in range(who + 1))))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    left = store.get(HERE, "k").value["texts"]
    found = store._client.list(reach="subtree", limit=100)
    assert sorted(memory.content for memory in found) == sorted(left)


async def test_the_same_for_code_that_awaits(client: Client) -> None:
    store = AsyncMemorydStore(client, allow_secrets=True)
    await asyncio.gather(*(store.aput(HERE, f"k\n{at}", {"token": TOKEN, "n": at}) for at in range(50)))
    assert (await store.aget(HERE, "k\n1")).value == {"token": TOKEN, "n": 1}
    with pytest.raises(ValueError, match="finite"):
        await store.abatch([PutOp(HERE, "new", {"n": 1}), PutOp(HERE, "bad", {"n": float("nan")})])
    assert len(await store.asearch(HERE, limit=100)) == 50
    await store.abatch([PutOp(HERE, f"k\n{at}", None) for at in range(50)])
    assert await store.asearch(HERE, limit=100) == []
