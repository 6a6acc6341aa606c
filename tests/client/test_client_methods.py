"""The convenience methods of both clients against a real daemon: what they send, what comes back."""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from each import each
from memoryd.client import AsyncClient, Client, Invalid, MemorydError, NewMemory, NotFound, StorageFull, calls, methods
from memoryd.client.fields import new_memory, new_turn
from memoryd.client.protocol import Add, GetStatus, Hit, KeyedEntry, Progress
from memoryd.client.transport import batches
from memoryd.daemon.memories.batches import PART, UNCOMPARED
from workbench import Daemon


class Blocking:
    """An `AsyncClient` behind the interface of a `Client`, so that one test serves both."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = getattr(self._client, name)(*args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

        return lambda *args, **kwargs: self._loop.run_until_complete(call(*args, **kwargs))


Make = Callable[..., Any]
LIMIT_S = 120.0  # of one call: several megabytes on a busy machine


@pytest.fixture(params=["Client", "AsyncClient"])
def make(request: pytest.FixtureRequest, daemon: "Daemon") -> Iterator[Make]:
    """Make a client of either kind at a namespace."""
    if request.param == "Client":
        made: list[Client] = []

        def sync(namespace: str | Sequence[str] = "") -> Client:
            made.append(daemon.client(namespace, timeout_s=LIMIT_S))
            return made[-1]

        yield sync
        for client in made:
            client.close()
        return
    loop = asyncio.new_event_loop()
    opened: list[AsyncClient] = []

    def asynchronous(namespace: str | Sequence[str] = "") -> Blocking:
        opened.append(AsyncClient(namespace, socket=daemon.socket, autostart=False, timeout_s=LIMIT_S))
        return Blocking(opened[-1], loop)

    yield asynchronous
    for aio in opened:
        loop.run_until_complete(aio.close())
    loop.close()


@pytest.fixture
def memory(make: Make) -> Any:
    return make()


def test_add_and_get_give_back_what_was_said(memory: Any) -> None:
    added = memory.add(
        "We use Valkey",
        type="decision",
        metadata={"project": "api", "n": [1, None, {"x": 0.5}]},
        summary="Valkey",
        importance=0.9,
        source="review",
        pinned=True,
        created_at="2026-03-31T14:30:00+02:00",
    )
    found = memory.get(added.id[:8])
    assert (added.outcome, found.id, found.content, found.type) == ("created", added.id, "We use Valkey", "decision")
    assert found.metadata == {"project": "api", "n": [1, None, {"x": 0.5}]}
    assert (found.summary, found.importance, found.source, found.pinned) == ("Valkey", 0.9, "review", True)
    assert found.created_at == datetime(2026, 3, 31, 12, 30, tzinfo=UTC).timestamp()


@each(
    "when",
    [
        "2026-03-31",
        "2026-03-31T00:00:00Z",
        "2026-03-31T02:00+02:00",
        datetime(2026, 3, 31),
        datetime(2026, 3, 31, 2, tzinfo=timezone(timedelta(hours=2))),
        1774915200,
        1774915200.0,
    ],
)
def test_a_date_may_be_text_a_datetime_or_seconds(memory: Any, when: Any) -> None:
    id = memory.add("on that day", created_at=when).id
    assert memory.get(id).created_at == 1774915200
    assert memory.list(after=when).total == 0
    assert memory.list(after="2026-03-30", before="2026-04-01").total == 1
    assert memory.update(id, expires_at=when).memory.expires_at == 1774915200
    memory.delete(id)


def test_put_many_takes_mappings_and_entries(memory: Any) -> None:
    known = KeyedEntry(key="tea", memory=NewMemory(content="Ada drinks tea"), below="ada")
    dated = {"content": "We cache in Redis", "created_at": "2026-03-31"}
    done = memory.put_many([{"key": "cache", "memory": dated, "ttl_s": 60.0}, known])
    assert [result.outcome for result in done] == ["created", "created"]
    assert memory.get(key="cache").created_at == 1774915200
    assert [result.outcome for result in memory.put_many([{"key": "cache"}, {"key": "cache 2"}])] == [
        "deleted",
        "absent",
    ]
    for unknown in ({"key": "cache", "content": "no memory"}, {"memory": dated}):
        with pytest.raises(Invalid):
            memory.put_many([unknown])


def test_update_changes_what_is_given_and_history_shows_it(memory: Any) -> None:
    id = memory.add("before", metadata={"a": 1, "b": 2}).id
    changed = memory.update(id, content="after", metadata={"a": None, "c": 3}, pinned=True, importance=0.1).memory
    assert (changed.content, changed.metadata, changed.pinned) == ("after", {"b": 2, "c": 3}, True)
    changes = list(memory.history(id))
    assert [change.kind for change in changes] == ["add", "update"]
    assert changes[1].changed["content"] == ("before", "after")
    memory.update(id, expires_at="2030-01-01")
    assert memory.update(id, expires_at=None).memory.expires_at is None


def test_delete_and_undo_are_each_one_operation(memory: Any) -> None:
    added = [memory.add(f"note {number}") for number in range(3)]
    ids = [one.id for one in added]
    deleted = memory.delete(ids[0], ids[1][:12])
    assert sorted(deleted.ids) == sorted(ids[:2])
    assert memory.stats().memories == 1
    undone = memory.undo(deleted.operation)
    assert sorted(undone.ids) == sorted(ids[:2])
    assert [operation.kind for operation in memory.operations(2)] == ["undo", "delete"]
    assert memory.undo().undone == added[-1].operation


def test_undo_without_an_id_is_about_what_was_done_at_the_clients_place(make: Make) -> None:
    inner, outer = make("hz/agent"), make("hz")
    own, shared = inner.add("Herons fish at dawn"), outer.add("The port is 8443")
    assert inner.undo().undone == own.operation
    with pytest.raises(NotFound, match="nothing to undo here"):
        inner.undo()
    deleted = inner.delete(shared.id)  # done here, though what it changed is the team's
    outer.add("Deploys go out on Tuesdays")
    assert inner.undo().undone == deleted.operation
    assert inner.undo(reach="visible").undone != shared.operation
    assert inner.undo(shared.operation).ids == [shared.id]


def test_undo_without_an_id_passes_over_what_changed_a_namespace_inside(make: Make) -> None:
    inner, outer = make("hz/agent"), make("hz")
    own = inner.add("Herons fish at dawn")
    with pytest.raises(NotFound, match=r'nothing to undo here\. .* `reach="subtree"`\.'):
        outer.undo()
    assert outer.undo(reach="subtree").undone == own.operation
    with pytest.raises(NotFound, match=r"here\. `memctl undo ID` undoes what was done elsewhere; "):
        outer.undo(reach="subtree")


def test_an_argument_of_a_wrong_kind_is_invalid(memory: Any, folder: Path) -> None:
    wrong: dict[str, Callable[[], Any]] = {
        "The namespace must be text or a tuple": lambda: memory.share("ab12", to=5),
        "`type` must be text or a list of texts, not 5": lambda: memory.list(type=5),
        "`kind` must be text or a list of texts, not 5": lambda: memory.operations(kind=5),
        "`where` must be a mapping": lambda: memory.list(where=["a"]),
        "`entries` must be a list": lambda: memory.put_many(5),
        "`records` must be a list": lambda: memory.import_memories(5),
        "A path must be text, not 5": lambda: memory.backup(5),
        "A path must be text, not 6": lambda: memory.workspaces(6),
        "Not a running summary": lambda: memory.summarize([], 5, max_tokens=100),
    }
    for said, call in wrong.items():
        with pytest.raises(Invalid, match=re.escape(said)):
            call()
    for kind in (Client, AsyncClient):
        for options in ({"namespace": 5}, {"socket": 5}):
            with pytest.raises(Invalid, match=r"must be text"):
                kind(**{"socket": folder / "s", **options})


def test_a_registered_processor_sees_the_hits_of_each_search_of_this_client(make: Make) -> None:
    memory, other = make(), make()
    for content in ("a grey heron", "a white heron"):
        memory.add(content)
    plain = [hit.content for hit in memory.search("heron")]
    seen: list[str] = []

    def backwards(query: str, hits: list[Hit]) -> list[Hit]:
        seen.append(query)
        return hits[::-1]

    memory.register_postprocessor(backwards)
    memory.register_postprocessor(lambda query, hits: hits[:1])
    assert [hit.content for hit in memory.search("heron")] == plain[::-1][:1]
    assert [hit.content for hit in memory.explain("heron").hits] == plain[::-1][:1]
    assert [hit.content for hit in other.search("heron")] == plain
    assert seen == ["heron", "heron"]


def test_a_call_can_be_sent_as_a_value(memory: Any) -> None:
    added = memory.call(Add(memory=NewMemory(content="typed"), namespace="acme"))
    assert memory.get(added.id).namespace == "acme"
    assert memory.call(GetStatus()).memories == 1


def test_a_namespace_may_be_a_tuple_or_text_and_sees_what_encloses_it(make: Make) -> None:
    as_tuple, as_text, sibling = make(("acme", "api", "alpha")), make("acme/api/alpha"), make(("acme", "beta"))
    shared, private = make("acme").add("shared").id, as_tuple.add("private").id
    for client in (as_tuple, as_text):
        assert {found.id for found in client.list()} == {shared, private}
        assert [found.id for found in client.list(reach="exact")] == [private]
    assert [found.id for found in sibling.list()] == [shared]
    assert make("acme").list(reach="subtree").total == 2
    assert make().list().total == 2
    assert as_text.get(private).namespace == "acme/api/alpha"
    with pytest.raises(NotFound):
        sibling.get(private)


def test_the_namespace_of_the_environment_holds_unless_one_is_given(
    make: Make, daemon: "Daemon", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_NAMESPACE", "acme/api")
    monkeypatch.setenv("MEMORYD_SOCKET", str(daemon.socket))
    for kind in (Client, AsyncClient):
        assert kind(autostart=False).namespace == "acme/api"
        assert kind("", autostart=False).namespace == ""
        assert kind(("a", "b"), autostart=False).namespace == "a/b"


def test_in_a_project_a_client_is_at_its_namespace_unless_one_is_given_or_a_token_says_it(
    make: Make, daemon: "Daemon", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HOME": tmp_path,
        "MEMORYD_DATA_DIR": tmp_path / "data",
        "MEMORYD_SOCKET": daemon.socket,
    }.items():
        monkeypatch.setenv(name, str(value))
    for folder in ("api/.git", "api/src", "web/.git"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("MEMORYD_NAMESPACE", "MEMORYD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "api/src")
    for kind in (Client, AsyncClient):
        assert kind(autostart=False).namespace == "api"
        assert [kind(given, autostart=False).namespace for given in ("", "/", ())] == ["", "", ""]
        assert kind(token="t", autostart=False).namespace == ""
    with Client("/") as person, Client() as inside:
        person.add("My passport is in the desk")
        assert inside.add("We cache in Valkey").namespace == "api"
        monkeypatch.chdir(tmp_path / "web")
        with Client() as other:
            other.add("The page has no build step")
        assert {memory.content for memory in inside.list()} == {"My passport is in the desk", "We cache in Valkey"}
        assert person.list().total == 3


def test_add_many_of_none_one_and_many_gives_one_result_each_in_order(memory: Any) -> None:
    assert len(memory.add_many([])) == 0
    assert memory.add_many([NewMemory(content="one")]).created == 1
    added = memory.add_many({"content": f"note {number}"} for number in range(70))
    assert (added.created, added.merged, len(added), len(added.operations)) == (70, 0, 70, 1)
    assert memory.get(added.results[69].id).content == "note 69"
    again = memory.add_many([{"content": "note 3"}, {"content": "new"}])
    assert [result.outcome for result in again] == ["merged", "created"]


@pytest.mark.slow
def test_add_many_of_more_than_a_frame_holds_is_several_calls(memory: Any) -> None:
    added = memory.add_many(({"content": f"{number} " + "x" * 1_000_000} for number in range(20)), dedup=False)
    assert (added.created, len(added.results), len(added.operations)) == (20, 20, 3)
    assert memory.get(added.results[19].id).content.startswith("19 ")


def test_add_many_says_what_is_stored_when_a_later_call_or_part_of_it_is_refused(
    memory: Any, daemon: "Daemon", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 10_000)  # of one call
    seen: list[Progress] = []

    def note(event: Progress) -> None:
        seen.append(event)
        is_second = any(before.done >= event.done for before in seen[:-1])  # of the calls
        if event.done == 2 * UNCOMPARED and is_second:
            daemon.core.store.limit_bytes = 1

    told = r"^The first \d+ memories are stored by calls before this one\. The first \d+ of \d+ are stored, the rest"
    with pytest.raises(StorageFull, match=told) as cut:
        memory.add_many(({"content": f"note {n}"} for n in range(2_000)), dedup=False, on_progress=note)
    daemon.core.store.limit_bytes = 0
    first, second = cut.value.data["operations"]
    assert memory.list().total == cut.value.data["stored"]
    assert len(memory.undo(second).ids) % UNCOMPARED == 0
    assert len(memory.undo(first).ids) == seen[0].total
    assert memory.list().total == 0


def test_add_many_reports_progress_up_to_all(memory: Any) -> None:
    seen: list[Progress] = []
    memory.add_many(({"content": f"note {number}"} for number in range(70)), on_progress=seen.append)
    assert [event.done for event in seen] == [PART, 2 * PART, 70]
    assert {(event.stage, event.total) for event in seen} == {("embed", 70)}


@pytest.mark.parametrize("failure", [ValueError, OSError])
def test_a_progress_callback_that_fails_ends_its_call_and_nothing_else(memory: Any, failure: type[Exception]) -> None:
    def fail(event: Progress) -> None:
        raise failure("of the callback")

    with pytest.raises(failure, match="of the callback"):
        memory.add_many([{"content": "x"}], on_progress=fail)
    assert memory.status().protocol == 1


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    return circle


# A bad argument, and what is said where that is more than what a field must be.
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a lone surrogate": (lambda memory: memory.add("\ud800"), ""),
    "a lone surrogate in a query": (lambda memory: memory.search("\udfff"), ""),
    "a lone surrogate in metadata": (lambda memory: memory.add("x", metadata={"\ud800": 1}), ""),
    "an unknown field of a memory": (lambda memory: memory.add("x", colour="red"), ""),
    "an unknown field among many": (lambda memory: memory.add_many([{"content": "x", "colour": "red"}]), ""),
    "an unknown parameter": (lambda memory: memory.search("x", colour="red"), ""),
    "an unknown parameter of list": (lambda memory: memory.list(colour="red"), ""),
    "an unknown parameter of update": (lambda memory: memory.update("abcd", colour="red"), ""),
    "a number as content": (lambda memory: memory.add(5), ""),
    "a list as metadata": (lambda memory: memory.add("x", metadata=[1]), ""),
    "an object that msgpack cannot carry": (lambda memory: memory.add("x", metadata={"a": object()}), ""),
    "metadata that holds itself": (lambda memory: memory.update("abcd", metadata=_circle()), ""),
    "an importance that is NaN": (lambda memory: memory.add("x", importance=float("nan")), ""),
    "a date that is none": (lambda memory: memory.add("x", created_at="yesterday"), ""),
    "a date with a month 13": (lambda memory: memory.list(after="2026-13-01"), ""),
    "a date that is a list": (lambda memory: memory.search("x", before=[2026]), ""),
    "an expiry that is none": (lambda memory: memory.update("abcd", expires_at="never"), ""),
    "an integer beyond 64 bits": (lambda memory: memory.add("x", metadata={"n": 2**64}), ""),
    "a memory without a text": (
        lambda memory: memory.add_many(["x", {"type": "note"}]),
        "memories[1]: Not a memory: `content` is missing.",
    ),
    "a memory that is a number": (
        lambda memory: memory.add_many([5]),
        "memories[0]: Not a memory: it must be a mapping, not int.",
    ),
    "one text for a list": (lambda memory: memory.add_many("x"), "`memories` must be a list, not one str."),
    "an entry that is a text": (
        lambda memory: memory.put_many(["x"]),
        "entries[0]: Not an entry: it must be a mapping, not str.",
    ),
    "an entry whose memory has a wrong field": (
        lambda memory: memory.put_many([{"key": "a", "memory": {"content": 5}}]),
        "entries[0]: Not a memory: `content` must be text, not a whole number.",
    ),
    "a turn that is a text": (
        lambda memory: memory.observe([{"role": "user", "content": "x"}, "y"]),
        "turns[1]: Not a turn: it must be a mapping, not str.",
    ),
    "a message that is a text": (
        lambda memory: memory.summarize(["x"], max_tokens=10),
        "messages[0]: Not a message: it must be an object with names and values, not text.",
    ),
}


@each("kind", [Client, AsyncClient])
@each(("call", "said"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_refused_before_anything_is_sent(call: Callable[[Any], Any], said: str, kind: Any) -> None:
    client = kind(socket="/nobody", autostart=False)  # a daemon that does not exist cannot have said it

    async def answer() -> None:
        if inspect.isawaitable(answered := call(client)):
            await answered

    with pytest.raises(Invalid) as refused:
        asyncio.run(answer())
    assert "\n" not in refused.value.message
    assert said in ("", refused.value.message)


def test_a_parameter_that_there_is_not_is_told_with_the_nearest_or_all() -> None:
    client = Client(socket="/nobody", autostart=False)
    with pytest.raises(Invalid, match=r"^There is no parameter `limt`; did you mean `limit`\?$"):
        client.search("x", limt=3)
    with pytest.raises(Invalid, match=r"^There is no parameter `colour`; there are .*\bquery, .*\.$"):
        client.search("x", colour="red")


def test_a_limit_of_time_may_be_given_in_words_to_every_method_that_has_one() -> None:
    midnight = datetime.combine(datetime.now().date(), datetime.min.time()).astimezone().timestamp()
    for build in (calls.search, calls.list_, methods.erase, methods.operations):
        assert build(after="today").after == midnight, build


@each("namespace", [("acme", ""), ("a/b",), ("",), (1,), ("acme", None)])
def test_a_namespace_with_a_part_that_is_none_is_refused(namespace: Any) -> None:
    with pytest.raises(Invalid):
        Client(namespace, autostart=False)


@each("namespace", ["a//b", "/a", "a/", " /a", "a\0b", "a/" * 16 + "a"])
def test_the_daemon_refuses_a_namespace_that_is_none(make: Make, namespace: str) -> None:
    client = make(namespace)
    for call in (lambda: client.add("x"), client.list, client.stats, lambda: client.search("x"), client.undo):
        with pytest.raises(Invalid):
            call()


def test_an_error_can_be_pickled_so_that_worker_processes_can_raise_it(client: Client) -> None:
    import pickle

    with pytest.raises(MemorydError) as raised:
        client.get("ffffffff")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), copy.message, copy.data) == (NotFound, raised.value.message, raised.value.data)


def test_a_field_that_a_turn_has_not_is_answered_with_those_that_it_has() -> None:
    with pytest.raises(Invalid, match="Not a turn: there is no field `text`; the fields are role, content, "):
        new_turn({"role": "user", "content": "x", "text": "y"})


def test_who_gives_a_memory_a_namespace_is_told_where_it_is_given() -> None:
    with pytest.raises(
        Invalid, match=r"no field `namespace`; .* \(the namespace is the client's: Client\(namespace=…\)\)"
    ):
        new_memory({"content": "x", "namespace": "acme"})
