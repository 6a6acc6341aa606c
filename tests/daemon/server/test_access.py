"""Tokens at the socket: what a connection may do with one, without one, with a wrong one and after it is revoked."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from each import each
from memoryd.client import AsyncClient, Client, Forbidden, Invalid, NotFound, Unauthenticated, protocol
from memoryd.client.errors import Conflict
from memoryd.client.protocol import DECLARED, METHODS, AddMany, AddToken, Authenticate, NewMemory, RevokeToken, Role
from memoryd.daemon.memories.batches import PART
from memoryd.daemon.server.dispatch import CallContext, run_call
from memoryd.daemon.store.caller import ANONYMOUS, USER, Caller
from wire import Wire
from workbench import Clock, Daemon

Connect = Callable[..., Client]
REVOKED = "The token is not known here; it may have been revoked."
NOTES = (protocol.GetContext, protocol.GetUnasked, protocol.ResetSession)  # of what a session was shown
ENTRY = protocol.KeyedEntry(key="k", memory=NewMemory(content="x"))


@pytest.fixture
def connect(daemon: "Daemon", client: Client) -> Iterator[Connect]:
    """Return a client with a new token for a namespace and a role."""
    made: list[Client] = []

    def connected(namespace: str, role: Role = "agent", place: str = "") -> Client:
        name = f"{namespace} {len(made)}"
        token = client.call(AddToken(name=name, namespace=namespace, role=role)).token
        made.append(daemon.client(place, token=token))
        return made[-1]

    yield connected
    for one in made:
        one.close()


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_token_is_placed_in_its_namespace_and_sees_it_and_what_encloses_it(client: Client, connect: Connect) -> None:
    for place in ("", "acme", "acme/api", "acme/api/alpha", "acme/api/alpha/in", "acme/api/beta", "other"):
        client.call(protocol.Add(memory=NewMemory(content=f"It lies in {place or 'the root'}"), namespace=place))
    alpha = connect("acme/api/alpha")
    assert {memory.namespace for memory in alpha.list()} == {"", "acme", "acme/api", "acme/api/alpha"}
    assert {hit.namespace for hit in alpha.search("lies in")} == {"", "acme", "acme/api", "acme/api/alpha"}
    assert {memory.namespace for memory in alpha.list(reach="exact")} == {"acme/api/alpha"}
    assert {memory.namespace for memory in alpha.list(reach="subtree")} == {"acme/api/alpha", "acme/api/alpha/in"}
    assert alpha.stats().by_namespace == {"": 1, "acme": 1, "acme/api": 1, "acme/api/alpha": 1}


def test_a_token_may_name_a_namespace_inside_its_own(connect: Connect) -> None:
    alpha = connect("acme/api/alpha", place="acme/api/alpha/task")
    added = alpha.add("Written inside")
    assert alpha.get(added.id).namespace == "acme/api/alpha/task"
    assert alpha.list(reach="visible").total == 1


@each("namespace", ["acme/api/beta", "acme/api/alphabet", "nobody/is/here"])
def test_a_token_does_not_speak_for_another_namespace(connect: Connect, namespace: str) -> None:
    alpha = connect("acme/api/alpha")
    for call in (
        protocol.List(namespace=namespace),
        protocol.Search(query="x", namespace=namespace),
        protocol.GetStats(namespace=namespace),
        protocol.Delete(ids=["abcd"], namespace=namespace),
    ):
        with pytest.raises(Forbidden, match="speaks for acme/api/alpha, not for"):
            alpha.call(call)


def test_what_a_token_sees_it_may_name_to_read_and_not_more(client: Client, connect: Connect) -> None:
    for place in ("", "acme", "acme/api", "acme/api/alpha", "acme/api/beta"):
        client.call(protocol.Add(memory=NewMemory(content=f"It lies in {place or 'the root'}"), namespace=place))
    for role in ("agent", "reader"):
        one = connect("acme/api/alpha", role)
        assert {memory.namespace for memory in one.call(protocol.List(namespace="acme/api"))} == {
            "acme/api",
            "acme",
            "",
        }
        assert [memory.namespace for memory in one.call(protocol.List(namespace="acme", reach="exact"))] == ["acme"]
        hits = one.call(protocol.Search(query="it lies in", namespace="acme/api"))
        assert {hit.namespace for hit in hits} == {"acme/api", "acme", ""}
        assert "lies in acme" in one.call(protocol.GetContext(task="what lies in acme?", namespace="acme")).text
        for reach in ("subtree", "all"):
            with pytest.raises(Forbidden, match=rf"reaches acme/api/alpha .* not '{reach}' of acme/api\.$"):
                one.call(protocol.List(namespace="acme/api", reach=reach))


def test_by_the_name_of_an_enclosing_namespace_a_token_changes_nothing(client: Client, connect: Connect) -> None:
    shared = client.call(protocol.Add(memory=NewMemory(content="The API speaks msgpack"), namespace="acme/api"))
    for role in ("agent", "lead"):
        one = connect("acme/api/alpha", role)
        for call in (
            protocol.Delete(ids=[shared.id], namespace="acme/api"),
            protocol.Update(id=shared.id, pinned=True, namespace="acme/api"),
            protocol.Undo(operation=shared.operation, namespace="acme/api"),
            protocol.Put(entries=[ENTRY], namespace="acme"),
        ):
            with pytest.raises(Forbidden, match=r"not for acme.*; in that namespace it may only read and add, so give"):
                one.call(call)


def test_who_names_the_place_of_another_is_told_what_it_may_do_where(connect: Connect) -> None:
    for role, told in (
        ("reader", "to read it may also name acme"),
        ("agent", "to read and to add it may also name acme"),
        ("lead", "in acme it may read, add and change"),
    ):
        with pytest.raises(Forbidden) as refused:
            connect("acme/alpha", role).list(namespace="acme/beta")
        assert refused.value.message == f"This token speaks for acme/alpha, not for acme/beta; {told}."


def test_a_context_by_the_name_of_an_enclosing_namespace_leaves_the_sessions_there_alone(
    client: Client, connect: Connect
) -> None:
    client.call(protocol.Add(memory=NewMemory(content="The API speaks msgpack"), namespace="acme/api"))
    call = protocol.GetContext(task="what does the API speak?", namespace="acme/api", session="talk")
    assert "msgpack" in client.call(call).text
    assert "msgpack" in connect("acme/api/alpha").call(msgspec.structs.replace(call, fresh=True)).text
    assert "msgpack" not in client.call(call).text


def test_a_reach_beyond_the_token_is_refused_and_not_narrowed(connect: Connect) -> None:
    with pytest.raises(Forbidden) as refused:
        connect("acme/api/alpha").list(reach="all")
    reaches = "acme/api/alpha and the namespaces around it ('visible') or inside it ('subtree')"
    assert refused.value.message == f"This token reaches {reaches}, not 'all'."


def test_a_memory_that_cannot_be_seen_is_like_one_that_does_not_exist(client: Client, connect: Connect) -> None:
    secret = client.call(
        protocol.Add(memory=NewMemory(content="A secret", id="abcd" + "0" * 28), namespace="acme/beta")
    )
    alpha = connect("acme/alpha")
    for do in (alpha.get, alpha.delete, alpha.history, lambda id: alpha.update(id, importance=1.0)):
        with pytest.raises(NotFound) as hidden:
            do(secret.id)
        with pytest.raises(NotFound) as missing:
            do("abcd" + "1" * 28)
        assert hidden.value.message.replace(secret.id, "") == missing.value.message.replace("abcd" + "1" * 28, "")


# Changing ------------------------------------------------------------------------------------------------------------


def test_an_agent_adds_to_an_enclosing_namespace_but_changes_nothing_of_others_there(
    client: Client, connect: Connect
) -> None:
    alpha = connect("acme/api/alpha")
    new = NewMemory(content="The API speaks msgpack")
    shared = connect("acme/api/beta").call(protocol.Add(memory=new, namespace="acme/api"))
    assert client.get(shared.id).namespace == "acme/api"
    for do in (
        lambda: alpha.update(shared.id, content="The API speaks JSON"),
        lambda: alpha.tag(shared.id, "wrong"),
        lambda: alpha.delete(shared.id),
        lambda: alpha.share(shared.id, to="acme", move=True),
        lambda: alpha.add("The API speaks JSON", supersedes=shared.id),
    ):
        with pytest.raises(Forbidden, match=f"Memory {shared.id[:8]} is shared.*what it added itself"):
            do()
    assert client.get(shared.id).content == "The API speaks msgpack"
    assert client.get(shared.id).superseded_by is None


def test_a_reader_changes_nothing_by_any_method_and_finds_what_an_agent_finds(client: Client, connect: Connect) -> None:
    entry = protocol.KeyedEntry(key="k", memory=NewMemory(content="The API speaks msgpack"))
    put = client.call(protocol.Put(entries=[entry], namespace="acme/api"))
    [known] = put.results
    reader = connect("acme/api", "reader")
    for method in METHODS:
        declared = DECLARED[method]
        if declared.access in ("within", "outward") and not declared.reads and method not in NOTES:
            fields = {field.name: make_value(field.type) for field in msgspec.structs.fields(method) if field.required}
            with pytest.raises(Forbidden, match="only reads"):
                reader.call(method(**fields))
    assert [hit.id for hit in reader.search("what does the API speak?")] == [known.id]
    assert reader.get(key="k", renew=True).id == known.id
    assert "msgpack" in reader.context("the API", session="s").text
    reader.reset_session("s")
    assert client.operations().operations[0].id == put.operation


def test_names_are_whole_names_for_a_token_in_every_call(client: Client, connect: Connect) -> None:
    ann = connect("app/users/ann")
    memory = {"content": "Ann prefers tea"}
    for below in ("users/bob", "app/users/bob", "app", "app/users"):
        for call in (
            protocol.Put(entries=[protocol.KeyedEntry(key="k", below=below, memory=NewMemory(content="x"))]),
            protocol.Put(entries=[ENTRY], namespace=below),
            protocol.Put(entries=[protocol.KeyedEntry(key="k", below=below)]),
        ):
            with pytest.raises(Forbidden, match="speaks for app/users/ann, not for"):
                ann.call(call)
    ann.put_many([{"key": "k", "memory": memory}, {"key": "k", "below": "app/users/ann/tea", "memory": memory}])
    assert ann.get(key="k").namespace == "app/users/ann"
    assert {one.namespace for one in client.list()} == {"app/users/ann", "app/users/ann/tea"}
    with pytest.raises(Invalid, match="that of an earlier entry"):
        ann.put_many([{"key": "k"}, {"key": "k", "below": "app/users/ann"}])
    assert len(ann.put_many([{"key": "k"}, {"key": "k", "below": "app/users/ann/tea"}]).results) == 2
    assert not client.list()


@each("namespace", ["acme/api", "acme", "acme/api/beta"])
def test_an_agent_resets_no_session_but_its_own(connect: Connect, namespace: str) -> None:
    alpha = connect("acme/api/alpha")
    alpha.reset_session("talk")
    with pytest.raises(Forbidden, match="speaks for acme/api/alpha"):
        alpha.call(protocol.ResetSession(namespace=namespace, session="talk"))


def test_a_lead_edits_and_deletes_what_is_shared_with_it(client: Client, connect: Connect) -> None:
    shared = client.call(protocol.Add(memory=NewMemory(content="The API speaks msgpack"), namespace="acme/api"))
    private = client.call(protocol.Add(memory=NewMemory(content="A thought"), namespace="acme/api/alpha"))
    lead = connect("acme/api/lead", "lead")
    assert lead.update(shared.id, content="The API speaks JSON").memory.content == "The API speaks JSON"
    deleted = lead.delete(shared.id)
    assert lead.undo(deleted.operation).ids == [shared.id]
    with pytest.raises(NotFound):
        lead.delete(private.id)


def test_what_an_agent_says_again_leaves_the_shared_memory_as_it_is(client: Client, connect: Connect) -> None:
    call = protocol.Add(memory=NewMemory(content="The API speaks msgpack", metadata={"by": "owner"}), namespace="acme")
    shared = client.call(call)
    again = NewMemory(content="the API  speaks msgpack", metadata={"by": "alpha"}, pinned=True)
    merged = connect("acme/alpha").call(protocol.Add(memory=again, namespace="acme"))
    assert (merged.id, merged.outcome) == (shared.id, "merged")
    kept = client.get(shared.id)
    assert (kept.content, kept.metadata, kept.pinned) == ("The API speaks msgpack", {"by": "owner"}, False)
    lead = connect("acme/lead", "lead")
    assert lead.call(protocol.Add(memory=again, namespace="acme")).outcome == "merged"
    assert client.get(shared.id).metadata == {"by": "alpha"}


def test_only_the_machines_user_chooses_ids(client: Client, connect: Connect) -> None:
    alpha = connect("acme/alpha")
    for id in ("0" * 32, client.add("It has an id").id):
        with pytest.raises(Forbidden, match="choose the id"):
            alpha.add("With an id", id=id)
        with pytest.raises(Forbidden, match="choose the id"):
            alpha.add_many([{"content": "Without"}, {"content": "With", "id": id}])
    assert alpha.list(reach="exact").total == 0


# Undo ----------------------------------------------------------------------------------------------------------------


def test_an_agent_undoes_its_own_operations_the_latest_first(client: Client, connect: Connect) -> None:
    alpha = connect("acme/alpha")
    first = alpha.add("A first thought")
    shared = alpha.share(first.id, to="acme")
    client.call(protocol.Add(memory=NewMemory(content="Later, by somebody else"), namespace="acme"))
    assert alpha.undo().undone == shared.operation
    assert alpha.undo().undone == first.operation
    with pytest.raises(NotFound, match="nothing to undo"):
        alpha.undo()


def test_an_agent_does_not_undo_what_others_did_to_shared_memories(client: Client, connect: Connect) -> None:
    shared = client.call(protocol.Add(memory=NewMemory(content="It is shared"), namespace="acme"))
    alpha, lead = connect("acme/alpha"), connect("acme/lead", "lead")
    [seen] = alpha.operations()
    with pytest.raises(Forbidden, match=f"Operation {seen.id[:8]} is not yours to undo"):
        alpha.undo(seen.id)
    with pytest.raises(Forbidden, match="not yours to undo"):
        lead.undo(seen.id)
    assert client.undo(seen.id).ids == [shared.id]


def test_a_token_undoes_nothing_that_the_owner_or_a_former_token_of_its_name_did(
    daemon: "Daemon", client: Client, clock: "Clock"
) -> None:
    def connect_ben() -> Client:
        return daemon.client("", token=client.call(AddToken(name="ben", namespace="acme/ben", role="agent")).token)

    with connect_ben() as former:
        own = former.add("The heron fishes in the pond at night")
        gone = former.add("The stork nests on the roof of the mill")
        former.delete(gone.id)
    deleted = client.delete(own.id)
    client.call(RevokeToken(name="ben"))
    clock.advance(1.0)
    with connect_ben() as later:
        for id in (operation.id for operation in later.operations()):
            with pytest.raises(Forbidden, match="not yours to undo"):
                later.undo(id)
            assert later.history(operation=id).changes == []
        with pytest.raises(NotFound, match="nothing to undo"):
            later.undo()
        for id in (own.id, gone.id):
            with pytest.raises(NotFound, match="No memory has an id"):
                later.history(id)
    assert client.undo(deleted.operation).ids == [own.id]


def test_what_a_token_added_to_a_shared_place_it_may_correct_until_somebody_else_changes_it(
    client: Client, connect: Connect
) -> None:
    alpha, beta, lead = connect("acme/alpha"), connect("acme/beta"), connect("acme/lead", "lead")
    added = alpha.call(protocol.Add(memory=NewMemory(content="The heron fishes at nihgt"), namespace="acme"))
    beta.feedback(added.id, useful=True)
    for other in (beta, connect("acme/alpha")):
        with pytest.raises(Forbidden, match="what it added itself"):
            other.update(added.id, content="The heron sleeps")
        with pytest.raises(Forbidden, match="what it added itself"):
            other.delete(added.id)
    assert alpha.update(added.id, content="The heron fishes at night").memory.namespace == "acme"
    lead.update(added.id, content="The heron fishes at dawn")
    with pytest.raises(Forbidden, match="what it added itself"):
        alpha.delete(added.id)
    again = alpha.call(protocol.Add(memory=NewMemory(content="The stork nests on the roof"), namespace="acme"))
    assert alpha.delete(again.id).ids == [again.id]


def test_who_says_the_same_again_leaves_the_right_to_correct_with_who_added_it(
    client: Client, connect: Connect
) -> None:
    alpha, beta, lead = connect("acme/alpha"), connect("acme/beta"), connect("acme/lead", "lead")
    same = protocol.Add(memory=NewMemory(content="The heron fishes at nihgt"), namespace="acme")
    added = alpha.call(same)
    assert [other.call(same).outcome for other in (beta, lead, client)] == ["merged"] * 3
    with pytest.raises(Forbidden, match="what it added itself"):
        beta.delete(added.id)
    assert alpha.update(added.id, content="The heron fishes at night").memory.namespace == "acme"
    lead.add("The heron fishes at dusk", supersedes=added.id)
    with pytest.raises(Forbidden, match="what it added itself"):
        alpha.delete(added.id)


def test_feedback_of_others_neither_blocks_an_undo_nor_is_lost_by_it(client: Client, connect: Connect) -> None:
    alpha, beta = connect("acme/alpha"), connect("acme/beta")
    added = alpha.call(protocol.Add(memory=NewMemory(content="The heron fishes at night"), namespace="acme"))
    changed = alpha.update(added.id, content="The heron fishes at dawn")
    beta.feedback(added.id, useful=True)
    alpha.undo(changed.operation)
    there = client.get(added.id)
    assert (there.content, there.usefulness and there.usefulness.useful) == ("The heron fishes at night", 1)
    assert alpha.undo(added.operation).ids == [added.id]


def test_an_undo_that_others_changes_block_does_not_advise_to_undo_those(client: Client, connect: Connect) -> None:
    alpha, lead = connect("acme/alpha"), connect("acme/lead", "lead")
    added = alpha.call(protocol.Add(memory=NewMemory(content="The heron fishes at night"), namespace="acme"))
    lead.update(added.id, content="The heron fishes at dawn")
    with pytest.raises(Conflict, match="not all yours to undo"):
        alpha.undo(added.operation)


def test_nobody_pushes_anothers_turns_out_of_a_shared_ring(daemon: "Daemon", client: Client, connect: Connect) -> None:
    def observe(by: Client, said: str) -> None:
        turns = [protocol.NewTurn(role="user", content=said)]
        by.call(protocol.Observe(turns=turns, namespace="acme", session="talk"))

    for number in range(5):
        observe(client, f"The owner decided that rule {number} holds for all of us")
    alpha, beta = connect("acme/alpha"), connect("acme/beta")
    for number in range(60):
        observe(alpha, f"We of alpha decided that the heron fishes in pond {number}")
        if number % 10 == 0:
            observe(beta, f"We of beta decided that the stork nests on roof {number}")
    said = " ".join(turn.content for turn in daemon.core.active.list_turns(None))
    assert [said.count(words) for words in ("The owner", "of beta", "of alpha", "pond 59")] == [5, 6, 9, 1]


def test_an_operation_on_what_an_agent_does_not_see_is_to_it_as_one_that_never_was(
    client: Client, connect: Connect
) -> None:
    alpha = connect("acme/alpha")
    own = alpha.add("A first thought").operation
    hidden = client.call(protocol.Add(memory=NewMemory(content="Of beta"), namespace="acme/beta")).operation
    for id in (hidden, hidden[:8], "0" * 32):
        with pytest.raises(NotFound, match=f"No operation has an id that begins with {id}"):
            alpha.undo(id)
        with pytest.raises(NotFound, match=f"No operation has an id that begins with {id}"):
            alpha.history(operation=id)
    assert client.undo(own[:8]).undone == own  # the owner may use what an agent names


def test_undo_does_not_fetch_back_a_memory_that_went_elsewhere(client: Client, connect: Connect) -> None:
    alpha = connect("acme/alpha")
    added = alpha.add("It goes to beta")
    moved = client.share(added.id, to="acme/beta", move=True)
    with pytest.raises(Forbidden, match="not yours to undo"):
        alpha.undo(alpha.operations().operations[0].id)
    assert client.operations().operations[0].id == moved.operation
    with pytest.raises(Conflict):
        alpha.undo(added.operation)
    assert client.get(added.id).namespace == "acme/beta"
    assert [change.action for change in alpha.history(added.id)] == ["created", "deleted"]


def test_an_operation_called_from_elsewhere_shows_where_it_touched_what_one_sees(
    client: Client, connect: Connect
) -> None:
    beta = connect("acme/beta")
    beta.share(beta.add("It is shared with all").id, to="acme")
    seen = [
        (operation.kind, operation.namespace, operation.memories) for operation in connect("acme/alpha").operations()
    ]
    assert seen == [("share", "acme", 1)]


def test_an_operation_is_shown_where_all_that_it_touched_lies(client: Client, connect: Connect) -> None:
    alpha = connect("acme/api/alpha")
    for place in ("acme", "acme/api"):
        alpha.call(protocol.Add(memory=NewMemory(content=f"It lies in {place}"), namespace=place))
    every = [(one.kind, one.namespace, one.memories) for one in client.operations()]
    assert [(one.kind, one.namespace, one.memories) for one in alpha.operations()] == every
    assert every == [("add", "acme/api", 1), ("add", "acme", 1)]
    alpha.delete(alpha.add("It is its own").id)
    client.call(protocol.Erase(namespace="acme", reach="subtree"))

    def at(place: str) -> list[protocol.Operation]:
        return client.call(protocol.Operations(namespace=place, reach="subtree")).operations

    erased = [(one.namespace, one.memories) for one in at("acme")]
    assert erased == [("acme", 3)]
    assert [one.namespace for one in at("acme/api")] == ["acme/api"]
    assert [one.namespace for one in client.operations()] == ["acme"]


def test_a_kept_trace_shows_nothing_of_a_memory_that_went_elsewhere(client: Client, connect: Connect) -> None:
    alpha = connect("acme/alpha")
    added = alpha.add("It goes to beta")
    trace = alpha.search("goes to beta").trace
    client.share(added.id, to="acme/beta", move=True)
    client.update(added.id, content="A secret of beta's")
    assert alpha.trace(trace).candidates == []


# Connections ---------------------------------------------------------------------------------------------------------


def make_value(type: Any) -> Any:
    if type in (str, bool, int, NewMemory):
        return {str: "x", bool: True, int: 1, NewMemory: NewMemory(content="x")}[type]
    return get_args(type)[0] if get_origin(type) is Literal else []


def test_administration_is_for_the_machines_user(connect: Connect) -> None:
    for role in ("agent", "lead"):
        one = connect("acme/alpha", role)
        for method in METHODS:
            if DECLARED[method].access == "owner":
                fields = {
                    field.name: make_value(field.type) for field in msgspec.structs.fields(method) if field.required
                }
                with pytest.raises(Forbidden, match="for the machine's user"):
                    one.call(method(**fields))


def test_a_revoked_token_ends_open_connections_at_once(client: Client, connect: Connect) -> None:
    alpha = connect("acme/alpha")
    alpha.add("Before")
    client.call(RevokeToken(name="acme/alpha 0"))
    with pytest.raises(Unauthenticated, match=REVOKED):
        alpha.list()
    alpha.close()
    with pytest.raises(Unauthenticated, match=REVOKED):
        alpha.list()
    assert client.list().total == 1


def test_a_revoked_token_ends_a_long_call_between_two_parts(daemon: "Daemon", client: Client, connect: Connect) -> None:
    connect("acme/alpha")
    caller = daemon.core.tokens.find_named("acme/alpha 0")
    call = AddMany(memories=[NewMemory(content=f"Fact {number}") for number in range(150)], namespace="acme/alpha")
    context: Any = CallContext(daemon.core, lambda event: None, *[None] * 5)._replace(caller=caller)  # type: ignore[arg-type]
    parts: Any = run_call(context, call)
    next(parts)
    client.call(RevokeToken(name="acme/alpha 0"))
    with pytest.raises(Unauthenticated, match=rf"The first {PART} of 150 are stored, the rest is not: The token"):
        next(parts)
    assert client.list().total == PART


def test_after_a_wrong_token_a_connection_is_nobody_whoever_it_was(daemon: "Daemon", client: Client) -> None:
    client.add("A memory")
    with Wire(daemon.socket) as wire:
        assert wire.ask({"method": "list"})[0] == 0
        assert wire.ask({"method": "authenticate", "token": "mt_wrong"})[2] == "unauthenticated"
        assert wire.ask({"method": "list"})[2] == "unauthenticated"
        assert wire.ask({"method": "shutdown"})[2] == "unauthenticated"
        status = wire.ask({"method": "status"})
        assert (status[0], status[2]["memories"]) == (0, 0)


def test_a_wrong_token_fails_the_call_that_it_came_with(daemon: "Daemon") -> None:
    with daemon.client(token="mt_wrong") as wrong, pytest.raises(Unauthenticated, match="not known"):
        wrong.add("It is not stored")
    with daemon.client() as owner:
        assert owner.list().total == 0


async def test_the_asynchronous_client_presents_its_token_too(daemon: "Daemon", client: Client) -> None:
    token = client.call(AddToken(name="alpha", namespace="acme/alpha")).token
    async with AsyncClient(socket=daemon.socket, autostart=False, token=token) as alpha:
        added = await alpha.add("From alpha")
        assert (await alpha.get(added.id)).namespace == "acme/alpha"
        client.call(RevokeToken(name="alpha"))
        with pytest.raises(Unauthenticated):
            await alpha.list()
    async with AsyncClient(socket=daemon.socket, autostart=False, token="mt_wrong") as wrong:
        with pytest.raises(Unauthenticated):
            await wrong.list()


def test_the_token_of_the_environment_is_presented(
    daemon: "Daemon", client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_TOKEN", client.call(AddToken(name="alpha", namespace="acme/alpha")).token)
    with daemon.client() as alpha:
        assert alpha.get(alpha.add("Mine").id).namespace == "acme/alpha"
    with daemon.client(token="") as owner:
        assert owner.list().total == 1


def test_a_token_is_presented_again_on_each_new_connection(daemon: "Daemon", client: Client) -> None:
    token = client.call(AddToken(name="alpha", namespace="acme/alpha")).token
    with daemon.client(token=token) as alpha:
        alpha.add("On the first connection")
        alpha.close()
        assert alpha.list(reach="exact").total == 1


def test_authenticate_tells_whom_the_connection_speaks_for(connect: Connect, client: Client) -> None:
    token = client.call(AddToken(name="lead", namespace="acme/lead", role="lead")).token
    identity = client.call(Authenticate(token=token))
    assert (identity.name, identity.namespace, identity.role) == ("lead", "acme/lead", "lead")


# Tokens wanted -------------------------------------------------------------------------------------------------------


@pytest.fixture
def strict(start_daemon: Callable[..., "Daemon"]) -> "Daemon":
    return start_daemon(access={"require_token": True})


def test_without_a_token_only_the_bare_status_is_answered(strict: "Daemon") -> None:
    with strict.client() as anonymous:
        assert anonymous.status().memories == 0
        for call in (protocol.List(), protocol.GetStats(), protocol.Shutdown(), AddToken(name="x", namespace="y")):
            with pytest.raises(Unauthenticated, match="requires a token"):
                anonymous.call(call)


def test_the_owners_token_lies_in_the_data_directory_for_its_user_alone(strict: "Daemon") -> None:
    file = strict.core.tokens.owner_file
    assert file.stat().st_mode & 0o777 == 0o600
    with strict.client(token=file.read_text().strip()) as owner:
        owner.add("By the owner")
        assert owner.status().memories == 1
        token = owner.call(AddToken(name="alpha", namespace="acme/alpha")).token
        with strict.client(token=token) as alpha:
            alpha.add("By alpha")
            assert alpha.status().memories == 2
        assert owner.call(protocol.Authenticate(token=token)).name == "alpha"


def test_where_tokens_are_wanted_a_revoked_one_is_named_as_such(strict: "Daemon") -> None:
    with strict.client(token=strict.core.tokens.owner_file.read_text().strip()) as owner:
        token = owner.call(AddToken(name="alpha", namespace="acme/alpha")).token
        with strict.client(token=token) as alpha:
            alpha.list()
            owner.call(RevokeToken(name="alpha"))
            for _ in range(2):  # on the connection that it had, and on a new one
                with pytest.raises(Unauthenticated, match=REVOKED):
                    alpha.list()
                alpha.close()


# Rules ---------------------------------------------------------------------------------------------------------------


@each(
    ("namespace", "own", "seen", "agents", "leads"),
    [
        ("a/b", True, True, True, True),
        ("a/b/c", True, True, True, True),
        ("a", False, True, False, True),
        ("", False, True, False, True),
        ("a/bc", False, False, False, False),
        ("a/x", False, False, False, False),
        ("b", False, False, False, False),
    ],
)
def test_what_belongs_to_a_caller(namespace: str, own: bool, seen: bool, agents: bool, leads: bool) -> None:
    agent, lead = Caller("agent", "a/b"), Caller("lead", "a/b")
    assert (agent.is_owner_of(namespace), agent.can_see(namespace)) == (own, seen)
    assert (agent.may_change(namespace), lead.may_change(namespace)) == (agents, leads)
    assert USER.is_owner_of(namespace)
    assert USER.may_change(namespace)


def test_an_anonymous_caller_changes_nothing() -> None:
    assert ANONYMOUS.bound
    assert not ANONYMOUS.may_change("a")


@each("fields", [{"namespace": ""}, {"namespace": "a//b"}, {"name": ""}, {"name": "x" * 65}, {"name": "a\nb"}])
def test_a_token_needs_a_name_and_a_namespace(client: Client, fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        client.call(AddToken(**{"name": "alpha", "namespace": "acme", **fields}))


def test_tokens_are_listed_without_their_secrets_and_named_once(client: Client, daemon: "Daemon") -> None:
    assert list(client.call(protocol.ListTokens())) == []
    made = [client.call(AddToken(name=name, namespace="acme/x")) for name in ("b", "a")]
    with pytest.raises(Conflict, match="'a' already"):
        client.call(AddToken(name="a", namespace="acme/y"))
    listed = client.call(protocol.ListTokens())
    assert [(token.name, token.role, token.last_used_at) for token in listed] == [
        ("a", "agent", None),
        ("b", "agent", None),
    ]
    with daemon.client(token=made[0].token) as used:
        used.call(Authenticate(token=made[0].token))
        client.add("A write after it connected")
        assert [token.last_used_at is None for token in client.call(protocol.ListTokens())] == [True, True]
        used.list()
    client.add("A write after the note of the use")
    assert [token.last_used_at is None for token in client.call(protocol.ListTokens())] == [True, False]
    stored = daemon.core.store.path.read_bytes() + daemon.core.store.path.with_name("memoryd.sqlite-wal").read_bytes()
    assert not any(token.token.encode() in stored for token in made)


def test_an_unknown_token_cannot_be_revoked(client: Client) -> None:
    with pytest.raises(NotFound, match="no token 'x'"):
        client.call(RevokeToken(name="x"))


# Sockets of sandboxes ------------------------------------------------------------------------------------------------


def test_a_socket_that_is_bound_to_a_token_serves_nobody_else(
    start_daemon: Callable[..., "Daemon"], folder: Path
) -> None:
    place = folder / "box" / "s"
    daemon = start_daemon(access={"sockets": {str(place): "box"}})
    with daemon.client() as owner:
        owner.call(protocol.Add(memory=NewMemory(content="A secret of beta"), namespace="acme/beta"))
        with Client(socket=place, autostart=False) as early, pytest.raises(Unauthenticated):
            early.list()
        secret = owner.call(AddToken(name="box", namespace="acme/box", role="agent")).token
        other = owner.call(AddToken(name="beta", namespace="acme/beta", role="agent")).token
        assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        with Client(socket=place, autostart=False) as boxed:
            assert boxed.add("A note of the sandbox").outcome == "created"
            assert [memory.namespace for memory in boxed.list()] == ["acme/box"]
            with pytest.raises(Forbidden, match="speaks for acme/box"):
                boxed.call(protocol.List(namespace="acme/beta"))
            for token in (secret, other, "mt_unknown"):
                with pytest.raises((Forbidden, Unauthenticated)):
                    boxed.call(Authenticate(token=token))
            with pytest.raises(Forbidden, match="machine's user"):
                boxed.call(AddToken(name="more", namespace="acme", role="lead"))
            owner.call(RevokeToken(name="box"))
            with pytest.raises(Unauthenticated):
                boxed.list()
