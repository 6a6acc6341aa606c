"""Memories that are shared: they move into a root and out of it, and nothing of what moved is left here."""

from collections.abc import Callable
from pathlib import Path

import pytest
from joined import Shared, decide, get_roots, let_a_day_pass
from test_waiting import come_back, leave

from memoryd.client import Conflict, Forbidden, Invalid, NotFound, protocol
from memoryd.client.protocol import (
    Add,
    AddToken,
    Confirm,
    FindCandidates,
    Get,
    GetShared,
    GetUnasked,
    NewMemory,
    RevokeToken,
    Share,
)
from memoryd.daemon.shared import confirming
from waiting import wait_until
from workbench import Daemon


def prefer(shared: Shared, content: str, namespace: str = "acme/api", **fields: object) -> str:
    memory = NewMemory(content=content, type="preference")
    return shared.here.call(Add(memory=memory, namespace=namespace, **fields)).id  # type: ignore[arg-type]


def holds(folder: Path, word: bytes) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word in path.read_bytes().lower()]


def test_a_memory_moves_into_a_root_and_out_of_it(shared: Shared) -> None:
    id = prefer(shared, "I like tabs", "notes")
    done = shared.here.call(Share(ids=[id[:8]], to="acme/api"))
    assert (done.shared, done.waiting) == ("acme", False)
    [there] = shared.there.list()
    assert (there.content, there.namespace, there.type) == ("I like tabs", "acme/api", "preference")
    assert [(one.id, one.origin, one.outcome) for one in done] == [(there.id, id, "moved")]
    [hit] = shared.here.search("tabs")
    assert (hit.id, hit.shared) == (there.id, "acme")
    back = shared.here.call(Share(ids=[there.id], to="notes"))
    assert (back.shared, back.memories[0].outcome) == ("acme", "moved")
    assert shared.list_there() == []
    [hit] = shared.here.search("tabs")
    assert (hit.id, hit.shared, hit.namespace) == (back.memories[0].id, "", "notes")


def test_what_is_not_to_be_shared_stays_and_nothing_is_changed(shared: Shared) -> None:
    good = prefer(shared, "I like tabs")
    with shared.daemon.client("acme/api") as project:
        keyed = project.put("ports", "8080").results[0].id
        project.observe([{"role": "user", "content": "We decided to use Valkey for the cache"}], session="s")
    shared.here.call(protocol.Consolidate())
    [turn] = [memory for memory in shared.here.list(limit=100) if memory.type == "turn"]
    for id, error in ((keyed, Invalid), (turn.id, (Invalid, NotFound, Conflict)), ("abcd", NotFound)):
        with pytest.raises(error):  # type: ignore[call-overload]
            shared.here.call(Share(ids=[good, id], to="acme/api"))
    assert shared.list_there() == []
    assert shared.here.get(good).tier == "L1"
    token = shared.here.call(AddToken(name="box", namespace="acme/api")).token
    private = prefer(shared, "Mine alone", "notes")
    with shared.daemon.client(token=token) as box:
        with pytest.raises(NotFound):
            box.call(Share(ids=[private], to="acme/api"))
        with pytest.raises(Invalid):
            box.call(Share(ids=[good], to="acme/web"))
        assert box.call(Share(ids=[good], to="acme/api")).shared == "acme"
    assert shared.list_there() == ["I like tabs"]


def test_what_is_shared_while_the_place_is_away_waits_and_an_undo_takes_it_back(shared: Shared) -> None:
    first, second = prefer(shared, "I like tabs", "notes"), prefer(shared, "I like vi", "notes")
    leave(shared)
    done = shared.here.call(Share(ids=[first], to="acme/api"))
    assert done.waiting
    other = shared.here.call(Share(ids=[second], to="acme/api"))
    shared.here.undo(other.operation)
    assert shared.here.get(second).namespace == "notes"
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["I like tabs"]
    assert [memory.content for memory in shared.here.list(limit=10) if not memory.shared] == ["I like vi"]


def test_what_a_reader_shares_is_as_before(shared: Shared) -> None:
    id = prefer(shared, "I like tabs", "notes")
    shared.there.call(RevokeToken(name="acme"))
    shared.there.call(AddToken(name="acme", namespace="acme", role="reader"))
    with pytest.raises(Forbidden, match="only reads"):
        shared.here.call(Share(ids=[id], to="acme/api"))
    memory = shared.here.get(id)
    assert (memory.namespace, memory.tier) == ("notes", "L1")
    assert shared.list_waiting() == []


def test_credentials_are_taken_out_of_what_is_shared(shared: Shared) -> None:
    secret = "ghp_" + "a1B2" * 9
    id = prefer(shared, f"The token of the build is {secret}", allow_secrets=True)
    assert secret in shared.here.get(id).content
    shared.here.call(Share(ids=[id], to="acme/api"))
    [there] = shared.list_there()
    assert "The token of the build is" in there
    assert secret not in there


