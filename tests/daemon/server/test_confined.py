"""A connection that is bound to a token by its name, for somebody on another machine (`confine`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.client import Client, Forbidden, NotFound, Unauthenticated, protocol
from memoryd.client.protocol import (
    METHODS,
    Add,
    AddToken,
    Confine,
    FindCandidates,
    List,
    NewMemory,
    Update,
    method_name,
)
from memoryd.daemon.server.access import _FOR_OTHER_MACHINES
from memoryd.daemon.store.queries import DRAWN
from waiting import wait_until
from workbench import Daemon

PLACES = ("", "acme", "acme/api", "acme/api/v2", "acme/web")


@pytest.fixture
def ada(daemon: "Daemon", client: Client) -> Iterator[Client]:
    """A client that is bound to the token `ada` of acme/api, among memories in and around that."""
    for place in PLACES:
        client.call(Add(memory=NewMemory(content=f"Zebras live in {place or 'the root'}"), namespace=place))
    client.call(AddToken(name="ada", namespace="acme/api"))
    with daemon.client() as bound:
        assert bound.call(Confine(name="ada")).namespace == "acme/api"
        yield bound


def test_it_reaches_its_namespace_and_what_is_inside_and_nothing_around_it(ada: Client) -> None:
    inside = {"acme/api", "acme/api/v2"}
    assert {memory.namespace for memory in ada.list()} == inside
    assert {one.namespace for one in ada.call(FindCandidates(query="where do zebras live?")).found} == inside
    assert {entry.name for entry in ada.call(protocol.Namespaces()).namespaces} == inside
    assert {memory.namespace for memory in ada.call(List(namespace="acme/api/v2"))} == {"acme/api/v2"}
    refused = [
        *(FindCandidates(query="zebras", reach=reach) for reach in ("visible", "all")),
        *(call(namespace=place) for call in (List, protocol.Namespaces) for place in ("acme", "acme/web")),
        Add(memory=NewMemory(content="It goes outward"), namespace="acme"),
    ]
    for call in refused:
        with pytest.raises(Forbidden):
            ada.call(call)


def test_conversations_of_the_machine_and_its_files_are_not_seen(client: Client, ada: Client, folder: Path) -> None:
    said = [{"role": "user", "content": f"Zebras are what we decided on in part {number}"} for number in range(3)]
    with Client("acme/api", socket=client.socket_path, autostart=False) as project:
        project.observe(said, session="s")
        for source in DRAWN:
            project.add(f"Zebras were drawn by {source}", source=source, dedup=False)
        (folder / "notes").mkdir()
        (folder / "notes" / "zebras.md").write_text("# Zebras\nZebras stand in a file.\n")
        project.call(protocol.AddWorkspace(path=str(folder / "notes"), namespace="acme/api"))
        wait_until(lambda: any("in a file" in hit.content for hit in project.search("zebras in a file", limit=20)))
        for _ in ("while it is in L0", "when it has left it"):
            theirs = {"Zebras live in acme/api", "Zebras live in acme/api/v2"}
            assert {memory.content for memory in ada.list(limit=100)} == theirs
            assert {memory.content for memory in ada.list(limit=100, where={"memory.type": "turn"})} == set()
            found = ada.call(FindCandidates(query="what we decided on zebras", limit=100)).found
            assert {one.content for one in found} == theirs
            [turn] = project.search("decided on in part 2", limit=1)
            assert turn.type == "turn"
            project.call(protocol.Consolidate())


def test_what_lies_around_is_not_there_by_its_id(client: Client, ada: Client) -> None:
    outside = [memory for memory in client.list() if not memory.namespace.startswith("acme/api")]
    assert len(outside) == 3
    for memory in outside:
        calls = (
            protocol.Get(id=memory.id),
            protocol.History(id=memory.id),
            Update(id=memory.id, content="It is mine now"),
            protocol.Delete(ids=[memory.id]),
            Add(memory=NewMemory(content="It replaces that", supersedes=memory.id)),
        )
        for call in calls:
            with pytest.raises(NotFound):
                ada.call(call)
        assert client.get(memory.id).content == memory.content


def test_no_other_call_is_taken(ada: Client) -> None:
    calls = (
        *(method() for method in (protocol.GetStatus, protocol.GetStats, protocol.ListTokens, protocol.Operations)),
        *(protocol.Authenticate(token=""), protocol.Hello(version="99.0.0"), Confine(name="ada")),
        protocol.Share(ids=["abcd"], to=""),
        protocol.GetContext(task="zebras"),
        *(protocol.Delete(), protocol.Delete(type=["fact"]), protocol.Delete(reach="subtree", dry_run=True)),
    )
    for call in calls:
        with pytest.raises(Forbidden, match="not allowed from another machine"):
            ada.call(call)
    assert {method_name(method) for method in METHODS if method in _FOR_OTHER_MACHINES} == {
        *("find_candidates", "get", "list", "namespaces", "history", "add", "put", "update", "delete", "undo")
    }


def test_what_it_writes_has_its_name_whatever_it_says(client: Client, ada: Client) -> None:
    added = ada.add("The gateway is written in Go", metadata={"author": "bob", "team": "edge"}, origin="person")
    put = ada.put("port", "It listens on 8080")
    memory = client.get(added.id)
    assert (memory.metadata, memory.origin) == ({"author": "ada", "team": "edge"}, "agent")
    assert client.get(str(put.results[0].id)).metadata == {"author": "ada"}
    theirs = client.call(Add(memory=NewMemory(content="Releases are on Mondays"), namespace="acme/api"))
    assert ada.update(theirs.id, content="Releases are on Fridays").memory.metadata == {"author": "ada"}
    call = Update(id=added.id, metadata={"author": "bob"}, replace_metadata=True)
    assert ada.call(call).memory.metadata == {"author": "ada"}


def test_it_takes_back_what_it_did_and_nothing_else(client: Client, ada: Client) -> None:
    theirs = client.call(Add(memory=NewMemory(content="Releases are on Mondays"), namespace="acme/api"))
    outside = client.call(Add(memory=NewMemory(content="Rent is due on the first"), namespace="home"))
    mine = ada.add("The gateway is written in Go")
    for operation in (theirs.operation, outside.operation):
        with pytest.raises((Forbidden, NotFound)):
            ada.call(protocol.Undo(operation=operation))
    assert ada.call(protocol.Undo(operation=mine.operation)).ids == [mine.id]
    with pytest.raises(NotFound):
        ada.call(protocol.Undo())
    assert {theirs.id, outside.id} <= {memory.id for memory in client.list(limit=100)}


def test_a_reader_changes_nothing_and_one_that_is_revoked_reads_nothing(daemon: "Daemon", client: Client) -> None:
    client.call(AddToken(name="eve", namespace="acme", role="reader"))
    with daemon.client() as eve:
        eve.call(Confine(name="eve"))
        with pytest.raises(Forbidden, match="only reads"):
            eve.add("Eve was here")
        assert eve.list().total == 0
        client.call(protocol.RevokeToken(name="eve"))
        with pytest.raises(Unauthenticated):
            eve.list()


def test_only_the_owner_binds_a_connection_and_to_a_token_that_there_is(daemon: "Daemon", client: Client) -> None:
    token = client.call(AddToken(name="ada", namespace="acme")).token
    with daemon.client(token=token) as bound, pytest.raises(Forbidden, match="for the machine's user"):
        bound.call(Confine(name="ada"))
    with pytest.raises(NotFound, match="There is no token 'bob'"):
        client.call(Confine(name="bob"))
    with pytest.raises(NotFound):
        client.call(Confine(name=""))
