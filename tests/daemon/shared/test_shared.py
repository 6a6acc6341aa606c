"""A shared root over a real ssh: what goes there by itself, what is found, read, changed there."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from joined import Joined, Shared

from memoryd.client import Forbidden, Invalid, NotFound, Unauthenticated, protocol
from memoryd.client.protocol import Add, AddToken, Get, GetShared, List, NewMemory, RevokeToken, Search, Update
from memoryd.client.transport.frames import frame
from workbench import Daemon


def test_a_decision_goes_to_the_place_and_is_found_from_here(shared: Shared) -> None:
    added = shared.decide("Releases are on Tuesdays")
    assert (added.shared, added.waiting, added.outcome) == ("acme", False, "created")
    [there] = shared.there.list()
    assert (there.id, there.namespace, there.metadata) == (added.id, "acme/api", {"author": "acme"})
    for call in (
        Search(query="when are releases?", namespace="acme/api"),
        Search(query="when are releases?", namespace="acme/api/v2"),
        Search(query="when are releases?"),
    ):
        [hit] = shared.here.call(call)
        assert (hit.id, hit.shared, hit.tier) == (added.id, "acme", "L3")
    assert not shared.here.call(Search(query="when are releases?", namespace="acme/web")).hits
    assert not shared.here.call(Search(query="when are releases?", namespace="other")).hits
    assert shared.here.call(List(namespace="acme/api")).total == 1
    assert shared.here.call(Get(id=added.id[:8])).content == "Releases are on Tuesdays"
    assert not (shared.daemon.core.folder / "memoryd.sqlite").read_bytes().count(b"on Tuesdays")


def test_what_does_not_go_by_itself_stays_here(shared: Shared) -> None:
    kept = (
        NewMemory(content="I like tabs", type="preference"),
        NewMemory(content="The cache has 4 GB", type="fact"),
        NewMemory(content="It was imported", type="decision", source="mem0"),
        NewMemory(content="It has an id", type="decision", id="ab" * 16),
    )
    for memory in kept:
        assert not shared.here.call(Add(memory=memory, namespace="acme/api")).shared
    # The root itself may be called like a folder; what is beside it is none of its own.
    for namespace in ("acme", "", "acmeinc/api", "other"):
        assert not shared.decide(f"A decision of {namespace or 'nobody'}", namespace).shared
    with shared.daemon.client("acme/api") as project:
        project.observe([{"role": "user", "content": "We decided to use Valkey"}])
    shared.here.call(
        protocol.AddMany(memories=[NewMemory(content="One of many", type="decision")], namespace="acme/api")
    )
    assert shared.list_there() == []


def test_changes_by_id_are_made_where_the_memory_is(shared: Shared) -> None:
    added = shared.decide("Releases are on Tuesdays")
    local = shared.here.call(Add(memory=NewMemory(content="Mine"), namespace="acme/api"))
    changed = shared.here.call(Update(id=added.id, content="Releases are on Fridays"))
    assert (changed.memory.content, changed.memory.shared) == ("Releases are on Fridays", "acme")
    assert shared.list_there() == ["Releases are on Fridays"]
    assert [one.action for one in shared.here.call(protocol.History(id=added.id)).changes] == ["created", "updated"]
    with pytest.raises(NotFound):
        shared.here.call(protocol.Undo(namespace="acme/other"))
    shared.here.call(protocol.Undo(operation=changed.operation))
    assert shared.list_there() == ["Releases are on Tuesdays"]
    assert shared.here.call(protocol.Delete(ids=[added.id])).ids == [added.id]
    assert shared.list_there() == []
    assert shared.here.get(local.id).content == "Mine"
    with pytest.raises(NotFound):
        shared.here.call(Get(id="abcd1234"))


def test_what_has_a_key_there_is_read_and_deleted_by_it(shared: Shared) -> None:
    with shared.place.client("acme/api") as owner:
        owner.put("ports", "8080", type="decision")
    assert shared.here.call(Get(key="ports", namespace="acme/api")).content == "8080"
    with shared.daemon.client("acme/api") as project:
        project.put("own", "9090", type="decision")
        assert project.get(key="own").content == "9090"
    assert shared.list_there() == ["8080"]
    shared.here.call(protocol.Delete(keys=["ports"], namespace="acme/api"))
    assert shared.list_there() == []


def test_a_page_goes_over_both(joined: Joined) -> None:
    for number in range(4):
        joined.decide(f"Decision number {number} holds", created_at=1000.0 + 2 * number)
        memory = NewMemory(content=f"Note number {number}", created_at=1001.0 + 2 * number)
        joined.here.call(Add(memory=memory, namespace="acme/api", dedup=False))
    everything = joined.here.call(List(namespace="acme/api", limit=100))
    assert [memory.created_at for memory in everything] == [1007.0 - number for number in range(8)]
    paged = [one.id for offset in (0, 3, 6) for one in joined.here.call(List(limit=3, offset=offset))]
    assert paged == [memory.id for memory in everything]
    assert everything.total == 8
    best = [hit.id for hit in joined.here.call(Search(query="number 2", limit=8))]
    pages = [
        hit.id for offset in (0, 3, 6) for hit in joined.here.call(Search(query="number 2", limit=3, offset=offset))
    ]
    assert pages[:8] == best[: len(pages)]


def test_a_token_here_changes_nothing_there_outside_its_namespace(joined: Joined) -> None:
    theirs, own = joined.decide("Theirs", "acme/web"), joined.decide("It is its own", "acme/api")
    token = joined.here.call(AddToken(name="box", namespace="acme/api")).token
    with joined.daemon.client(token=token) as box:
        for call in (Get(id=theirs.id), Update(id=theirs.id, content="x"), protocol.Delete(ids=[theirs.id])):
            with pytest.raises(NotFound):
                box.call(call)
        assert box.call(Update(id=own.id, content="It is changed")).memory.shared == "acme"
        assert [hit.content for hit in box.search("its own changed theirs")] == ["It is changed"]
        with pytest.raises(Forbidden):
            box.call(GetShared())


def test_what_is_revoked_reads_nothing_more(shared: Shared) -> None:
    added = shared.decide("Releases are on Tuesdays")
    assert len(shared.here.search("releases")) == 1
    shared.there.call(RevokeToken(name="acme"))
    hits = shared.here.search("releases")
    assert (hits.hits, hits.degraded) == ([], ["shared:acme"])
    with pytest.raises(Unauthenticated, match="not known here"):
        shared.here.get(added.id)
    [root] = shared.here.call(GetShared()).roots
    assert (root.state, "not known here" in root.problem) == ("ready", True)


def test_secrets_do_not_go_there(shared: Shared) -> None:
    call = Add(memory=NewMemory(content="We decided on it", type="decision"), namespace="acme/api", allow_secrets=True)
    with pytest.raises(Invalid, match="allow_secrets"):
        shared.here.call(call)
    assert shared.list_there() == []


def test_offline_nothing_is_asked(start_daemon: Callable[..., "Daemon"], shared: Shared) -> None:
    daemon = start_daemon(shared={"acme": shared.root}, network={"offline": True})
    with daemon.client() as client:
        assert client.search("anything").degraded == ["shared:acme"]
        assert client.call(Add(memory=NewMemory(content="x", type="decision"), namespace="acme/api")).waiting
        assert client.call(GetShared()).roots[0].state == "idle"


@pytest.mark.slow
def test_a_place_that_is_none_is_named_with_its_reason(
    start_daemon: Callable[..., "Daemon"], shared: Shared, folder: Path
) -> None:
    def say(**settings: str) -> str:
        daemon = start_daemon(shared={"acme": {**shared.root, **settings}})
        with daemon.client() as client:
            assert client.search("anything").degraded == ["shared:acme"]
            return client.call(GetShared()).roots[0].problem

    assert "no memoryd" in say(memctl="echo Welcome to this machine; echo")
    assert "There is no token 'bob'" in say(token="bob")
    shared.there.call(AddToken(name="eve", namespace="other"))
    assert "is for other, not for acme" in say(token="eve")
    newer = {"name": "acme", "namespace": "acme", "role": "agent", "protocol": 99}
    greeting = folder / "greeting"
    greeting.write_bytes(frame(msgspec.msgpack.encode((0, 0, newer))))
    assert "version 99 of the protocol" in say(memctl=f"cat {greeting}; sleep 60;")
    assert "cannot be reached" in say(server="ssh://nowhere.invalid")
    assert "not found" in say(memctl="no-such-memctl")