def test_words_of_what_was_sent_are_in_no_file_of_this_machine(shared: Shared) -> None:
    folder = shared.daemon.core.folder
    leave(shared)
    added = shared.decide("Xylophones are tuned on Tuesdays")
    shared.here.call(protocol.Update(id=added.id, content="Xylophones are tuned by Zwingli"))
    id = prefer(shared, "Quokkas like tabs")
    shared.here.call(Share(ids=[id], to="acme/api"))
    assert holds(folder, b"xylophon")
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["Quokkas like tabs", "Xylophones are tuned by Zwingli"]
    let_a_day_pass(shared.daemon)
    for word in (b"xylophon", b"zwingli", b"quokka"):
        wait_until(lambda word=word: not holds(folder, word))  # type: ignore[misc]


# What a start tells -----------------------------------------------------------------------------------------------


def start(shared: Shared, namespace: str = "acme/api", **fields: object) -> str:
    return shared.here.call(GetUnasked(namespace=namespace, **fields)).text  # type: ignore[arg-type]


def test_a_start_tells_what_this_person_wrote_from_ram(shared: Shared) -> None:
    shared.there.call(AddToken(name="eve", namespace="acme"))
    shared.decide("Releases are on Tuesdays")
    shared.there.call(
        Add(
            memory=NewMemory(content="Eve was here", type="decision", metadata={"author": "eve"}),
            namespace="acme/api",
        )
    )
    wait_until(lambda: "Releases are on Tuesdays" in start(shared))
    assert "Eve" not in start(shared)
    assert "Releases" not in start(shared, "acme/web")
    assert "Releases" not in start(shared, "other")
    assert "Releases" in start(shared, session="s")
    assert "Releases" not in start(shared, session="s"), "it had it"
    leave(shared)
    assert "Releases" in start(shared)


def test_a_start_tells_what_this_person_confirmed_until_somebody_changes_it(
    shared: Shared, start_daemon: Callable[..., Daemon]
) -> None:
    for name in ("ada", "eve"):
        shared.there.call(AddToken(name=name, namespace="acme"))
    daemons = {name: start_daemon(shared={"acme": {**shared.root, "token": name}}) for name in ("ada", "eve")}
    with daemons["ada"].client() as ada, daemons["eve"].client() as eve:
        added, other = decide(eve, "Eve releases on Fridays"), decide(eve, "Eve builds on Mondays")

        def begin() -> str:
            return ada.call(GetUnasked(namespace="acme/api")).text

        decide(ada, "Ada tests on Sundays")
        shared.there.call(Confirm(ids=[other.id]))  # by the owner of the place, for the owner
        wait_until(lambda: "on Sundays" in begin())
        assert "Eve" not in begin()
        assert ada.call(Get(id=other.id)).confirmed_at is None
        assert ada.call(Confirm(ids=[added.id[:8]])).ids == [added.id]
        wait_until(lambda: "Eve releases on Fridays" in begin())
        assert "Eve builds" not in begin()
        assert ada.call(Get(id=added.id)).confirmed_at
        with pytest.raises(NotFound):
            ada.call(Confirm(ids=[added.id, "abcd1234"]))
        assert not holds(daemons["ada"].core.folder, b"on fridays")
        [root] = get_roots(daemons["ada"])
        assert confirming.read(daemons["ada"].core, "acme") == root._confirmed
        eve.call(protocol.Update(id=added.id, content="Eve releases whenever she likes"))
        assert ada.call(Get(id=added.id)).confirmed_at is None
        root.shelf.expect()
        root.wake()
        wait_until(lambda: "Eve" not in begin())


def test_what_is_revoked_is_told_no_more(shared: Shared) -> None:
    shared.decide("Releases are on Tuesdays")
    wait_until(lambda: "Releases are on Tuesdays" in start(shared))
    shared.there.call(RevokeToken(name="acme"))
    assert shared.here.search("releases").degraded == ["shared:acme"]
    assert "Releases" not in start(shared)


def test_a_prompt_asks_no_place(shared: Shared) -> None:
    shared.decide("Releases are on Tuesdays")
    asked: list[object] = []
    [root] = get_roots(shared.daemon)
    ask = root.ask
    root.ask = lambda call, *rest: (asked.append(call), ask(call, *rest))[1]
    shared.here.call(GetUnasked(namespace="acme/api", prompt="When are the releases?"))
    assert not any(isinstance(call, FindCandidates) for call in asked)  # a list for the shelf may be among them
    shared.here.search("When are the releases?")
    assert sum(isinstance(call, FindCandidates) for call in asked) == 1
    assert shared.here.call(GetShared()).roots[0].state == "ready"
